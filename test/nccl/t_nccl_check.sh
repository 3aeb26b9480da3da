#!/usr/bin/env bash
# The check of real NCCL, over an NCCL and a CUDA driver that need no GPU: that
# a good run is good, that each fault is found and named, and what is said where
# something is missing.
. "$(dirname "$0")/../tools/lib.sh"
build=${FR_BUILDDIR:-$PWD}
check=$FR_SRCDIR/scripts/nccl-check
libs=$build/test/nccl/.libs
plugin=${FR_PLUGIN:-$build/.libs/libnccl-net-fabrail.so}
program=$build/test/nccl/nccl_check

for file in "$plugin" "$program" "$libs/libfake_nccl.so" "$libs/libfake_cuda.so"; do
	[ -e "$file" ] || skip "$file was not built"
done
for variable in $(compgen -e); do
	case $variable in
	OFI_NCCL_* | NCCL_* | FI_* | CUDA_HOME | FR_FAKE_*) unset "$variable" ;;
	esac
done
export TMPDIR=$scratch
given=(--plugin "$plugin" --program "$program" --nccl "$libs/libfake_nccl.so"
	--cuda "$libs/libfake_cuda.so")
one=(--runs ll --counts 10)

run "$check" "${given[@]}" --runs "ll simple1" --counts 1,1000,300007
holds "a good run is good" rc_is 0
holds "and says so" says "are right"
holds "every collective has its line" says "alltoall, 12 cases"
holds "all rails were used" says "rails that carry bytes: 4"
holds "and one where there is one" says "rails that carry bytes: 1"

# finds FAULT TEXT...
finds() {
	local fault=$1
	shift
	FR_FAKE_NCCL_FAULT=$fault run "$check" "${given[@]}" "${one[@]}" "$@"
	holds "$fault: fails" rc_is 1
	holds "$fault: keeps the logs" says "logs: $scratch"
}

finds wrong
holds "wrong elements are counted" says "elements WRONG"
finds past
holds "bytes behind the result are counted" says "WRITTEN BEHIND"
finds socket
holds "another network is no silence" says "NOT fabrail: Using network Socket"
finds hang --timeout 4
holds "a hang has an end" says "NO: ended after 4 s"
if [ -z "${FR_SANITIZER-}" ]; then
	finds die
	holds "a rank that dies is told" says "comes to its end"
fi

echo text >"$scratch/no-plugin.so"
run "$check" "${given[@]}" "${one[@]}" --plugin "$scratch/no-plugin.so"
holds "a plugin that does not load fails" rc_is 1
holds "and is not fallen back from" says "no network named"

FR_FAKE_GPUS=0 run "$check" "${given[@]}"
holds "without a GPU it cannot run" rc_is 77
holds "and says that" says "no CUDA-capable device"
run "$check" --nccl /nowhere/libnccl.so.2 --cuda /nowhere/libcuda.so.1
holds "without the libraries it cannot run" rc_is 77
holds "the driver is named" says "missing: libcuda.so.1"
holds "and NCCL" says "missing: libnccl.so.2"
run "$check" "${given[@]}" --nccl "$libs/libfake_cuda.so"
holds "a library that is none is refused" rc_is 77
holds "by what it lacks" says "lacks ncclGetVersion"

# nccl-tests as they speak.
put tests/all_reduce_perf <<'END'
#!/bin/sh
echo "NCCL INFO Using network $NET"
echo "NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/$NET/0"
echo "# Out of bounds values : ${OUT:-0 OK}"
END
chmod +x "$scratch/tests/all_reduce_perf"
export NCCL_TESTS_HOME=$scratch/tests
NET=fabrail run "$check" "${given[@]}" "${one[@]}"
holds "nccl-tests need two GPUs" says "left out"
FR_FAKE_GPUS=2 NET=fabrail run "$check" "${given[@]}" "${one[@]}"
holds "with two they run" says "all_reduce_perf                    ok"
holds "and all is right" rc_is 0
FR_FAKE_GPUS=2 NET=Socket run "$check" "${given[@]}" "${one[@]}"
holds "over another network they fail" rc_is 1
FR_FAKE_GPUS=2 NET=fabrail OUT="3 FAILED" run "$check" "${given[@]}" "${one[@]}"
holds "with wrong elements as well" rc_is 1
unset NCCL_TESTS_HOME

run "$check" --help
holds "it has help" rc_is 0
holds "that names the options" says "--bundle DIR"
run "$check" --runs bogus
holds "a run that does not exist is refused" rc_is 2
run "$check" --counts
holds "an option without its value is refused" rc_is 2

if [ -z "${FR_SANITIZER-}" ]; then
	run "$check" "${given[@]}" --bundle "$scratch/bundle"
	if says "no libfabric.so.1 here"; then
		echo "the bundle is not tested: $out"
	else
		holds "a bundle is made" rc_is 0
		holds "and says what C library it needs" says "needs glibc 2."
		for file in run lib/libfabric.so.1 lib/libhwloc.so.15 \
			lib/libnccl-net-fabrail.so bin/nccl_check; do
			holds "it has $file" [ -s "$scratch/bundle/$file" ]
		done
		mv "$scratch/bundle" "$scratch/elsewhere"
		run env -i PATH=/usr/bin:/bin HOME="$scratch" TMPDIR="$scratch" \
			"$scratch/elsewhere/run" --nccl "$libs/libfake_nccl.so" \
			--cuda "$libs/libfake_cuda.so" "${one[@]}"
		holds "it runs elsewhere" rc_is 0
	fi
fi
finish
