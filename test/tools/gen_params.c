/* Prints the parameters as the manual has them: gen-params [table | page]. */
#include <stdio.h>
#include <string.h>

#include "base/conf.h"

static const char page_head[] =
	"# Parameters\n"
	"\n"
	"Environment variables that the plugin reads at its first init in a\n"
	"process. The table is printed from the source (`make "
	"update-params`).\n"
	"\n"
	"- An empty value counts as unset. No value has spaces around it.\n"
	"- Numbers are decimal, or hexadecimal with 0x; a sign is taken where\n"
	"  the smallest allowed value has one. No fractions, no exponents.\n"
	"- Sizes may end in K, M or G (powers of 1024, either case), counts\n"
	"  may not. Times are decimal with ns, us, ms or s; bare: seconds.\n"
	"- Words are taken in either case.\n"
	"- Lists are separated by commas. An item of a list of interfaces is "
	"a\n"
	"  prefix, eth for eth0 and eth1, or one exact name, =eth0. Order,\n"
	"  repeats and empty items mean nothing, bytes are compared as they\n"
	"  are, and a list may be of any length.\n"
	"- A value that does not parse or is out of bounds fails init with a\n"
	"  line that names the variable, its value and what is allowed.\n"
	"- An `" FR_CONF_PREFIX "` name that is not in the table draws a\n"
	"  warning with the nearest name that is; an info line where other\n"
	"  plugins of this family know it.\n"
	"\n";

static const char page_tests[] = "\n"
				 "## For the plugin's own tests\n"
				 "\n"
				 "They bring limits near that otherwise lie "
				 "far away. Leave them unset.\n"
				 "\n";

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "page";

	if (strcmp(what, "table") != 0 && strcmp(what, "page") != 0) {
		fprintf(stderr, "usage: %s [table | page]\n", argv[0]);
		return 2;
	}
	if (strcmp(what, "page") == 0) {
		fputs(page_head, stdout);
	}
	fr_param_print_markdown(fr_conf_table, FR_CONF_PREFIX, false, stdout);
	if (strcmp(what, "page") == 0) {
		fputs(page_tests, stdout);
		fr_param_print_markdown(fr_conf_table, FR_CONF_PREFIX, true,
					stdout);
	}
	return ferror(stdout) != 0 || fflush(stdout) != 0;
}
