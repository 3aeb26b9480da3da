#!/usr/bin/env bash
# Interfaces in another order on each host, and rails that slow down or flap: who
# talks to whom follows the subnets, the data stays right, and the plugin counts
# what the kernel counts.
. "$(dirname "$0")/lib.sh"
need_perf
need_hosts

# moved SIDE DEV: bytes sent there between the two looks at the counters.
moved() {
	local before after
	before=$(tx_of "$1" "$2" <"$scratch/before")
	after=$(tx_of "$1" "$2" <"$scratch/after")
	echo $((after - before))
}

stream() {
	local what=$1
	shift
	net counters >"$scratch/before"
	perf_good "$what" stream "$@" --netns "$(net names)"
	ended_ns=$(date +%s%N)
	net counters >"$scratch/after"
}

# reported NAME: bytes of a rail in the report of the last run.
reported() {
	report_rails | awk -v name="$1" '$1 == name { print $2 }'
}

# On B the names run against the subnets, and against the order in which the
# kernel lists the interfaces. Nothing is let through whose way back is another
# one, so that a rail which talks to the wrong subnet would stand still.
hosts 3
swap_on_b rail0 rail2
for side in a b; do
	ip netns exec "$net_prefix$side" sysctl -qw \
		net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.default.rp_filter=1 \
		net.ipv4.conf.rail0.rp_filter=1 net.ipv4.conf.rail1.rp_filter=1 \
		net.ipv4.conf.rail2.rp_filter=1
done
stream "opposite order" -b 1M -e 1M -n 12 -w 0
for dev in rail0 rail1 rail2; do
	holds "opposite order: $dev carries its third" \
		within 25 "$(moved A $dev)" "$(moved A rail1)"
	holds "opposite order: and the plugin says so" \
		within 25 "$(reported $dev)" "$(moved A rail1)"
done

# The fast rail waits for the slow one: as fast as twice the slow one, no less.
# Rates here are far below what two cores move.
hosts 2 40mbit 160mbit
stream "40 and 160 Mbit/s" -b 2M -e 2M -n 4 -w 1
holds "40 and 160 Mbit/s: equal parts" \
	within 25 "$(moved A rail0)" "$(moved A rail1)"

# Both run beside a stream and note when they began to disturb it.
halve() {
	sleep 1
	net rate 0 60mbit && date +%s%N >"$scratch/disturbed"
}

# disturbed WHAT: the stream was still under way.
disturbed() {
	holds "$1: in the middle of it" [ "$(cat "$scratch/disturbed" ||
		echo "$ended_ns")" -lt "$ended_ns" ]
	rm -f "$scratch/disturbed"
}

hosts 2 120mbit
halve &
beside=$!
stream "a rail at half its rate" -b 1M -e 1M -n 60 -w 1
wait "$beside"
disturbed "a rail at half its rate"
holds "a rail at half its rate: it still carries its part" \
	within 25 "$(moved A rail0)" "$(moved A rail1)"
holds "a rail at half its rate: the plugin counts the same" \
	within 15 "$(reported rail0)" "$(moved A rail0)"

flap() {
	for _ in 1 2 3; do
		sleep 2
		net link 0 down || return
		[ -e "$scratch/disturbed" ] ||
			date +%s%N >"$scratch/disturbed"
		sleep 1
		net link 0 up || return
	done
}

# One second down, two up: TCP gets over each of them, so nobody fails.
hosts 2 100mbit
flap &
beside=$!
stream "a rail that flaps" -b 1M -e 1M -n 100 -w 1
wait "$beside"
disturbed "a rail that flaps"
for dev in rail0 rail1; do
	holds "a rail that flaps: $dev carries its half" \
		within 30 "$(moved A $dev)" "$(moved A rail1)"
	holds "a rail that flaps: the plugin counts the same of $dev" \
		within 30 "$(reported $dev)" "$(moved A $dev)"
done
finish
