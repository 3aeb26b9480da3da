#!/usr/bin/env bash
# What a completion says besides its context, flags and remote data, providers
# fill as they like. Tests of other things give the same over a libfabric that
# fills it with noise.
. "$(dirname "$0")/lib.sh"
shim=$FR_BUILDDIR/test/shim/libfr_shim.so
[ -e "$FR_PLUGIN" ] || skip "the plugin was not built"
[ -e "$shim" ] || skip "the shim was not built"
[ -z "${FR_SANITIZER-}" ] || skip "nothing can be loaded before $FR_SANITIZER"

# same TEST [CASES]: all of the test, or those cases whose line has that text.
same() {
	local cases=${2-} log=$scratch/log queues
	rm -f "$log"
	rc=0
	out=$(FR_TEST_CASES=$cases FR_SHIM="garbage;log=$log" LD_PRELOAD=$shim \
		timeout 240 "$FR_BUILDDIR/test/functional/$1" 2>&1) || rc=$?
	if [ $rc -eq 77 ]; then
		echo "$1${cases:+, $cases}: ${out##*$'\n'}"
		return
	fi
	holds "$1${cases:+, $cases}: ends with $rc" [ $rc -eq 0 ]
	queues=$(grep -c ' open cq ' "$log")
	holds "$1${cases:+, $cases}: $queues queues of the shim" [ "$queues" -gt 1 ]
	grep ' cases, ' <<<"$out"
}

same t_order
same t_sizes
same t_groups "net, 4 rails"
same t_window "run over the end"
finish
