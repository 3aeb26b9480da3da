#!/usr/bin/env bash
# What failover and measured weights cost while nothing fails: instructions of
# the plugin alone, by valgrind's callgrind, a message and side.
#
#     ../test/functional/cost_callgrind.sh [BYTES...]
#
# at the top of an optimised build tree, after make check TESTS=. Two processes
# send over four loopback rails of provider net, 8 messages in flight, and take
# turns (cost_loop.c): a busy machine changes nothing. Only their turns are
# counted, of FR_COST_MSGS messages (10000) less a tenth of them, so that what
# is done once drops out. Passes that found nothing are taken off, each at what
# one costs: how many they are depends on what the kernel delivers when.
#
# FR_COST_TOP=N: also the N functions with most instructions, with both on.
# The status is 1 when both together cost 2 % or more.
. "$(dirname "$0")/lib.sh"
loop_bin=$FR_BUILDDIR/test/functional/cost_loop
[ -x "$loop_bin" ] || skip "cost_loop was not built"
[ -e "$FR_PLUGIN" ] || skip "the plugin was not built"
command -v valgrind >/dev/null || skip "needs the program valgrind"

msgs=${FR_COST_MSGS:-10000}
top=${FR_COST_TOP:-0}
limit_percent=2
failover=OFI_NCCL_FAILOVER
weights=OFI_NCCL_RAIL_WEIGHTS
export OFI_NCCL_PROVIDER=net OFI_NCCL_TCP_IF='=lo' OFI_NCCL_FORCE_NUM_RAILS=4
export OFI_NCCL_KEEPER=0

# count NAME BYTES MESSAGES EMPTY: a run; the profiles of its sides are then
# $scratch/NAME.recv and $scratch/NAME.send.
count() {
	local name=$1 pid file
	shift
	valgrind -q --tool=callgrind --compress-strings=no --compress-pos=no \
		--toggle-collect=turn --toggle-collect=empty_turn \
		--callgrind-out-file="$scratch/part.%p" \
		"$loop_bin" "$FR_PLUGIN" "$@" >"$scratch/log" 2>&1 &
	pid=$!
	running=("$pid")
	if ! wait "$pid"; then
		cat "$scratch/log"
		exit 1
	fi
	running=()
	for file in "$scratch"/part.*; do
		if [ "$file" = "$scratch/part.$pid" ]; then
			mv "$file" "$scratch/$name.recv"
		else
			mv "$file" "$scratch/$name.send"
		fi
	done
}

# own PROFILE: "FUNCTION INSTRUCTIONS" for each of the plugin's, those that it
# calls left out.
own() {
	awk '
	/^ob=/ { ours = /libnccl-net-fabrail/ }
	/^fn=/ { name = substr($0, 4) }
	/^calls=/ { getline; next }
	/^[0-9]/ && ours { sum[name] += $2 }
	END {
		for (name in sum)
			print name, sum[name]
	}' "$1"
}

# between FEW MANY N: the same for one of the N events that are in MANY and not
# in FEW.
between() {
	awk -v n="$3" '
	FNR == NR { few[$1] = $2; next }
	{ print $1, ($2 - few[$1]) / n }
	' <(own "$1") <(own "$2")
}

# less EMPTY COST: a message's cost without the passes that found nothing. EMPTY
# is what one costs; a function that only these call tells their number.
less() {
	awk -v mark=pass_was_empty '
	FNR == NR { empty[$1] = $2; next }
	{ cost[$1] = $2 }
	END {
		passes = cost[mark] / empty[mark]
		for (name in cost)
			print name, cost[name] - empty[name] * passes
	}' "$1" "$2"
}

total() {
	awk '{ sum += $2 } END { printf "%.1f\n", sum }' "$1"
}

# measure NAME BYTES VARIABLE...: with these set, $scratch/NAME.SIDE.cost
measure() {
	local name=$1 bytes=$2 side variable
	shift 2
	for variable in "$@"; do
		export "$variable=1"
	done
	count few "$bytes" $((msgs / 10)) 0
	count many "$bytes" "$msgs" 0
	unset "$failover" "$weights"
	for side in send recv; do
		between "$scratch/few.$side" "$scratch/many.$side" \
			$((msgs - msgs / 10)) >"$scratch/cost"
		less "$scratch/empty" "$scratch/cost" \
			>"$scratch/$name.$side.cost"
	done
}

# report BYTES SIDE: a line of the table.
report() {
	local kind own base
	base=$(total "$scratch/neither.$2.cost")
	printf '%8d %4s %9.1f' "$1" "$2" "$base"
	for kind in failover weights both; do
		own=$(total "$scratch/$kind.$2.cost")
		printf ' %9.1f %5.2f' "$own" "$(percent "$own" "$base")"
	done
	echo
	sort -k 2 -rn "$scratch/both.$2.cost" | head -n "$top" |
		awk '{ printf "%23.1f  %s\n", $2, $1 }'
	holds "$1 bytes, $2: both cost less than $limit_percent %" \
		is_below "$limit_percent" "$(percent "$own" "$base")"
}

percent() {
	awk -v v="$1" -v base="$2" 'BEGIN { print (v / base - 1) * 100 }'
}

is_below() {
	awk -v limit="$1" -v v="$2" 'BEGIN { exit !(v < limit) }'
}

[ $# -gt 0 ] || set -- 8 65536 1048576
count few 8 10 100
count many 8 10 1100
between "$scratch/few.recv" "$scratch/many.recv" 1000 >"$scratch/empty"
printf 'a pass that found nothing: %.1f\n' "$(total "$scratch/empty")"
printf '%8s %4s %9s %9s %5s %9s %5s %9s %5s\n' bytes side neither \
	failover % weights % both %
for bytes in "$@"; do
	measure neither "$bytes"
	measure failover "$bytes" "$failover"
	measure weights "$bytes" "$weights"
	measure both "$bytes" "$failover" "$weights"
	report "$bytes" send
	report "$bytes" recv
done
finish
