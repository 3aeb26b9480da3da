#!/usr/bin/env bash
# Two hosts and 2 to 4 rails between them: what each interface counted is the
# payload, in equal shares, with no rate and with 200 Mbit/s a rail.
. "$(dirname "$0")/lib.sh"
need_perf
need_hosts

slack=15 # percent: headers, acknowledgements, what TCP sends twice

# The runs differ in their number of iterations alone, so the difference of what
# they sent is the payload of the iterations more, whatever else a run sends.

# ended FILE: what each interface sent since the last call, as "DEV SIDE BYTES",
# and what the plugin counted, as "report NAME BYTES".
ended() {
	net counters >"$scratch/now"
	awk 'NR == FNR { old[$1, $2] = $3; next }
		{ print $1, $2, $3 - old[$1, $2] }' \
		"$scratch/last" "$scratch/now" >"$1"
	report_rails | awk '{ print "report", $1, $2 }' >>"$1"
	mv "$scratch/now" "$scratch/last"
}

# measured WHAT FEW MANY ARGS...: a run of each number of iterations.
measured() {
	local what=$1 few=$2 many=$3
	shift 3
	net counters >"$scratch/last"
	perf_good "$what, $few" "$@" -n "$few" -w 1 --netns "$(net names)"
	ended "$scratch/few"
	perf_good "$what, $many" "$@" -n "$many" -w 1 --netns "$(net names)"
	ended "$scratch/many"
}

# more FIRST SECOND: how many bytes more the longer run had there.
more() {
	awk -v a="$1" -v b="$2" '$1 == a && $2 == b { v[++n] = $3 }
		END { print v[2] - v[1] }' "$scratch/few" "$scratch/many"
}

# each_rail_has N SIDE BYTES WHAT: N rails share them equally.
each_rail_has() {
	local i n=$1 side=$2 total=$3 what=$4
	for ((i = 0; i < n; i++)); do
		holds "$what: $side rail$i sent its share" \
			within $slack "$(more "rail$i" "$side")" $((total / n))
	done
}

# A report adds up both ends of a rail.
report_agrees() {
	local i n=$1 total=$2 what=$3
	holds "$what: rails of the report" is "$(report_rails | wc -l)" "$n"
	for ((i = 0; i < n; i++)); do
		holds "$what: the plugin says the same of rail$i" \
			within $slack "$(more report "rail$i")" $((total / n))
	done
}

# One way: 24 MiB from A to B, and next to nothing back.
one_way() {
	local n=$1 what=$2 i
	local total=$((24 << 20))
	measured "$what" 8 32 stream -b 1M -e 1M
	each_rail_has "$n" A $total "$what"
	for ((i = 0; i < n; i++)); do
		holds "$what: B rail$i sends control alone" \
			[ "$(more "rail$i" B)" -lt $((total / n / 5)) ]
	done
	report_agrees "$n" $total "$what"
}

# Both ways: in a ring of two each rank sends the size once.
both_ways() {
	local n=$1 what=$2
	local total=$((24 << 20))
	measured "$what" 1 7 all_reduce -b 4M -e 4M
	each_rail_has "$n" A $total "$what"
	each_rail_has "$n" B $total "$what"
	report_agrees "$n" $((2 * total)) "$what"
}

for rate in none 200mbit; do
	for n in 2 3 4; do
		hosts $n $rate
		one_way $n "stream, $n rails, rate $rate"
		both_ways $n "all_reduce, $n rails, rate $rate"
		echo "$SECONDS s: $n rails, rate $rate"
	done
done

# Of another provider, and by IPv6, once.
hosts 3 200mbit
OFI_NCCL_PROVIDER='tcp;ofi_rxm' one_way 3 "stream, 3 rails, tcp;ofi_rxm"
hosts --ipv6 2 200mbit
one_way 2 "stream, 2 rails, IPv6"
both_ways 2 "all_reduce, 2 rails, IPv6"
finish
