#!/usr/bin/env bash
# Which interfaces become rails, and what is said of the others.
. "$(dirname "$0")/lib.sh"
need_perf
need_hosts

small=(all_reduce -b 8 -e 256K -f 32 -n 2 -w 1)

run_good() {
	local what=$1
	shift
	perf_good "$what" "${small[@]}" --netns "$(net names)" "$@"
}

# uses WHAT RAILS: names of the rails of the last run.
uses() {
	holds "$1: rails are $2" is "$(rail_names)" "$2"
}

# Two rails and, on both hosts, everything that is none. docker0 has the same
# address on both, so it would connect a rank with itself.
hosts --both 2
net extra docker0 virbr0 link-local unplugged down
run_good "no choice" -v
uses "no choice" "rail0 rail1"
for dev in lo docker0 virbr0 link0 unplugged0 down0; do
	holds "no choice: says why $dev is no rail" \
		one_line_says "not used" "interface $dev:"
done
holds "no choice: link-local is the reason" \
	one_line_says "link0" "link-local"
holds "no choice: loopback is the reason" one_line_says "interface lo" "loopback"
holds "no choice: docker0 is excluded" one_line_says "docker0" "excluded"
holds "no choice: virbr0 is excluded" one_line_says "virbr0" "excluded"
holds "no choice: the addresses are said" one_line_says rail0 10.77.0.1

OFI_NCCL_USE_IPV6_TCP=1 run_good "IPv6 preferred" -v
uses "IPv6 preferred" "rail0 rail1"
holds "IPv6 preferred: its addresses are used" \
	one_line_says rail0 fd77::1

may_warn 'not used between them here: docker0'
OFI_NCCL_TCP_IF=docker0,rail run_good "docker0 by name"
holds "docker0 by name: both hosts have its address, so it carries nothing" \
	is "$(report_rails | awk '$1 == "docker0" { print $2 }')" 0

OFI_NCCL_TCP_IF=rail1 run_good "TCP_IF, a prefix"
uses "TCP_IF, a prefix" rail1
OFI_NCCL_TCP_IF=rail run_good "TCP_IF, a prefix of both"
uses "TCP_IF, a prefix of both" "rail0 rail1"
OFI_NCCL_TCP_IF='=rail1,=rail' run_good "TCP_IF, exact"
uses "TCP_IF, exact" rail1
OFI_NCCL_EXCLUDE_TCP_IF=lo,docker,virbr,rail0 run_good "EXCLUDE_TCP_IF, a prefix"
uses "EXCLUDE_TCP_IF, a prefix" rail1
OFI_NCCL_EXCLUDE_TCP_IF='lo,docker,virbr,=rail,=rail1' run_good \
	"EXCLUDE_TCP_IF, exact"
uses "EXCLUDE_TCP_IF, exact" rail0
NCCL_SOCKET_IFNAME='=rail1' run_good "NCCL_SOCKET_IFNAME"
uses "NCCL_SOCKET_IFNAME" rail1
NCCL_SOCKET_IFNAME='^rail1' run_good "NCCL_SOCKET_IFNAME, not"
uses "NCCL_SOCKET_IFNAME, not" rail0
NCCL_SOCKET_IFNAME='=rail1' OFI_NCCL_TCP_IF='=rail0' run_good \
	"TCP_IF over NCCL_SOCKET_IFNAME"
uses "TCP_IF over NCCL_SOCKET_IFNAME" rail0

# nothing_left WHAT SEEN...: init fails, and one line names each thing seen.
nothing_left() {
	local what=$1 text
	shift
	perf_bad "$what" "${small[@]}" --netns "$(net names)"
	for text in "$@"; do
		holds "$what: says of $text" \
			one_line_says WARN "no rail possible" "$text"
	done
}

OFI_NCCL_TCP_IF=nosuch nothing_left "nothing of that name" \
	"interface rail0:" "interface rail1:" "interface lo:"
OFI_NCCL_TCP_IF='=link0' nothing_left "link-local alone" \
	"interface link0: has only link-local"
OFI_NCCL_TCP_IF='=down0' nothing_left "down alone" "interface down0: down"
OFI_NCCL_PROVIDER=nosuch nothing_left "no such provider" nosuch
OFI_NCCL_PROVIDER='udp;ofi_rxd' nothing_left "a provider of the wrong kind" \
	'udp;ofi_rxd'

# A rail that is down on one side takes no part; the others carry.
hosts 2
net link 0 down A
net link 0 down B
run_good "rail0 down"
uses "rail0 down" rail1
net link 1 down A
net link 1 down B
perf_good "all rails down: loopback" "${small[@]}" --ranks 2 \
	--netns "$(net names | sed 's/,.*//;s/.*/&,&/')"
uses "all rails down: loopback" lo

# on_both COMMAND...: ip, in both hosts.
on_both() {
	ip -n "${net_prefix}a" "$@"
	ip -n "${net_prefix}b" "$@"
}

# A bridge that no list names, with one address on both hosts. Its name comes
# first, so it is the first one that a peer is asked for.
hosts 2
net extra br-0
may_warn 'not used between them here: br-0'
run_good "an address that both hosts have"
holds "an address that both hosts have carries nothing" \
	is "$(report_rails | awk '$1 == "br-0" { print $2 }')" 0

# Names that begin like an excluded one, addresses beside the first, lo down.
hosts --dev local 2
on_both link set lo down
ip -n "${net_prefix}a" addr add 10.77.0.77/24 dev local0 label local0:1
ip -n "${net_prefix}a" addr add 10.99.0.1/24 dev local1
run_good "local0 with a second address, lo is down" -v
uses "local0 with a second address, lo is down" "local0 local1"
holds "a second address: the first one is used" \
	one_line_says "rank 0" "device fabrail0: 2 rails" "local0 (10.77.0.1)" \
	"local1 (10.77.1.1)"

hosts --ipv6 2
run_good "IPv6 alone" -v
uses "IPv6 alone" "rail0 rail1"
holds "IPv6 alone: its addresses are used" one_line_says rail1 fd77:0:0:1::1

# As many rails with names as long as can be: what does not fit stays away.
need_show
hosts --ipv6 --dev a.long-name.rl 8
for show_abi in 4 12; do
	OFI_NCCL_MAX_RAILS=8 show_good "8 IPv6 rails, table v$show_abi" \
		ip netns exec "${net_prefix}a"
	holds "8 IPv6 rails, table v$show_abi: one device" \
		grep -q '^device fabrail0 speed 80000 ' <<<"$out"
done
OFI_NCCL_MAX_RAILS=8 run_good "8 IPv6 rails"
holds "8 IPv6 rails: all of them" is "$(report_rails | wc -l)" 8

# One rail of each version.
hosts --both 2
on_both -6 addr flush dev rail0 scope global
on_both -4 addr flush dev rail1
run_good "IPv4 and IPv6 rails" -v
uses "IPv4 and IPv6 rails" "rail0 rail1"
holds "IPv4 and IPv6 rails: both" one_line_says "device fabrail0: 2 rails" \
	"rail0 (10.77.0.1)" "rail1 (fd77:0:0:1::1)"
for dev in rail0 rail1; do
	holds "IPv4 and IPv6 rails: $dev carries" [ "$(report_rails |
		awk -v dev=$dev '$1 == dev { print $2 }')" -gt 100000 ]
done

# IPv4 alone on one host, IPv6 alone on the other: no way, and no hang.
hosts --both 1
ip -n "${net_prefix}a" -6 addr flush dev rail0 scope global
ip -n "${net_prefix}b" -4 addr flush dev rail0
perf_bad "IPv4 on A, IPv6 on B" "${small[@]}" --netns "$(net names)"
for rank in 0 1; do
	holds "IPv4 on A, IPv6 on B: rank $rank says why" one_line_says \
		"rank $rank WARN" "connect: the listener at" "IPv4" "IPv6"
done

hosts --same-subnet 2
may_warn 'rail0 .* and rail1 .* are in one subnet'
run_good "one subnet"
uses "one subnet" "rail0 rail1"
holds "one subnet: says so, and what to do" \
	one_line_says WARN rail0 rail1 "one subnet" "own subnet"
holds "one subnet: says what leaves by which" one_line_says WARN \
	"the kernel sends what leaves 10.77.0.101 through rail0"

# carry_mib DEV: what A sent through it in the stream, 16 MiB at least.
carry_mib() {
	awk -v dev="$1" '$2 == "A" && $1 == dev { v[++n] = $3 }
		END { printf "%d", (v[2] - v[1]) / 1048576 }' \
		"$scratch/before" "$scratch/after"
}

stream_good() {
	net counters >"$scratch/before"
	perf_good "$1" stream -b 1M -e 1M -n 16 -w 0 --netns "$(net names)"
	net counters >"$scratch/after"
}

# What the warning says is so.
may_warn 'rail0 .* and rail1 .* are in one subnet'
stream_good "one subnet, stream"
holds "one subnet: all leaves by rail0" [ "$(carry_mib rail0)" -ge 16 ]
holds "one subnet: nothing leaves by rail1" [ "$(carry_mib rail1)" -eq 0 ]

# A route by source address for each: no warning, and both carry.
for side in a b; do
	for i in 0 1; do
		addr=$(net addr $side | sed -n "$((i + 1))p")
		if ! ip -n "$net_prefix$side" rule add from "$addr" \
			table 10$i 2>/dev/null; then
			echo "no rules by source address here"
			finish
			exit
		fi
		ip -n "$net_prefix$side" route add 10.77.0.0/24 dev rail$i \
			src "$addr" table 10$i
	done
	ip netns exec "$net_prefix$side" sysctl -qw \
		net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2
done
stream_good "one subnet, a rule for each"
holds "one subnet, a rule for each: rail0 carries" [ "$(carry_mib rail0)" -ge 8 ]
holds "one subnet, a rule for each: rail1 carries as much" \
	within 25 "$(carry_mib rail1)" "$(carry_mib rail0)"

# The longest name an interface can have.
hosts --dev a.long-name.rl 2
run_good "long names"
uses "long names" "a.long-name.rl0 a.long-name.rl1"
finish
