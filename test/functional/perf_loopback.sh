#!/usr/bin/env bash
# Every collective over loopback rails: ranks, rails, providers and tables of the
# plugin, in as few runs as make every pair of choices meet once.
. "$(dirname "$0")/lib.sh"
need_perf

commands="all_reduce all_gather reduce_scatter broadcast reduce sendrecv alltoall"
ranks="2 3 4"
rails="1 2 3 4"
providers="net tcp;ofi_rxm"
tables="v6 v9 v12"
other_tables="v4 v5 v7 v8 v10 v11" # not with everything else

# Each line one run, greedily: the one that covers most of the pairs that are
# left. The number of pairs goes to standard error.
pairwise() {
	awk -v axes="$commands|$ranks|$rails|$providers|$tables" '
	function pair(a, x, b, y) { return a "=" x "&" b "=" y }
	function gain(c,   a, b, n) {
		n = 0
		for (a = 1; a < na; a++)
			for (b = a + 1; b <= na; b++)
				if (pair(a, pick[c, a], b, pick[c, b]) in left)
					n++
		return n
	}
	BEGIN {
		na = split(axes, axis, "|")
		total = 1
		for (a = 1; a <= na; a++) {
			size[a] = split(axis[a], values, " ")
			for (v = 1; v <= size[a]; v++)
				value[a, v] = values[v]
			total *= size[a]
		}
		for (c = 0; c < total; c++) {
			rest = c
			for (a = 1; a <= na; a++) {
				pick[c, a] = rest % size[a] + 1
				rest = int(rest / size[a])
			}
			for (a = 1; a < na; a++)
				for (b = a + 1; b <= na; b++) {
					p = pair(a, pick[c, a], b, pick[c, b])
					if (!(p in left)) {
						left[p] = 1
						pairs++
					}
				}
		}
		for (todo = pairs; todo > 0; todo -= best) {
			best = 0
			for (c = 0; c < total; c++) {
				g = gain(c)
				if (g > best) {
					best = g
					chosen = c
				}
			}
			line = value[1, pick[chosen, 1]]
			for (a = 2; a <= na; a++)
				line = line " " value[a, pick[chosen, a]]
			print line
			for (a = 1; a < na; a++)
				for (b = a + 1; b <= na; b++)
					delete left[pair(a, pick[chosen, a],
						b, pick[chosen, b])]
		}
		print pairs >"/dev/stderr"
	}'
}

export OFI_NCCL_TCP_IF='=lo'
# The names by which this libfabric has them: net is tcp from 1.18 on.
present=
for provider in $providers; do
	OFI_NCCL_PROVIDER=$provider perf all_reduce --ranks 2 -b 8 -e 8 -n 1 -w 0
	if grep -q 'no rail possible: provider' <<<"$err"; then
		echo "provider $provider: not offered by the libfabric here"
		continue
	fi
	holds "a run with provider $provider" [ $rc -eq 0 ]
	present="$present $(sed -n 's/.*"provider":"\([^"]*\)".*/\1/p;T;q' \
		"$scratch/json")"
done
providers=${present# }
[ -n "$providers" ] || skip "libfabric offers neither net nor tcp;ofi_rxm"

types=(float int8 double bfloat16 uint64 half int32 uint8 int64 uint32)
ops=(sum max min prod avg)

carried() {
	report_rails | awk '$2 + $3 > 0' | wc -l
}

mapfile -t runs < <(pairwise 2>"$scratch/pairs")
for i in "${!runs[@]}"; do
	read -r command n m provider table <<<"${runs[i]}"
	export OFI_NCCL_FORCE_NUM_RAILS=$m OFI_NCCL_PROVIDER=$provider
	type=${types[i % ${#types[@]}]}
	op=${ops[i % ${#ops[@]}]}
	before=$SECONDS
	perf_good "${runs[i]}" "$command" --ranks "$n" --abi "$table" \
		-b 8 -e 512K -f 16 -n 3 -w 1 -d "$type" -o "$op"
	holds "${runs[i]}: the rails that were asked for" \
		is "$(report_rails | wc -l)" "$m"
	holds "${runs[i]}: all of them carry bytes" is "$(carried)" "$m"
	holds "${runs[i]}: the provider that was asked for" \
		report_says "\"provider\":\"$provider\""
	holds "${runs[i]}: the table that was asked for" \
		report_says "\"abi\":\"$table\""
	echo "$((SECONDS - before)) s: ${runs[i]}, $type $op"
done

export OFI_NCCL_FORCE_NUM_RAILS=2 OFI_NCCL_PROVIDER=${providers%% *}
n=3
for table in $other_tables; do
	for command in all_reduce sendrecv; do
		perf_good "$table: $command" "$command" --ranks "$n" \
			--abi "$table" -b 8 -e 512K -f 16 -n 3 -w 1
		holds "$table: the table that was asked for" \
			report_says "\"abi\":\"$table\""
	done
done
echo "budget: ${#runs[@]} runs for $(cat "$scratch/pairs") pairs"
finish
