#!/usr/bin/env bash
# fabrail-perf as a whole, on the plugin over plain TCP.
set -u

perf=${FR_PERF:-$FR_BUILDDIR/fabrail-perf}
plugin=${FR_TCP_PLUGIN:-$FR_BUILDDIR/.libs/tcp_plugin.so}
dir=$(mktemp -d) || exit 1
ns=
cleanup() {
	for n in $ns; do ip netns del "$n" 2>/dev/null; done
	rm -rf "$dir"
}
trap cleanup EXIT
unset RANK WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE NCCL_DEBUG
failures=0

fail() {
	echo "FAILED: $1"
	sed 's/^/  | /' "$dir/out"
	failures=$((failures + 1))
}

# want STATUS PATTERN WORDS...: runs fabrail-perf; its output, both streams,
# must match each line of PATTERN.
want() {
	local status=$1 patterns=$2 rc=0
	shift 2
	"$perf" "$@" >"$dir/out" 2>&1 || rc=$?
	[ $rc = "$status" ] || fail "$*: exit status $rc, not $status"
	while IFS= read -r p; do
		grep -q -e "$p" "$dir/out" || fail "$*: no \"$p\""
	done <<<"$patterns"
}

collectives="all_reduce all_gather reduce_scatter broadcast reduce sendrecv
alltoall"
well="wrong elements: 0, all is well"

a_collective_is_right_at_every_size() {
	for c in $collectives; do
		want 0 "$well" "$c" -p "$plugin" --ranks 3 -b 4 -e 2M -f 32 \
			-n 2 -w 1 -r 2 --channels 2 -d bfloat16 -o avg
	done
}

every_table_and_protocol_carries_it() {
	for v in v4 v5 v6 v7 v8 v9 v10 v11 v12; do
		want 0 "table $v, provider sockets-api
$well" all_reduce -p "$plugin" --abi $v -b 1K -e 64K -f 64 -n 2
	done
	for p in simple ll; do
		want 0 "$well" alltoall -p "$plugin" --proto $p -b 1 -e 1M \
			-f 1000 -n 2 -d int8
	done
}

messages_are_right() {
	want 0 "p99
$well" pingpong -p "$plugin" -b 0 -e 100K -f 17 -n 20
	want 0 "msgs
$well" stream -p "$plugin" -b 1 -e 100K -f 17 -n 50 --window 3
	want 0 "$well" stream -p "$plugin" -b 1K -e 1K -n 50 --recv-size 64K
}

a_wrong_byte_is_counted() {
	# the first message is of the timed run, the second of the check's own
	for n in 1 2; do
		FR_TCP_PLUGIN_FAULT=corrupt:$n want 1 \
			"wrong elements: [1-9].*FAILED" all_gather -p "$plugin" \
			-b 64K -e 64K -n 1 -w 0 --proto simple
	done
	FR_TCP_PLUGIN_FAULT=corrupt:3 want 1 "wrong elements: [1-9].*FAILED" \
		stream -p "$plugin" -b 64 -e 64 -n 10
	grep -q "rank . failed" "$dir/out" && fail "wrong results are no crash"
	FR_TCP_PLUGIN_FAULT=corrupt:1 want 0 "N/A" \
		all_gather -p "$plugin" -b 64K -e 64K -n 1 -w 0 -c 0 \
		--proto simple
}

an_error_names_rank_and_call() {
	FR_TCP_PLUGIN_FAULT=shorten:2 want 1 "bytes and not" \
		all_reduce -p "$plugin" -b 64K -e 64K -n 1 --proto simple
	FR_TCP_PLUGIN_FAULT=error:2 want 1 \
		"rank [01]: isend to rank [01], channel 0: remote error (6)
rank [01] failed (exit status 1) in: " \
		all_reduce -p "$plugin" -b 64K -e 64K -n 1
	FR_TCP_PLUGIN_FAULT=die:2 want 1 \
		"rank [01] was killed by signal 9 (Killed) in: all_reduce of" \
		all_reduce -p "$plugin" -b 64K -e 64K -n 1
	FR_TCP_PLUGIN_FAULT=hang:2 want 1 \
		"rank [01]: no progress for 1 s in: all_reduce of 65536" \
		all_reduce -p "$plugin" -b 64K -e 64K -n 1 -T 1
}

bad_input_is_one_line_and_status_2() {
	want 2 "^fabrail-perf: --minbytes (-b): '1Q' is not allowed" \
		all_reduce -p "$plugin" -b 1Q
	[ "$(wc -l <"$dir/out")" = 1 ] || fail "more than one line"
	want 1 "nothing.so" all_reduce -p /tmp/nothing.so
	want 1 "no ncclNetPlugin_v4 to v12" all_reduce -p libc.so.6
	want 1 "device 3: .* has 1 device" all_reduce -p "$plugin" --device 3
	want 0 "usage: fabrail-perf" --help
	want 0 "^fabrail-perf " --version
}

files_have_what_was_measured() {
	want 0 "$well" all_reduce -p "$plugin" -b 8 -e 32 -n 1 \
		--csv "$dir/csv" --json "$dir/json"
	grep -q '^{"version":1,"command":"all_reduce","plugin":"tcp-test"' \
		"$dir/json" || fail "json begins otherwise"
	[ "$(grep -c size_bytes "$dir/json")" = 2 ] || fail "json: not 2 results"
	[ "$(wc -l <"$dir/csv")" = 3 ] || fail "csv: not 3 lines"
	"$perf" stream -p "$plugin" -b 8 -e 8 -n 9 --json >"$dir/out" \
		2>/dev/null || fail "json to stdout"
	head -c 12 "$dir/out" | grep -q '^{"version":1' ||
		fail "stdout has more than json"
	if command -v gnuplot >/dev/null; then
		want 0 "$well" all_reduce -p "$plugin" -b 8 -e 2K -n 1 \
			--plot "$dir/p.svg"
		grep -q "</svg>" "$dir/p.svg" || fail "no plot"
	fi
	PATH=/nowhere want_without_gnuplot
}

want_without_gnuplot() {
	local rc=0
	"$perf" all_reduce -p "$plugin" --plot "$dir/q.svg" >"$dir/out" 2>&1 ||
		rc=$?
	PATH=/usr/bin:/bin
	[ $rc = 2 ] || fail "plot without gnuplot: exit status $rc"
	grep -q "needs gnuplot" "$dir/out" || fail "gnuplot is not named"
}

ranks_of_a_launcher_meet_at_the_master() {
	# below the range from which other programs are given theirs
	local port=$((20000 + 4 * ($$ % 3000))) pids="" rc=0
	for r in 2 1 0; do
		RANK=$r WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
			"$perf" all_reduce -p "$plugin" -b 1K -e 4K -n 2 -T 20 \
			>"$dir/out$r" 2>&1 &
		pids="$pids $!"
	done
	for p in $pids; do wait "$p" || rc=$?; done
	cat "$dir"/out? >"$dir/out"
	[ $rc = 0 ] || fail "launched ranks: exit status $rc"
	grep -q "$well" "$dir/out0" || fail "rank 0 says nothing"
	[ ! -s "$dir/out1" ] || fail "rank 1 is not silent"

	RANK=1 WORLD_SIZE=2 want 1 "rank 0 cannot be reached" all_reduce \
		-p "$plugin" -T 1 --master 127.0.0.1:1
	RANK=0 WORLD_SIZE=2 want 1 "1 of 1 ranks did not come" all_reduce \
		-p "$plugin" -T 1 --master 127.0.0.1:$((port + 3))
}

ranks_run_in_their_namespaces() {
	local a=frperf$$a b=frperf$$b
	if [ "$(id -u)" != 0 ] || ! ip netns add "$a" 2>/dev/null; then
		echo "namespaces: left out, they need root"
		return
	fi
	ns="$a $b"
	ip netns add "$b"
	ip -n "$a" link add rail0 type veth peer name rail0 netns "$b"
	ip -n "$a" addr add 10.99.0.1/24 dev rail0
	ip -n "$b" addr add 10.99.0.2/24 dev rail0
	for n in $ns; do
		ip -n "$n" link set lo up
		ip -n "$n" link set rail0 up
	done
	FR_TCP_PLUGIN_IF=rail0 want 0 "rail rail0  *[0-9]* B sent
$well" all_reduce -p "$plugin" -b 1M -e 1M -n 2 -w 0 --netns "$a,$b"
	want 1 "cannot open /run/netns/none$$" all_reduce -p "$plugin" \
		--netns "none$$,$b"
}

raw_libfabric_runs_beside() {
	export OFI_NCCL_TCP_IF=lo OFI_NCCL_FORCE_NUM_RAILS=2
	for c in pingpong stream all_reduce; do
		for l in local delivery; do
			want 0 "$l completion, median of 5 pairs
(ratio)
$well" $c -p "$plugin" -b 1K -e 256K -f 256 -n 5 --raw --completion $l \
				--json "$dir/json"
			grep -q '"raw_ratio":[0-9]*\.[0-9]*[1-9]' "$dir/json" ||
				fail "$c $l: no ratio"
		done
	done
	want 0 "$well" stream -p "$plugin" -b 1K -e 1K -n 20 --raw \
		--raw-op message
	unset OFI_NCCL_TCP_IF OFI_NCCL_FORCE_NUM_RAILS
}

for t in a_collective_is_right_at_every_size \
	every_table_and_protocol_carries_it messages_are_right \
	a_wrong_byte_is_counted an_error_names_rank_and_call \
	bad_input_is_one_line_and_status_2 files_have_what_was_measured \
	ranks_of_a_launcher_meet_at_the_master ranks_run_in_their_namespaces \
	raw_libfabric_runs_beside; do
	echo "$t"
	"$t"
done
[ $failures = 0 ] || echo "$failures failures"
[ $failures = 0 ]
