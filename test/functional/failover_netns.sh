#!/usr/bin/env bash
# Rails that die in mid-run, in silence, and come back: the run goes on by the
# others with every byte right, says once what happened, and uses the rail again
# soon after it works. When all of them die it fails in time. With
# FR_FAILOVER_LONG=1 every way of dying, and failures that meet each other.
. "$(dirname "$0")/lib.sh"
need_perf
need_hosts

export OFI_NCCL_FAILOVER=1
long=${FR_FAILOVER_LONG:-0}
perf_limit_s=150
marks=$scratch/marks

# -- beside the run -----------------------------------------------------------

now_ms() {
	date +%s%3N
}

# mark NAME: this was now; since NAME OTHER: and so many ms before OTHER.
mark() {
	echo "$1 $(now_ms)" >>"$marks"
}

since() {
	awk -v from="$1" -v to="$2" '
		$1 == from && !a { a = $2 }
		$1 == to && !b { b = $2 }
		END { print a && b ? b - a : "never" }' "$marks"
}

# sent SIDE [RAIL]: in bytes, on one rail or all.
sent() {
	net exec "$1" sh -c \
		"cat /sys/class/net/rail${2:-*}/statistics/tx_bytes" |
		awk '{ sum += $1 } END { printf "%d\n", sum }'
}

lines() {
	grep -cE -- "$1" "$scratch/err" 2>/dev/null || true
}

# within_ms LIMIT COMMAND...: until it succeeds.
within_ms() {
	local until=$(($(now_ms) + $1))
	shift
	until "$@"; do
		[ "$(now_ms)" -lt $until ] || return
		sleep 0.1
	done
}

has_sent() {
	[ "$(sent "$1" "$2")" -ge "$3" ]
}

has_said() {
	[ "$(lines "$1")" -ge "$2" ]
}

# more SIDE RAIL BYTES: on top of what it has sent up to now; RAIL '' is all.
more() {
	within_ms 40000 has_sent "$1" "$2" $(($(sent "$1" "$2") + $3))
}

runs() {
	: >"$marks"
	within_ms 40000 has_sent A '' 20000000
}

# lose RAIL SIDES COMMAND...: COMMAND makes a hole that SIDES notice; then the
# run goes on.
lose() {
	local rail=$1 cnt=$2
	shift 2
	cnt=$((cnt + $(lines 'is lost')))
	mark "hole$rail"
	net "$@" || return
	sleep 1 # what is on its way arrives
	more A '' 8000000 && mark "on$rail"
	within_ms 20000 has_said 'is lost' $cnt && mark "lost$rail"
}

# heal RAIL SIDES: it works again, and what SIDES gave up comes back.
heal() {
	local rail=$1 cnt=$2
	cnt=$((cnt + $(lines 'is back')))
	sleep 2
	net heal "$rail" || return
	mark "healed$rail"
	more A "$rail" 2000000 && mark "used$rail"
	within_ms 20000 has_said 'is back' $cnt && mark "back$rail"
}

# -- what is checked ------------------------------------------------------------

# at_most LIMIT VALUE, in ms
at_most() {
	if [ "$2" = never ] || [ "$2" -gt "$1" ]; then
		echo "    $2 ms is not at most $1 ms"
		return 1
	fi
}

# went_on WHAT RAIL: 3 s until it is given up, and some for the answer.
went_on() {
	holds "$1: goes on without rail $2" at_most 10000 "$(since "hole$2" "on$2")"
	holds "$1: says so" at_most 20000 "$(since "hole$2" "lost$2")"
}

came_back() {
	holds "$1: rail $2 is used again" \
		at_most 5000 "$(since "healed$2" "used$2")"
	holds "$1: and says so" at_most 6000 "$(since "healed$2" "back$2")"
}

# told WHAT RANK RAIL: one line of the rank says who, which rail, why, and that
# the others go on.
told() {
	local what=$1 peer=$((2 - $2)) rail=$3
	holds "$what: rank $2 tells of rail $rail once" is \
		"$(lines "rank $2 WARN .* rail $rail .* is lost")" 1
	holds "$what: all of it" one_line_says "rank $2 WARN " \
		"peer 10.77.0.$peer (rail0): rail $rail (rail$rail) to 10.77.$rail.$peer is lost: " \
		" of 3 paths go on"
}

# survives WHAT SCRIPT ARGS...: a run of ARGS ends well while SCRIPT goes on
# beside it.
survives() {
	local what=$1 script=$2
	shift 2
	$script &
	local beside=$!
	may_warn ' is lost: .* of 3 paths go on'
	perf_good "$what" -v "$@" --netns "$(net names)"
	mark end
	wait $beside
	awk -v what="$what" 'NR == 1 { t = $2 }
		{ printf "%s%s %d", NR == 1 ? what ": " : ", ", $1, $2 - t }
		END { print "" }' "$marks"
}

stream=(stream -b 1M -e 1M -w 1)
both=(all_reduce -b 4M -e 4M -w 1)

# -- the cases ----------------------------------------------------------------------

# hole WHAT RAIL COMMAND... -- ARGS...: a run of ARGS, and a hole that both ranks
# find.
hole() {
	local what=$1 rail=$2 command=()
	shift 2
	until [ "$1" = -- ]; do
		command+=("$1")
		shift
	done
	shift
	beside_hole() {
		runs && lose "$rail" 2 "${command[@]}" && heal "$rail" 2
	}
	hosts 3 200mbit
	survives "$what" beside_hole "$@"
	went_on "$what" "$rail"
	came_back "$what" "$rail"
	told "$what" 0 "$rail"
	told "$what" 1 "$rail"
}

# Messages one way, and both ways.
one() {
	hole "$@" -- "${stream[@]}" -n 480
}

two_way() {
	hole "$@" -- "${both[@]}" -n 90
}

# The run ends before the rail works again: nobody waits for it, nor is anything
# lost with it.
ends_without() {
	local what=$1 rail=$2
	shift 2
	local command=("$@")
	beside_end() {
		runs && lose "$rail" 2 "${command[@]}"
	}
	hosts 3 200mbit
	survives "$what" beside_end "${both[@]}" -n 60
	went_on "$what" "$rail"
}

# small WHAT RAIL COMMAND...: messages that go without a write.
small() {
	local what=$1 rail=$2
	shift 2
	local command=("$@")
	beside_small() {
		runs && lose "$rail" 2 "${command[@]}" && heal "$rail" 2
	}
	hosts 3 200mbit
	survives "$what" beside_small stream -b 2K -e 2K -w 1 -n 150000
	went_on "$what" "$rail"
	came_back "$what" "$rail"
	told "$what" 0 "$rail"
	told "$what" 1 "$rail"
}

# one_by_one WHAT ARGS...: the second rail dies while the first is away.
one_by_one() {
	local what=$1
	shift
	beside_one_by_one() {
		runs && lose 1 2 blackhole neigh 1 A &&
			lose 2 2 blackhole link 2 B && heal 1 2 && heal 2 2
	}
	hosts 3 200mbit
	survives "$what" beside_one_by_one "$@"
	for rail in 1 2; do
		went_on "$what" $rail
		came_back "$what" $rail
		told "$what" 0 $rail
		told "$what" 1 $rail
	done
}

# at_once WHAT ARGS...: the second rail dies while nothing is known of the first.
at_once() {
	local what=$1
	shift
	beside_at_once() {
		runs
		net blackhole route 0 B
		sleep 1
		lose 2 4 blackhole neigh 2 A && heal 0 2 && heal 2 2
	}
	hosts 3 200mbit
	survives "$what" beside_at_once "$@"
	went_on "$what" 2
	came_back "$what" 0
	came_back "$what" 2
}

# long_hole WHAT RAIL ARGS...: for so long that TCP tries no more but each half a
# minute. Afterwards all rails carry something, also the messages of control.
long_hole() {
	local what=$1 rail=$2
	shift 2
	beside_long() {
		runs && lose "$rail" 2 blackhole neigh "$rail" A && sleep 25 &&
			heal "$rail" 2 && more A '' 100000000 && mark flows
	}
	hosts 3 200mbit
	survives "$what" beside_long "$@"
	came_back "$what" "$rail"
	holds "$what: no stall afterwards" \
		at_most 10000 "$(since "healed$rail" flows)"
}

# A provider whose rails cannot be given up one by one.
no_failover() {
	local what=$1
	beside_no_failover() {
		runs
		mark hole
		net blackhole neigh 1 A
	}
	hosts 3 200mbit
	beside_no_failover &
	local beside=$!
	perf_bad "$what" "${stream[@]}" -n 2000 --netns "$(net names)"
	mark end
	wait $beside
	holds "$what: in time" at_most 15000 "$(since hole end)"
	holds "$what: and says why" one_line_says 'rank 0 WARN ' \
		'peer 10.77.0.2 (rail0) is lost: '
}

# Nobody is there any more: an error on both sides, and no hang.
all_die() {
	local what=$1
	beside_all() {
		runs
		mark hole
		for rail in 0 1 2; do
			net blackhole neigh $rail AB
		done
	}
	hosts 3 200mbit
	beside_all &
	local beside=$!
	perf_bad "$what" "${stream[@]}" -n 2000 --netns "$(net names)"
	mark end
	wait $beside
	holds "$what: in time" at_most 15000 "$(since hole end)"
	holds "$what: and says why" one_line_says 'rank 0 WARN ' \
		'peer 10.77.0.2 (rail0) is lost: '
}

one "a wrong neighbour" 1 blackhole neigh 1 A
ends_without "a link that stays down" 0 link 0 down B
all_die "all rails"
if [ "$long" != 1 ]; then
	finish
	exit
fi

for kind in link route neigh rate fifo; do
	for side in A B; do
		one "$kind on $side" 1 blackhole $kind 1 $side
	done
done
for side in A B; do
	one "down on $side" 2 link 2 down $side
	two_way "down on $side, both ways" 0 link 0 down $side
done
# They all go by the first rail.
for side in A B; do
	small "small messages, $side" 0 blackhole neigh 0 $side
done
for rail in 0 1; do
	long_hole "a long hole in rail $rail" $rail "${stream[@]}" -n 2700
done
long_hole "a long hole, both ways" 0 "${both[@]}" -n 400
one_by_one "one by one" "${stream[@]}" -n 900
one_by_one "one by one, both ways" "${both[@]}" -n 160
at_once "at once" "${stream[@]}" -n 800
at_once "at once, both ways" "${both[@]}" -n 140
OFI_NCCL_PROVIDER='tcp;ofi_rxm' no_failover "tcp;ofi_rxm"
finish
