#!/usr/bin/env bash
# Rails of unequal speed: messages are shared as the rails are fast, a rail that
# slows down in mid-run costs what it lost and no more, and one that is fast
# again is used again. With FR_RATES_LONG=1 slower rails, more cases, and what
# a quiet machine reaches; without, what a busy one does.
. "$(dirname "$0")/lib.sh"
need_perf
need_hosts

export OFI_NCCL_RAIL_WEIGHTS=1
long=${FR_RATES_LONG:-0}

# at_least WHAT VALUE FACTOR WHOLE: VALUE is FACTOR of WHOLE, or more.
at_least() {
	awk -v what="$1" -v v="$2" -v f="$3" -v w="$4" 'BEGIN {
		printf "%s: %.1f, %.1f %% of %.1f\n", what, v, v / w * 100, w
		exit !(v >= f * w)
	}'
}

# Payload of the last run, in Mbit/s.
payload() {
	awk '$1 == 1048576 { print 1048576 * 8 / $6 }' "$scratch/out"
}

# The time in ns, and what A has sent on all rails in bytes.
sent() {
	net exec A sh -c 'date +%s%N
		cat /sys/class/net/rail*/statistics/tx_bytes' |
		awk 'NR == 1 { ns = $1; next } { sum += $1 }
			END { printf "%s %.0f\n", ns, sum }'
}

# wire SECONDS: what A sends from now on, in Mbit/s.
wire() {
	local from to
	from=$(sent)
	sleep "$1"
	to=$(sent)
	awk -v from="$from" -v to="$to" 'BEGIN {
		split(from, a)
		split(to, b)
		print (b[2] - a[2]) * 8000 / (b[1] - a[1])
	}'
}

# slow_down RAIL RATE OTHER: while a run goes on RAIL is shaped to OTHER, and to
# RATE again. Before, 2 s after, and 4 s after that: what goes out.
slow_down() {
	local tries=0
	until [ "$(sent | cut -d ' ' -f 2)" -gt 30000000 ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || return
		sleep 0.1
	done
	wire 1
	net rate "$1" "$3"
	sleep 2
	wire 2
	net rate "$1" "$2"
	sleep 4
	wire 1.5
}

# throttled WHAT RATE MESSAGES FACTOR ARGS...: four rails of RATE Mbit/s, one a
# tenth of that for a while.
throttled() {
	local what=$1 rate=$2 cnt=$3 factor=$4 before during after
	shift 4
	hosts 4 "${rate}mbit"
	slow_down 2 "${rate}mbit" "$((rate / 10))mbit" >"$scratch/wire" &
	local watcher=$!
	perf "$@" -b 1M -e 1M -n "$cnt" -c 0 --netns "$(net names)"
	ended_well "$what"
	wait "$watcher"
	{
		read -r before
		read -r during
		read -r after
	} <"$scratch/wire"
	holds "$what: before" at_least "$what, before, wire" \
		"$before" 0.8 $((4 * rate))
	holds "$what: slowed down" at_least "$what, slowed down, wire" \
		"$during" "$factor" "$(awk -v b="$before" 'BEGIN {
			print b * 3.1 / 4 }')"
	holds "$what: fast again" at_least "$what, fast again, wire" \
		"$after" "$factor" "$before"
}

# unequal WHAT FACTOR ARGS...: 100 and 300 Mbit/s.
unequal() {
	local what=$1 factor=$2
	shift 2
	hosts 2 100mbit 300mbit
	perf_good "$what" stream -b 1M -e 1M -n 60 --netns "$(net names)" "$@"
	holds "$what: payload" at_least "$what, payload" "$(payload)" \
		"$factor" 400
}

if [ "$long" != 1 ]; then
	unequal "100 and 300" 0.85
	throttled "4 x 200" 200 1000 0.85 stream
	finish
	exit
fi

hosts 4 100mbit
OFI_NCCL_MAX_RAILS=1 perf_good "one rail" stream -b 1M -e 1M -n 60 \
	--netns "$(net names)" --device 0
one=$(payload)
perf_good "4 rails" stream -b 1M -e 1M -n 240 --netns "$(net names)"
holds "4 rails" at_least "4 rails, payload" "$(payload)" 0.95 \
	"$(awk -v one="$one" 'BEGIN { print 4 * one }')"
unequal "100 and 300" 0.92
unequal "100 and 300, one message at a time" 0.88 --window 1
OFI_NCCL_PROVIDER='tcp;ofi_rxm' unequal "100 and 300, tcp;ofi_rxm" 0.92
throttled "4 x 100" 100 600 0.9 stream
throttled "4 x 100, one at a time" 100 600 0.85 stream --window 1
throttled "4 x 200" 200 1000 0.9 stream
finish
