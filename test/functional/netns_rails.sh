#!/usr/bin/env bash
# scripts/netns-rails.sh makes what it says, breaks what it is told to, and
# leaves alone what is not its own.
. "$(dirname "$0")/lib.sh"
need_hosts
command -v python3 >/dev/null || skip "needs python3, to connect"

# what_connect_says ADDRESS SECONDS: from A to a port where nobody listens.
what_connect_says() {
	net exec A python3 -c '
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family)
s.settimeout(float(sys.argv[2]))
try:
    s.connect((sys.argv[1], 9))
    print("connected")
except socket.timeout:
    print("silence")
except OSError as e:
    print(e.strerror)
' "$@"
}

has_dev() {
	net exec "$1" test -e "/sys/class/net/$2"
}

for family in --ipv6 --both ""; do
	# shellcheck disable=SC2086 # no family is no argument
	hosts $family 3 none 200mbit
	for side in A B; do
		holds "$family: $side has its rails" has_dev $side rail2
		holds "$family: $side has no more" is "$(has_dev $side rail3 ||
			echo none)" none
	done
	addr=$(net addr B | tail -n 1)
	holds "$family: rail2 leads to B" \
		is "$(what_connect_says "$addr" 5)" "Connection refused"
done
holds "the second rate holds for the rest" [ "$(net exec A tc qdisc show |
	grep -c 'tbf.*rate 200Mbit')" -eq 2 ]

for kind in link neigh rate fifo; do
	net blackhole $kind 2 A
	holds "black hole by $kind: silence" \
		is "$(what_connect_says 10.77.2.2 0.5)" silence
	holds "black hole by $kind: the next rail works" \
		is "$(what_connect_says 10.77.1.2 5)" "Connection refused"
	net heal 2
	holds "black hole by $kind: healed" \
		is "$(what_connect_says 10.77.2.2 5)" "Connection refused"
done
net blackhole route 2 A
holds "black hole by route: no way out" \
	is "$(what_connect_says 10.77.2.2 0.5)" "Invalid argument"
net heal 2
holds "black hole by route: healed" \
	is "$(what_connect_says 10.77.2.2 5)" "Connection refused"
holds "a healed rail has its rate again" [ "$(net exec A tc qdisc show |
	grep -c 'tbf.*rate 200Mbit')" -eq 2 ]

before=$(net counters | tx_of A rail1)
what_connect_says 10.77.1.2 5 >/dev/null
holds "the counter of the rail that was used grows" \
	[ "$(net counters | tx_of A rail1)" -gt "$before" ]

net extra docker0 link-local unplugged down spare
holds "an interface without carrier is up" \
	is "$(net exec A cat /sys/class/net/unplugged0/carrier)" 0
holds "docker0 is on both hosts" has_dev B docker0
holds "nobody lives there" is "$(net pids A)" ""

run() {
	"$netns_rails" "$@" >"$scratch/out" 2>"$scratch/err"
	rc=$?
	out=$(cat "$scratch/out")
	err=$(cat "$scratch/err")
}

run -p "$net_prefix" up 2
holds "a set is made once" [ $rc -ne 0 ]
holds "a set is made once: still there" has_dev A rail2
run -p "$net_prefix" rate 3 1mbit
holds "a rail that is none is refused" one_line_says "0 to 2"
run up 2
holds "a set needs a name" one_line_says "-p PREFIX"

# A namespace of the same name that somebody else made.
stranger=fr$$x
ip netns add "${stranger}b"
run -p "$stranger" up 1
holds "somebody's namespace: refused" [ $rc -ne 0 ]
holds "somebody's namespace: nothing of ours stays" \
	[ ! -e "/run/netns/${stranger}a" ]
run -p "$stranger" down
holds "somebody's namespace: left alone" [ -e "/run/netns/${stranger}b" ]
ip netns del "${stranger}b"

# The same name, but another namespace than the one that was made.
ip netns del "${net_prefix}b"
ip netns add "${net_prefix}b"
run -p "$net_prefix" counters
holds "a namespace that was swapped: noticed" [ $rc -ne 0 ]
run -p "$net_prefix" down
holds "a namespace that was swapped: left alone" \
	[ -e "/run/netns/${net_prefix}b" ]
ip netns del "${net_prefix}b"
holds "down takes its own" [ ! -e "/run/netns/${net_prefix}a" ]
run -p "$net_prefix" down
holds "down can be repeated" [ $rc -eq 0 ]

run -p "$net_prefix" up 2 nonsense
holds "a rate that is none: refused" [ $rc -ne 0 ]
holds "a rate that is none: nothing stays" \
	[ ! -e "/run/netns/${net_prefix}a" ]
finish
