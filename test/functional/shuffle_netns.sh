#!/usr/bin/env bash
# libfabric lists the interfaces in another order each time, in each process: the
# host program is told the same by all of them, and what it is told of a
# device is true of the interface that carries its bytes.
. "$(dirname "$0")/lib.sh"
need_perf
need_show
need_hosts
[ -z "${FR_SANITIZER-}" ] || skip "its runtime must come before the stand-in"
shim=$FR_BUILDDIR/test/shim/libfr_shim.so
[ -e "$shim" ] || skip "the stand-in for libfabric was not built"

processes=${FR_TEST_FRESH:-40}
at_once=5

# told SIDE FIRST LAST: what processes of these numbers are told, a file each.
told() {
	local i pid
	for ((i = $2; i <= $3; i++)); do
		ip netns exec "$net_prefix$1" env LD_PRELOAD="$shim" \
			FR_SHIM="shuffle;seed=$i" timeout 120 "$show_bin" \
			"$FR_PLUGIN" >"$scratch/$1.$i" 2>&1 </dev/null &
		running+=($!)
	done
	for pid in "${running[@]}"; do
		wait "$pid" || echo "a process ended with $?" >"$scratch/$1.$2"
	done
	running=()
}

# The names run with the subnets on A, and against them on B, where they also
# came into the world in another order.
hosts 4
swap_on_b rail0 rail3
swap_on_b rail1 rail2

export OFI_NCCL_MAX_RAILS=1
for ((n = 1; n <= processes / 2; n += at_once)); do
	told a "$n" $((n + at_once - 1))
	told b "$n" $((n + at_once - 1))
done
for side in a b; do
	out=$(cat "$scratch/$side.1")
	holds "$side: $((processes / 2)) processes are told the same" \
		is "$(md5sum "$scratch/$side".* | awk '{ print $1 }' |
			sort -u | wc -l)" 1
	holds "$side: of four devices" is "$(grep -c '^device ' <<<"$out")" 4
	holds "$side: each with a name of its own" is "$(awk '{ print $2 }' \
		<<<"$out" | sort -u | wc -l)" 4
	holds "$side: each with a guid of its own" is "$(awk '{ print $6 }' \
		<<<"$out" | sort -u | wc -l)" 4
done
unset OFI_NCCL_MAX_RAILS

# carries WHAT CARRIER...: the payload of the stream left A by these alone.
carries() {
	local what=$1 dev before after carriers=
	shift
	for dev in rail0 rail1 rail2 rail3; do
		before=$(tx_of A $dev <"$scratch/before")
		after=$(tx_of A $dev <"$scratch/after")
		[ $((after - before)) -lt 500000 ] || carriers="$carriers $dev"
	done
	holds "$what: by $* alone" is "${carriers# }" "$*"
}

# stream WHAT ARGS...
stream() {
	local what=$1
	shift
	net counters >"$scratch/before"
	LD_PRELOAD=$shim FR_SHIM="shuffle;seed=$RANDOM" perf_good "$what" \
		stream -b 256K -e 256K -n 40 -w 1 --netns "$(net names)" "$@"
	net counters >"$scratch/after"
}

# A device of four on both hosts: each rail meets the one of its subnet, or the
# kernel would send all of it another way.
for side in a b; do
	ip netns exec "$net_prefix$side" sysctl -qw \
		net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.default.rp_filter=1 \
		net.ipv4.conf.rail0.rp_filter=1 net.ipv4.conf.rail1.rp_filter=1 \
		net.ipv4.conf.rail2.rp_filter=1 net.ipv4.conf.rail3.rp_filter=1
done
stream "one device of four"
carries "one device of four" rail0 rail1 rail2 rail3

# On hosts that are alike, each device's bytes go by the interface of its place.
hosts 4
export OFI_NCCL_MAX_RAILS=1
for i in 0 3; do
	stream "device $i" --device $i
	carries "device $i" rail$i
done
finish
