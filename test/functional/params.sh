#!/usr/bin/env bash
# A value that a parameter cannot have ends init with one line that names the
# variable, the value and what is allowed; a name that is none draws a warning.
. "$(dirname "$0")/lib.sh"
need_perf
need_show

export OFI_NCCL_TCP_IF='=lo'
small=(all_reduce -b 1K -e 1K -n 1 -w 0)

# refused NAME VALUE ALLOWED...
refused() {
	local name=OFI_NCCL_$1 value=$2
	shift 2
	export "$name=$value"
	show_bad "$name=$value"
	holds "$name=$value: one line names all of it" \
		one_line_says WARN "$name" "'$value'" "$@"
	unset "$name"
}

# accepted NAME VALUE
accepted() {
	local name=OFI_NCCL_$1
	export "$name=$2"
	show_good "$name=${2:0:20}"
	unset "$name"
}

for value in " 4" "4 " 1e6 -1 abc 4k 9 99999999999999999999 1000000 "4," +4; do
	refused MAX_RAILS "$value" "1 to 8"
done
refused MAX_RAILS 0 "1 to 8"
for value in true yes "１" "4é" 4.0 0x 0x9 "1,2" 4G; do
	refused MAX_RAILS "$value" "1 to 8" "default 4"
done
for value in " 4K" "4K " 1e6 abc 4kb 99999999999999999999 17179869184G; do
	refused MIN_STRIPE_SIZE "$value" "1 or more" "default 128K"
done
for value in " 1" "1 " 10 -1 t "TRUE," ja "ⅰ"; do
	refused KEEPER "$value" "0 or 1" "default 1"
done
refused FORCE_NUM_RAILS 9 "0 to 8"
refused CQ_READ_COUNT 257 "1 to 256"
refused CQ_SIZE 15 16
refused MIN_STRIPE_SIZE 128KB
refused MIN_STRIPE_SIZE 0
refused MIN_STRIPE_SIZE -128K
refused EAGER_MAX_SIZE -2 -1 63K
refused EAGER_MAX_SIZE 64513 -1 63K
refused PEER_TIMEOUT 3x
refused PEER_TIMEOUT -1s
refused CONNECT_TIMEOUT "3 s"
refused KEEPER maybe
refused MR_CACHE_DISABLE 2
refused SEND_COMPLETION remote "delivery" "local"
refused USE_IPV6_TCP ja

accepted MAX_RAILS 0x4
accepted MAX_RAILS ""
accepted MIN_STRIPE_SIZE 64k
accepted EAGER_MAX_SIZE -1
accepted MIN_STRIPE_SIZE 0x10
accepted MIN_STRIPE_SIZE 1G
for value in true TRUE True 1 yes YES on y; do
	accepted KEEPER "$value"
done
accepted KEEPER No
accepted SEND_COMPLETION LOCAL
accepted PEER_TIMEOUT 500ms

# Lists: what they say does not depend on how they say it.
thousand=$(seq -f 'x%g' -s , 1000)
for list in =lo "=lo," ,=lo ",,=lo,," =lo,=lo =lo,lo =lo,eth,eth,é,=ü "=lo,$thousand" \
	"$thousand,=lo" lo; do
	accepted TCP_IF "$list"
done
# refused_list LIST: no interface is of that name.
refused_list() {
	OFI_NCCL_TCP_IF=$1 show_bad "TCP_IF=${1:0:20}"
	holds "TCP_IF=${1:0:20}: says why lo is no rail" one_line_says WARN \
		"no rail possible: interface lo: not among the interfaces asked"
}
for list in "," ",," " =lo" "=lo " " lo" LO "$thousand" "ｌｏ"; do
	refused_list "$list"
done
# Of two lists the longer item decides; loopback that is named is used.
for list in lo =lo "," "$thousand"; do
	accepted EXCLUDE_TCP_IF "$list"
done

export OFI_NCCL_MAX_RIALS=2
may_warn 'OFI_NCCL_MAX_RIALS'
perf_good "a name with a slip" "${small[@]}"
holds "a name with a slip: the nearest one is told" \
	one_line_says WARN OFI_NCCL_MAX_RIALS OFI_NCCL_MAX_RAILS
unset OFI_NCCL_MAX_RIALS

export OFI_NCCL_PROTOCOL=RDMA
perf_good "a name of another plugin" "${small[@]}" -v
holds "a name of another plugin: told, without a warning" \
	one_line_says INFO OFI_NCCL_PROTOCOL
unset OFI_NCCL_PROTOCOL

# A statistics file that cannot be written harms nothing.
export OFI_NCCL_STATS_FILE=$scratch/nowhere/stats
may_warn OFI_NCCL_STATS_FILE
perf_good "a file that cannot be written" "${small[@]}"
holds "a file that cannot be written: told" \
	one_line_says WARN OFI_NCCL_STATS_FILE "$scratch/nowhere/stats"
finish
