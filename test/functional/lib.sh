# shellcheck shell=bash
# Sourced by the functional tests: programs of the build, hosts and rails out of
# namespaces, runs whose warnings are looked at, checks that count.
#
# A test sources it, calls "skip" or makes checks, and ends with "finish". What
# it started or made is gone when it ends, however it ends.
set -uo pipefail

FR_SRCDIR=${FR_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
FR_BUILDDIR=${FR_BUILDDIR:-$PWD}
FR_PLUGIN=${FR_PLUGIN:-$FR_BUILDDIR/.libs/libnccl-net-fabrail.so}
export IPATH_NO_BACKTRACE=1
PATH=$PATH:/usr/sbin:/sbin
perf_bin=$FR_BUILDDIR/fabrail-perf
show_bin=$FR_BUILDDIR/test/functional/show_devices
netns_rails=$FR_SRCDIR/scripts/netns-rails.sh

checks=0
failures=0
began=$SECONDS
running=()     # processes to end
net_prefix=    # of the set of namespaces that is up
allowed_warn=()
out='' err='' rc=0

skip() {
	echo "$*"
	exit 77
}

clean_up() {
	local pid
	for pid in "${running[@]}"; do
		kill -TERM "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	hosts_down
	rm -rf "$scratch"
}

hosts_down() {
	if [ -n "$net_prefix" ]; then
		"$netns_rails" -p "$net_prefix" down
		net_prefix=
	fi
}

scratch=$(mktemp -d)
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT HUP

# The environment of whoever runs the tests must not choose for them.
for variable in $(compgen -e); do
	case $variable in
	OFI_NCCL_* | NCCL_* | FI_* | RANK | WORLD_SIZE | OMPI_COMM_WORLD_*)
		unset "$variable"
		;;
	esac
done

need_perf() {
	[ -x "$perf_bin" ] || skip "fabrail-perf was not built"
	[ -e "$FR_PLUGIN" ] || skip "the plugin was not built"
}

need_show() {
	[ -x "$show_bin" ] || skip "show_devices was not built"
	[ -e "$FR_PLUGIN" ] || skip "the plugin was not built"
}

need_hosts() {
	local tool
	[ "$(id -u)" -eq 0 ] || skip "needs root, to make network namespaces"
	for tool in ip tc flock; do
		command -v $tool >/dev/null || skip "needs the program $tool"
	done
	ip netns add "fr$$probe" 2>/dev/null ||
		skip "network namespaces cannot be made here"
	if ! ip -n "fr$$probe" link add probe0 \
		type veth peer name probe1 2>/dev/null; then
		ip netns del "fr$$probe"
		skip "veth pairs cannot be made here"
	fi
	if ! tc -n "fr$$probe" qdisc add dev probe0 root tbf rate 1mbit \
		burst 10kb latency 10ms 2>/dev/null; then
		ip netns del "fr$$probe"
		skip "rates cannot be shaped here (tbf)"
	fi
	ip netns del "fr$$probe"
}

# hosts ARGS...: hosts A and B anew, as "netns-rails.sh up ARGS".
hosts() {
	hosts_down
	net_prefix=fr$$
	if ! "$netns_rails" -p "$net_prefix" up "$@"; then
		net_prefix=
		echo "the namespaces could not be made"
		exit 1
	fi
}

net() {
	"$netns_rails" -p "$net_prefix" "$@"
}

# swap_on_b DEV OTHER: two interfaces of B swap names, and keep their addresses.
# Returns when both ends of both are up again.
swap_on_b() {
	local move from to side dev
	for move in "$1 tmp" "$2 $1" "tmp $2"; do
		read -r from to <<<"$move"
		ip -n "${net_prefix}b" link set "$from" down
		ip -n "${net_prefix}b" link set "$from" name "$to"
		ip -n "${net_prefix}b" link set "$to" up
	done
	for side in a b; do
		for dev in "$1" "$2"; do
			until ip -n "$net_prefix$side" link show dev "$dev" |
				grep -q 'LOWER_UP.* state UP'; do
				sleep 0.02
			done
		done
	done
}

# tx_of SIDE DEV, from the output of "net counters" on standard input.
tx_of() {
	awk -v side="$1" -v dev="$2" '$1 == dev && $2 == side { print $3 }'
}

# may_warn PATTERN...: lines at WARN that the next run may write (grep -E).
may_warn() {
	allowed_warn+=("$@")
}

unexpected_warnings() {
	local lines pattern
	lines=$(grep -E ' WARN |fabrail: (error|warn)' "$scratch/err")
	for pattern in "${allowed_warn[@]}"; do
		lines=$(grep -vE -- "$pattern" <<<"$lines")
	done
	printf '%s' "$lines"
}

# perf ARGS...: one run; its output in $out, its errors in $err, its report in
# $scratch/json, its status in $rc. A hang ends with status 124.
perf() {
	rm -f "$scratch/json"
	timeout --kill-after=10 "${perf_limit_s:-120}" "$perf_bin" "$@" \
		--plugin "$FR_PLUGIN" --json "$scratch/json" \
		>"$scratch/out" 2>"$scratch/err" </dev/null &
	running=($!)
	wait $!
	rc=$?
	running=()
	out=$(cat "$scratch/out")
	err=$(cat "$scratch/err")
}

# show [COMMAND...]: what a host program is told of the devices, by a process that
# COMMAND starts, through table $show_abi if that is set; its output in $out, its errors in $err, its status in $rc.
show() {
	NCCL_DEBUG=INFO timeout --kill-after=10 60 "$@" "$show_bin" \
		"$FR_PLUGIN" "${show_abi:-0}" >"$scratch/out" 2>"$scratch/err" \
		</dev/null &
	running=($!)
	wait $!
	rc=$?
	running=()
	out=$(cat "$scratch/out")
	err=$(cat "$scratch/err")
}

# What WHAT left behind is that of a program which had nothing to complain of.
ended_well() {
	local what=$1 warnings
	holds "$what: exit status 0" [ $rc -eq 0 ]
	holds "$what: no report of a sanitizer" sanitizers_are_silent
	warnings=$(unexpected_warnings)
	holds "$what: no warning${warnings:+, but: $warnings}" \
		[ -z "$warnings" ]
	allowed_warn=()
}

# show_good WHAT [COMMAND...]: the same, and it ends well.
show_good() {
	local what=$1
	shift
	show "$@"
	ended_well "$what"
}

# show_bad WHAT [COMMAND...]: the same, and init fails.
show_bad() {
	local what=$1
	shift
	show "$@"
	holds "$what: init fails" [ $rc -eq 1 ]
	holds "$what: no report of a sanitizer" sanitizers_are_silent
	allowed_warn=()
}

# A run that is meant to fail must not hide that a sanitizer had cause to speak.
sanitizers_are_silent() {
	! grep -qE '(Address|Leak|Thread)Sanitizer|runtime error:' <<<"$err"
}

# perf_good WHAT ARGS...: the run ends well, every element was checked and right,
# and nothing was warned of that was not announced.
perf_good() {
	local what=$1
	shift
	perf "$@"
	holds "$what: every element right" report_is_right
	ended_well "$what"
}

# perf_bad WHAT ARGS...: the run ends with an error of its own, in time.
perf_bad() {
	local what=$1
	shift
	perf "$@"
	holds "$what: fails" [ $rc -ne 0 ]
	holds "$what: by itself, in time" [ $rc -lt 124 ]
	holds "$what: no report of a sanitizer" sanitizers_are_silent
	allowed_warn=()
}

report_is_right() {
	[ -e "$scratch/json" ] &&
		grep -q '"wrong":0[,}]' "$scratch/json" &&
		! grep -qE '"wrong":([1-9]|null)' "$scratch/json"
}

# "NAME TX RX" for each rail of the last run's report.
report_rails() {
	grep -oE '"name":"[^"]*","tx_bytes":[0-9]+,"rx_bytes":[0-9]+' \
		"$scratch/json" 2>/dev/null |
		sed -E 's/"name":"([^"]*)","tx_bytes":([0-9]+),"rx_bytes":/\1 \2 /'
}

rail_names() {
	report_rails | awk '{ print $1 }' | sort | tr '\n' ' ' | sed 's/ $//'
}

report_says() {
	grep -qF -- "$1" "$scratch/json"
}

# holds WHAT CONDITION...: one check, by the exit status of the condition.
holds() {
	local what=$1
	shift
	checks=$((checks + 1))
	if ! "$@"; then
		failures=$((failures + 1))
		echo "FAIL: $what"
		printf '%s\n' "$out" "$err" | grep -v '^$' | tail -n 25 |
			sed 's/^/    | /'
		return 1
	fi
}

# The errors have a line in which all the texts occur.
one_line_says() {
	local lines=$err text
	for text in "$@"; do
		lines=$(grep -F -- "$text" <<<"$lines") || return 1
	done
}

nothing_says() {
	! grep -qF -- "$1" <<<"$err"
}

is() {
	[ "$1" = "$2" ] || {
		echo "    \"$1\" is not \"$2\""
		return 1
	}
}

# within PERCENT VALUE WANTED
within() {
	awk -v p="$1" -v v="$2" -v w="$3" 'BEGIN {
		d = v - w; if (d < 0) d = -d
		if (w > 0 && d <= w * p / 100) exit 0
		printf "    %s is not within %s %% of %s\n", v, p, w
		exit 1
	}'
}

finish() {
	echo "$((SECONDS - began)) s"
	echo "100%: Checks: $checks, Failures: $failures, Errors: 0"
	[ $failures -eq 0 ]
}
