#!/usr/bin/env bash
# The export script accepts tables and refuses anything beside them.
. "$(dirname "$0")/lib.sh"
check=$FR_SRCDIR/scripts/check_exports.sh
cc=${FR_CC:-cc}

command -v nm >/dev/null || skip "nm is not installed"
# A wrapper around the compiler may hold several words.
read -r -a cc <<<"$cc"

# so NAME: standard input compiled to a shared object.
so() {
	"${cc[@]}" -shared -fPIC -nostdlib -x c -o "$scratch/$1" - ||
		skip "the compiler makes no shared object"
}

so good.so <<<'int ncclNetPlugin_v6 = 1, ncclNetPlugin_v12 = 1; static int x;'
run "$check" "$scratch/good.so"
holds "tables pass" rc_is 0
holds "tables pass in silence" is_silent

so more.so <<<'int ncclNetPlugin_v6 = 1; int fr_net_open(void) { return 0; }'
run "$check" "$scratch/more.so"
holds "a function beside them is refused" rc_is 1
holds "it is named" says "exports fr_net_open"

so like.so <<<'int ncclNetPlugin_v6 = 1, ncclNetPlugin_v6x = 2;'
run "$check" "$scratch/like.so"
holds "a name that only begins like a table is refused" rc_is 1

so none.so <<<'static int x; void *const y __attribute__((visibility("hidden"))) = &x;'
run "$check" "$scratch/none.so"
holds "no table at all is refused" rc_is 1
holds "and said" says "exports no table"

so other.so <<<'int ofl_open = 1;'
run "$check" "$scratch/other.so" 'ofl_[a-z]+'
holds "another pattern can be given" rc_is 0

echo text >"$scratch/text.so"
run "$check" "$scratch/text.so"
holds "a file that is no object is refused" rc_is 1
run "$check" "$scratch/absent.so"
holds "an absent file is refused" rc_is 1

if [ -n "${FR_PLUGIN-}" ] && [ -e "$FR_PLUGIN" ]; then
	run "$check" "$FR_PLUGIN"
	holds "the plugin exports its tables alone" rc_is 0
	run nm -D --defined-only --format=posix "$FR_PLUGIN"
	for v in 4 5 6 7 8 9 10 11 12; do
		holds "it exports v$v" says "ncclNetPlugin_v$v "
	done
fi
finish
