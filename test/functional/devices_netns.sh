#!/usr/bin/env bash
# Interfaces make devices: how many, of which rails, with which properties, and
# that each device's bytes go over its own rails.
. "$(dirname "$0")/lib.sh"
need_perf
need_show
need_hosts

# shows LINE: what the host program is told of the devices has this line.
shows() {
	grep -qE -- "$1" <<<"$out"
}

devices() {
	grep -c '^device ' <<<"$out"
}

# carry DEVICE RAILS: a run on DEVICE sends its payload over these rails of A.
carry() {
	local i before after dev carriers=
	net counters >"$scratch/before"
	perf_good "$cnt, device $1" stream -b 256K -e 256K -n 40 -w 1 \
		--device "$1" --netns "$(net names)"
	net counters >"$scratch/after"
	for ((i = 0; i < cnt; i++)); do
		dev=rail$i
		before=$(tx_of A $dev <"$scratch/before")
		after=$(tx_of A $dev <"$scratch/after")
		[ $((after - before)) -lt 500000 ] || carriers="$carriers $i"
	done
	holds "$cnt, device $1: its rails carry, no others do" \
		is "${carriers# }" "$2"
}

# in_a WARNING: asks on host A, where this warning may be written.
in_a() {
	may_warn "$@"
	show_good "$cnt interfaces" ip netns exec "${net_prefix}a"
}

cnt=5
hosts $cnt
in_a 'make 2 unequal devices'
holds "5: two devices" is "$(devices)" 2
holds "5: the first is of four" shows '^device fabrail0 speed 40000 '
holds "5: the second is of one" shows '^device fabrail1 speed 10000 '
holds "5: virtual interfaces have no place" shows 'fabrail0 .* pci none$'
holds "5: counted" one_line_says INFO "2 devices of 4 and 1 rails" "every rank"
holds "5: warned of, with a way out" one_line_says WARN "4+1 rails" \
	"OFI_NCCL_MAX_RAILS=5"
may_warn 'make 2 unequal devices'
carry 0 "0 1 2 3"
may_warn 'make 2 unequal devices'
carry 1 4
OFI_NCCL_MAX_RAILS=5 in_a
holds "5 in one: one device" is "$(devices)" 1
holds "5 in one: nothing to count" nothing_says "every rank"
OFI_NCCL_MAX_RAILS=5 carry 0 "0 1 2 3 4"

cnt=8
hosts $cnt
in_a
holds "8: two devices" is "$(devices)" 2
holds "8: counted" one_line_says INFO "2 devices of 4 and 4 rails"
holds "8: no two with one guid" \
	is "$(awk '{ print $6 }' <<<"$out" | sort -u | wc -l)" 2
carry 0 "0 1 2 3"
carry 1 "4 5 6 7"

# The same again, by many processes at once on both hosts.
for side in a b; do
	for ((i = 0; i < 15; i++)); do
		ip netns exec "$net_prefix$side" timeout 120 "$show_bin" \
			"$FR_PLUGIN" >"$scratch/$side$i" 2>&1 </dev/null &
		running+=($!)
	done
done
for pid in "${running[@]}"; do
	wait "$pid" || echo "a process ended with $?" >"$scratch/a0"
done
running=()
for side in a b; do
	holds "15 processes on $side are told the same" \
		is "$(md5sum "$scratch/$side"[0-9]* | awk '{ print $1 }' |
			sort -u | wc -l)" 1
	holds "and it is something" is "$(wc -l <"$scratch/${side}0")" 2
done

# A host that lacks a rail groups the others differently.
ip -n "${net_prefix}b" addr flush dev rail0
may_warn 'make 2 unequal devices' 'has 4 rails, its peer at .* has 4'
perf_good "rail0 is missing on B" all_reduce -b 8 -e 1M -f 64 -n 2 -w 1 \
	--netns "$(net names)"
holds "rail0 is missing: A says what does not match" one_line_says \
	"rank 0 WARN" "here: rail0" "there: rail4" "in fabrail1 here" \
	"group their interfaces differently"
holds "rail0 is missing: B as well" one_line_says \
	"rank 1 WARN" "there: rail0" "here: rail4"

cnt=9
hosts $cnt
in_a 'make 3 unequal devices'
holds "9: three devices" is "$(devices)" 3
holds "9: warned of, with a way out" one_line_says WARN "4+4+1 rails" \
	"OFI_NCCL_MAX_RAILS=3"
export OFI_NCCL_MAX_RAILS=3
in_a
holds "9 by three: three devices" is "$(devices)" 3
holds "9 by three: counted" one_line_says INFO "3 devices of 3, 3 and 3 rails"
carry 2 "6 7 8"
finish
