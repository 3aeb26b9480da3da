#!/usr/bin/env bash
# Two network namespaces as two hosts, A and B, joined by rails: veth pairs, each
# its own subnet, each direction shaped. For tests, as root.
#
# netns-rails.sh [-p PREFIX] COMMAND
#
#   up [--ipv6 | --both] [--same-subnet] [--dev NAME] N [RATE...]
#                         make N rails (1 to 16), named NAME0, NAME1, ... (rail).
#                         RATE of each rail: 400mbit, or none; the last one
#                         holds for the rest (none)
#   extra KIND...         more interfaces, on both hosts, that no rail is:
#                         docker0     a bridge with 172.17.0.1 on both hosts
#                         virbr0      a bridge with 192.168.122.1 on both
#                         br-0        a bridge with 172.18.0.1 on both
#                         link-local  up, with link-local addresses alone
#                         unplugged   an address, but no carrier
#                         down        an address, but not up
#                         spare       up and addressed, leads nowhere
#   rate I RATE [SIDE]    shape rail I anew; SIDE: A, B or AB (AB)
#   link I up|down [SIDE] the interface of rail I (B)
#   blackhole KIND I [SIDE]  what SIDE (A) sends on rail I vanishes in silence:
#                         link   the other end is down
#                         route  a blackhole route to the other end (a new
#                                connection from SIDE fails at once)
#                         neigh  a wrong Ethernet address for the other end
#                         rate   one byte a second
#                         fifo   a queue that holds nothing
#   heal I                undo every black hole of rail I, links up
#   counters              a line "DEV SIDE TX RX" in bytes for each end
#   addr SIDE             addresses of the rails, one a line
#   names                 the two namespaces, as "A,B"
#   exec SIDE COMMAND...  run in a namespace
#   pids SIDE             processes in a namespace
#   down                  remove all of it
#
# PREFIX names the set: the namespaces are PREFIXa and PREFIXb. Without -p it is
# the value of FR_NETNS_PREFIX. Nothing is touched that "up" with this prefix
# did not make: a namespace is recognised by its inode, kept under /run/fabrail.
# Processes are left alone; a namespace goes when its last one ends.
set -euo pipefail

prefix=${FR_NETNS_PREFIX-}
burst=${FR_NETNS_BURST:-128kb}
latency=${FR_NETNS_LATENCY:-20ms}
state_root=/run/fabrail

die() {
	echo "netns-rails: $*" >&2
	exit 1
}

usage() {
	sed -n '2,/^set -euo/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2
	exit 2
}

# -- the set: what this prefix made ------------------------------------------

ns_of() {
	case $1 in
	A | a) echo "${prefix}a" ;;
	B | b) echo "${prefix}b" ;;
	*) die "a side is A or B, not \"$1\"" ;;
	esac
}

other() {
	case $1 in
	A | a) echo B ;;
	*) echo A ;;
	esac
}

# Each side that AB, A or B means, one a line.
sides() {
	case $1 in
	AB | ab) printf 'A\nB\n' ;;
	A | a) echo A ;;
	B | b) echo B ;;
	*) die "a side is A, B or AB, not \"$1\"" ;;
	esac
}

ns_inode() {
	stat -Lc %i "/run/netns/$1" 2>/dev/null || echo none
}

# The namespace is the one that "up" made, not another of that name.
ns_is_ours() {
	[ -e "$state/$1.inode" ] &&
		[ "$(ns_inode "$1")" = "$(cat "$state/$1.inode")" ]
}

need_up() {
	[ -e "$state/ready" ] || die "there is no set \"$prefix\": use up first"
	if ! ns_is_ours "${prefix}a" || ! ns_is_ours "${prefix}b"; then
		die "the namespaces of set \"$prefix\" are not the ones it made"
	fi
}

get() {
	cat "$state/$1"
}

put() {
	echo "$2" >"$state/$1"
}

dev_of() {
	local cnt
	cnt=$(get cnt)
	if ! [[ $1 =~ ^[0-9]{1,2}$ ]] || [ "$1" -ge "$cnt" ]; then
		die "a rail is 0 to $((cnt - 1)), not \"$1\""
	fi
	echo "$(get dev)$1"
}

in_ns() {
	local ns
	ns=$(ns_of "$1")
	shift
	ip netns exec "$ns" "$@"
}

ip_in() {
	local ns
	ns=$(ns_of "$1")
	shift
	ip -n "$ns" "$@"
}

# -- addresses ----------------------------------------------------------------

# addr4 SIDE I, addr6 SIDE I: without the prefix length.
addr4() {
	local host=1
	[ "$1" = A ] || host=2
	if [ "$(get same_subnet)" = yes ]; then
		echo "10.77.0.$((host * 100 + $2))"
	else
		echo "10.77.$2.$host"
	fi
}

addr6() {
	local host=1
	[ "$1" = A ] || host=2
	if [ "$(get same_subnet)" = yes ]; then
		echo "fd77::$((host * 100 + $2))"
	else
		echo "fd77:0:0:$2::$host"
	fi
}

has_family() {
	case $(get families) in
	*"$1"*) return 0 ;;
	*) return 1 ;;
	esac
}

# -- up and down ---------------------------------------------------------------

tear_down() {
	local ns
	for ns in "${prefix}a" "${prefix}b"; do
		if ns_is_ours "$ns"; then
			ip netns del "$ns"
		fi
	done
	rm -rf "$state"
}

# Runs when "up" does not get to its end.
undo_up() {
	local rc=$?
	trap - EXIT INT TERM HUP
	echo "netns-rails: up failed, removing what it made" >&2
	tear_down
	exit $((rc == 0 ? 1 : rc))
}

make_ns() {
	local ns=$1 key
	[ ! -e "/run/netns/$ns" ] ||
		die "namespace $ns exists and is not of this set"
	ip netns add "$ns"
	ns_inode "$ns" >"$state/$ns.inode"
	ip -n "$ns" link set lo up
	if [ -e /proc/sys/net/ipv6 ]; then
		key=net.ipv6.conf
		if has_family 6; then
			# An address must not leave with its link, nor wait.
			ip netns exec "$ns" sysctl -qw \
				$key.all.keep_addr_on_down=1 \
				$key.default.keep_addr_on_down=1 \
				$key.all.accept_dad=0 $key.default.accept_dad=0
		else
			ip netns exec "$ns" sysctl -qw \
				$key.all.disable_ipv6=1 \
				$key.default.disable_ipv6=1
		fi
	fi
}

make_rail() {
	local i=$1 dev side
	dev=$(get dev)$i
	ip -n "${prefix}a" link add "$dev" type veth \
		peer name "$dev" netns "${prefix}b"
	for side in A B; do
		if has_family 4; then
			ip_in $side addr add "$(addr4 $side "$i")/24" dev "$dev"
		fi
		if has_family 6; then
			ip_in $side addr add "$(addr6 $side "$i")/64" \
				dev "$dev" nodad
		fi
		ip_in $side link set "$dev" up
		shape $side "$dev" "$(get "rate.$side.$i")"
	done
}

has_carrier() {
	[ "$(in_ns "$1" cat "/sys/class/net/$2/carrier" 2>/dev/null)" = 1 ]
}

wait_carrier() {
	local dev=$1 side tries
	for side in A B; do
		tries=0
		until has_carrier $side "$dev"; do
			tries=$((tries + 1))
			[ $tries -lt 250 ] || die "$dev: no carrier after 5 s"
			sleep 0.02
		done
	done
}

shape() {
	local side=$1 dev=$2 rate=$3
	if [ "$rate" = none ]; then
		# Fails when there is nothing to delete.
		tc -n "$(ns_of "$side")" qdisc del dev "$dev" root 2>/dev/null ||
			true
	else
		tc -n "$(ns_of "$side")" qdisc replace dev "$dev" root tbf \
			rate "$rate" burst "$burst" latency "$latency"
	fi
}

cmd_up() {
	local families=4 same=no dev=rail cnt rate=none i side
	while [ $# -gt 0 ]; do
		case $1 in
		--ipv6) families=6 ;;
		--both) families=46 ;;
		--same-subnet) same=yes ;;
		--dev)
			shift
			dev=${1:?--dev needs a name}
			;;
		-*) die "up: unknown option $1" ;;
		*) break ;;
		esac
		shift
	done
	cnt=${1:?up needs the number of rails}
	shift
	[[ $cnt =~ ^([1-9]|1[0-6])$ ]] ||
		die "the number of rails is 1 to 16, not \"$cnt\""
	[[ $dev =~ ^[A-Za-z0-9._-]{1,14}$ ]] || die "no interface name: \"$dev\""
	[ ! -e "$state" ] || die "set \"$prefix\" exists: use down first"

	mkdir -p "$state"
	trap undo_up EXIT
	trap 'exit 130' INT TERM HUP
	put cnt "$cnt"
	put dev "$dev"
	put families $families
	put same_subnet $same
	make_ns "${prefix}a"
	make_ns "${prefix}b"
	for ((i = 0; i < cnt; i++)); do
		if [ $# -gt 0 ]; then
			rate=$1
			shift
		fi
		for side in A B; do
			put "rate.$side.$i" "$rate"
		done
		make_rail $i
	done
	for ((i = 0; i < cnt; i++)); do
		wait_carrier "$dev$i"
	done
	put ready yes
	trap - EXIT INT TERM HUP
}

cmd_down() {
	if [ -e "$state" ]; then
		tear_down
	fi
}

# -- interfaces that are no rails -------------------------------------------------

# An end of a pair within one namespace, so that it has a carrier.
make_stub() {
	local side=$1 dev=$2
	ip_in "$side" link add "$dev" type veth peer name "$dev-end"
	ip_in "$side" link set "$dev-end" up
	ip_in "$side" link set "$dev" up
}

# make_bridge SIDE DEV ADDRESS: with a port, so that it has a carrier.
make_bridge() {
	local side=$1 dev=$2 port=p-$2
	ip_in "$side" link add "$dev" type bridge
	ip_in "$side" addr add "$3" dev "$dev"
	ip_in "$side" link set "$dev" up
	make_stub "$side" "$port"
	ip_in "$side" link set "$port" master "$dev"
}

extra_one() {
	local side=$1 kind=$2
	case $kind in
	docker0) make_bridge "$side" docker0 172.17.0.1/16 ;;
	virbr0) make_bridge "$side" virbr0 192.168.122.1/24 ;;
	br-0) make_bridge "$side" br-0 172.18.0.1/16 ;;
	link-local)
		make_stub "$side" link0
		in_ns "$side" sysctl -qw net.ipv6.conf.link0.disable_ipv6=0
		ip_in "$side" addr replace fe80::77/64 dev link0 nodad
		ip_in "$side" addr add 169.254.77.1/16 dev link0 scope link
		;;
	unplugged)
		ip_in "$side" link add unplugged0 type veth peer name pulled0
		ip_in "$side" addr add 192.0.2.1/24 dev unplugged0
		ip_in "$side" link set unplugged0 up
		;;
	down)
		ip_in "$side" link add down0 type veth peer name down0-end
		ip_in "$side" addr add 198.51.100.1/24 dev down0
		;;
	spare)
		make_stub "$side" spare0
		ip_in "$side" addr add 203.0.113.1/24 dev spare0
		;;
	*) die "extra: unknown kind \"$kind\"" ;;
	esac
}

cmd_extra() {
	local kind
	[ $# -gt 0 ] || die "extra needs a kind"
	for kind in "$@"; do
		extra_one A "$kind"
		extra_one B "$kind"
	done
}

# -- faults ---------------------------------------------------------------------

cmd_rate() {
	local i=${1:?rail} rate=${2:?rate} side dev
	dev=$(dev_of "$i")
	for side in $(sides "${3:-AB}"); do
		shape "$side" "$dev" "$rate"
		put "rate.$side.$i" "$rate"
	done
}

cmd_link() {
	local i=${1:?rail} to=${2:?up or down} side dev
	dev=$(dev_of "$i")
	case $to in
	up | down) ;;
	*) die "a link goes up or down, not \"$to\"" ;;
	esac
	for side in $(sides "${3:-B}"); do
		ip_in "$side" link set "$dev" "$to"
	done
}

# each_far SIDE I COMMAND...: COMMAND with the far address, and its family.
each_far() {
	local far i=$2 side=$1
	far=$(other "$side")
	shift 2
	if has_family 4; then
		"$@" "$side" "$i" 4 "$(addr4 "$far" "$i")" 32
	fi
	if has_family 6; then
		"$@" "$side" "$i" 6 "$(addr6 "$far" "$i")" 128
	fi
}

hole_route() {
	ip_in "$1" -"$3" route replace blackhole "$4/$5"
}

hole_neigh() {
	ip_in "$1" -"$3" neigh replace "$4" lladdr 02:00:00:00:00:99 \
		dev "$(dev_of "$2")" nud permanent
}

heal_far() {
	# Either fails when there was no such hole.
	ip_in "$1" -"$3" route del blackhole "$4/$5" 2>/dev/null || true
	ip_in "$1" -"$3" neigh del "$4" dev "$(dev_of "$2")" 2>/dev/null || true
}

cmd_blackhole() {
	local kind=${1:?kind} i=${2:?rail} side dev
	dev=$(dev_of "$i")
	for side in $(sides "${3:-A}"); do
		case $kind in
		link) ip_in "$(other "$side")" link set "$dev" down ;;
		route) each_far "$side" "$i" hole_route ;;
		neigh) each_far "$side" "$i" hole_neigh ;;
		rate)
			tc -n "$(ns_of "$side")" qdisc replace dev "$dev" root \
				tbf rate 8bit burst 10 limit 1
			;;
		fifo)
			tc -n "$(ns_of "$side")" qdisc replace dev "$dev" root \
				pfifo limit 0
			;;
		*) die "blackhole: unknown kind \"$kind\"" ;;
		esac
	done
}

cmd_heal() {
	local i=${1:?rail} side dev
	dev=$(dev_of "$i")
	for side in A B; do
		each_far $side "$i" heal_far
		shape $side "$dev" none
		shape $side "$dev" "$(get "rate.$side.$i")"
		ip_in $side link set "$dev" up
	done
	wait_carrier "$dev"
}

# -- reading ----------------------------------------------------------------------

cmd_counters() {
	local i side dev cnt
	cnt=$(get cnt)
	for ((i = 0; i < cnt; i++)); do
		dev=$(dev_of $i)
		for side in A B; do
			# shellcheck disable=SC2016 # expands in the namespace
			in_ns $side sh -c 'cd "/sys/class/net/$1/statistics" &&
				echo "$1 $2 $(cat tx_bytes) $(cat rx_bytes)"' \
				sh "$dev" $side
		done
	done
}

cmd_addr() {
	local side=${1:?side} i cnt
	ns_of "$side" >/dev/null
	cnt=$(get cnt)
	for ((i = 0; i < cnt; i++)); do
		if has_family 4; then
			addr4 "${side^}" $i
		fi
		if has_family 6; then
			addr6 "${side^}" $i
		fi
	done
}

# -- main ---------------------------------------------------------------------------

while getopts p:h opt; do
	case $opt in
	p) prefix=$OPTARG ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
cmd=$1
shift

[ -n "$prefix" ] || die "give the set a name: -p PREFIX"
[[ $prefix =~ ^[A-Za-z0-9_-]{1,32}$ ]] || die "no name for a set: \"$prefix\""
[ "$(id -u)" -eq 0 ] || die "needs root"
for tool in ip tc flock; do
	command -v $tool >/dev/null || die "needs $tool"
done
state=$state_root/netns-$prefix

# Two calls must not cross; the programs that exec runs hold nothing.
lock() {
	mkdir -p "$state_root"
	exec 9>"$state_root/lock"
	flock 9
}

case $cmd in
up) lock && cmd_up "$@" ;;
down) lock && cmd_down ;;
extra | rate | link | blackhole | heal | counters | addr)
	lock
	need_up
	"cmd_$cmd" "$@"
	;;
names) need_up && echo "${prefix}a,${prefix}b" ;;
exec)
	need_up
	[ $# -ge 2 ] || die "exec needs a side and a command"
	ns=$(ns_of "$1")
	shift
	exec ip netns exec "$ns" "$@"
	;;
pids) need_up && ip netns pids "$(ns_of "${1:?side}")" ;;
*) die "unknown command \"$cmd\"" ;;
esac
