#!/usr/bin/env bash
# What is no failure: a message that takes longer than any limit of time, a rail
# that is slow beside fast ones, a rank that is stopped for a while, a machine
# that has more to do than it can. Every run ends well, and without a warning:
# no rail is given up. With FR_HEALTH_LONG=1 for as long as it may take.
. "$(dirname "$0")/lib.sh"
need_perf
need_hosts

export OFI_NCCL_FAILOVER=1
perf_limit_s=300
stop_s=8
load_s=10
one_rail=(-b 48M -e 48M -n 1)
if [ "${FR_HEALTH_LONG:-0}" = 1 ]; then
	stop_s=90
	load_s=60
	one_rail=(-b 1G -e 1G -n 1)
fi

# rank I: its process, one of those that the run has forked.
rank() {
	pgrep -f -- "--netns $(net names)" | sort -n | sed -n "$(($1 + 2))p"
}

moved() {
	[ "$(net exec A sh -c 'cat /sys/class/net/rail*/statistics/tx_bytes' |
		awk '{ sum += $1 } END { printf "%d", sum }')" -gt "$1" ]
}

# runs BYTES: they have left A, of a run that has begun.
runs() {
	local tries
	for ((tries = 0; tries < 300; tries++)); do
		moved "$1" && return
		sleep 0.1
	done
	return 1
}

# stopped RANK: in mid-run the process stands still.
stopped() {
	local pid
	runs 20000000 || return
	pid=$(rank "$1")
	kill -STOP "$pid" || return
	sleep $stop_s
	kill -CONT "$pid"
	echo "rank $1 stood still for $stop_s s"
}

# busy LOOPS: so many for a while.
busy() {
	local i pids=()
	runs 20000000 || return
	for ((i = 0; i < $1; i++)); do
		timeout $load_s sh -c 'while :; do :; done' &
		pids+=($!)
	done
	wait "${pids[@]}"
	echo "$1 more programs ran for $load_s s"
}

# unmoved WHAT SCRIPT ARGS...: a run of ARGS ends well whatever SCRIPT does.
unmoved() {
	local what=$1 script=$2
	shift 2
	$script >"$scratch/beside" &
	local beside=$!
	perf_good "$what" "$@" --netns "$(net names)"
	holds "$what: it was done" wait $beside
	sed "s/^/$what: /" "$scratch/beside"
}

hosts 1 100mbit
perf_good "a long message" stream "${one_rail[@]}" -w 0 --netns "$(net names)"
hosts 3 100mbit 100mbit 8mbit
perf_good "a slow rail" stream -b 12M -e 12M -n 1 -w 0 --netns "$(net names)"
hosts 3 200mbit
unmoved "the sender is stopped" "stopped 0" stream -b 1M -e 1M -n 200
hosts 3 200mbit
unmoved "the receiver is stopped" "stopped 1" stream -b 1M -e 1M -n 200
hosts 3 200mbit
unmoved "both have much to do" "busy 20" all_reduce -b 4M -e 4M -n 60
finish
