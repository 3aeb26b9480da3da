#!/usr/bin/env bash
# The style script accepts a plain tree and names every offence.
. "$(dirname "$0")/lib.sh"
check=$FR_SRCDIR/scripts/check_style.sh
export CC=${FR_CC:-cc}

good_tree() {
	rm -rf "${scratch:?}"/*
	cp "$FR_SRCDIR/.clang-format" "$scratch/"
	put src/base/thing.h <<'END'
/* A thing. Threads: any. */
#ifndef FR_BASE_THING_H
#define FR_BASE_THING_H

#include <stdint.h>

/**
 * fr_thing_count - how many
 * @of: the first
 *
 * Return: the count.
 */
uint32_t fr_thing_count(uint32_t of);

#endif
END
	put src/base/thing.c <<'END'
#include "base/thing.h"

uint32_t fr_thing_count(uint32_t of)
{
	return of + 1;
}
END
	put src/base/sched.h <<'END'
/* Named like a header of the system, which its neighbours include. */
#ifndef FR_BASE_SCHED_H
#define FR_BASE_SCHED_H

#include <pthread.h>

#endif
END
	put scripts/fine <<'END'
#!/bin/sh
echo "$1"
END
}

# refused WHAT FILE FROM TO: a line of the file that starts with FROM becomes
# TO, or TO is added when FROM is empty.
refused() {
	local what=$1 file=$2 from=$3 to=$4
	good_tree
	[ -e "$scratch/$file" ] || : >"$scratch/$file"
	if [ -n "$from" ]; then
		sed -i "s|^$from.*|$to|" "$scratch/$file"
	else
		printf '%b\n' "$to" >>"$scratch/$file"
	fi
	run "$check" "$scratch"
	holds "$what" rc_is 1
	holds "$what, by name" says "$file"
}

good_tree
run "$check" "$scratch"
holds "a plain tree passes" rc_is 0

if command -v clang-format >/dev/null; then
	refused "format counts" src/base/thing.c '	return' '  return of+1;'
fi
if command -v shellcheck >/dev/null; then
	# shellcheck disable=SC2016 # the fault to be found
	refused "shellcheck counts" scripts/fine 'echo' 'echo $1'
fi
refused "a header has a guard" src/base/thing.h '#ifndef' '#ifndef FR_THING'
refused "a header compiles alone" src/base/thing.h '#include' ''
refused "a header says what it is" src/base/thing.h '/\* A' ''
refused "a contract says what comes back" src/base/thing.h ' \* Return' ' *'
refused "a contract says one of whose, where, whether" src/base/thing.h \
	'/\* A thing' '/* A thing. */'
refused "a contract names its function" src/base/thing.h ' \* fr_thing_count' \
	' * fr_thing_size - how many'
for name in strcpy strcat sprintf vsprintf strtok gets atoi; do
	refused "$name() is banned" src/base/thing.c '' "int x_$name = $name(0);"
	holds "$name() is named" says "$name() is banned"
done
refused "unfinished work is found" src/base/thing.c '' '/* TODO: more */'
refused "blanks at an end are found" src/base/thing.c '	return' '	return of; '

good_tree
echo 'int x = fr_strcpy(0);' >>"$scratch/src/base/thing.c"
run "$check" "$scratch"
holds "a longer name is not a banned one" rc_is 0
finish
