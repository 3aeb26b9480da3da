/*
 * What only the loadable module has. Hosts of the older tables close the
 * library without a word, and may load it again: whatever is left must end
 * here, before the code is gone.
 */
#include "plugin/life.h"

__attribute__((destructor)) static void module_unload(void)
{
	fr_shell_unload();
}
