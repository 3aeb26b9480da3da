#!/usr/bin/env bash
# A libfabric that cannot serve ends init with one line that says what is needed,
# what was found, and where.
. "$(dirname "$0")/lib.sh"
need_perf
[ -z "${FR_SANITIZER-}" ] || skip "its libraries are not made for $FR_SANITIZER"
read -r -a cc <<<"${FR_CC:-cc}"

export OFI_NCCL_TCP_IF='=lo'
small=(all_reduce -b 1K -e 1K -n 1 -w 0)

# library NAME: standard input becomes $scratch/NAME/libfabric.so.1.
library() {
	mkdir -p "$scratch/$1"
	"${cc[@]}" -shared -fPIC -x c -o "$scratch/$1/libfabric.so.1" - ||
		skip "the compiler makes no shared object"
}

# refused NAME WORD...: with that library.
refused() {
	local name=$1
	shift
	LD_LIBRARY_PATH=$scratch/$name perf_bad "$name" "${small[@]}"
	holds "$name: one line says it all" one_line_says WARN fabrail "$@"
	holds "$name: no line about rails" nothing_says "no rail possible"
}

entries='int fi_getinfo, fi_freeinfo, fi_dupinfo, fi_fabric, fi_strerror;'
library old <<<"$entries int fi_tostr; unsigned fi_version(void) { return 1 << 16 | 9; }"
refused old "needs libfabric 1.17 or newer, found 1.9 at $scratch/old/libfabric.so.1"

library lacking <<<"$entries unsigned fi_version(void) { return 2 << 16; }"
refused lacking "$scratch/lacking/libfabric.so.1 lacks fi_tostr"

mkdir "$scratch/damaged"
echo text >"$scratch/damaged/libfabric.so.1"
refused damaged "cannot load libfabric" "$scratch/damaged/libfabric.so.1"
finish
