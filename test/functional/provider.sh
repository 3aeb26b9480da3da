#!/usr/bin/env bash
# Which provider is chosen, whatever hides some of libfabric's: always the same
# one, named in one line with the reason; what was refused is named with its own,
# and where none is left init fails.
. "$(dirname "$0")/lib.sh"
need_show

export OFI_NCCL_TCP_IF='=lo'

# The chosen provider, once for each line that tells of it.
choice() {
	grep -oE 'NET/fabrail: provider [^,]+, libfabric' <<<"$err" |
		sed -E 's/.* provider (.*), libfabric/\1/'
}

# chooses WHAT PROVIDER REASON
chooses() {
	show_good "$1"
	holds "$1: $2 is chosen, in one line" is "$(choice)" "$2"
	holds "$1: with the reason" one_line_says INFO "provider $2, libfabric" \
		"$3"
}

# chooses_none WHAT TEXT...: one line has all of the texts.
chooses_none() {
	local what=$1
	shift
	show_bad "$what"
	holds "$what: nothing is chosen" is "$(choice)" ""
	holds "$what: says why not" one_line_says WARN "no rail possible" "$@"
}

unasked="OFI_NCCL_PROVIDER is not set"
asked="OFI_NCCL_PROVIDER asks for it"
show_good "no choice"
native=$(choice)
holds "no choice: a native one" grep -qE '^(net|tcp)$' <<<"$native"
for run in second third; do
	chooses "no choice, $run run" "$native" "$unasked"
done

for hidden in "$native" "${native^^}" ^ofi_rxm ^nonsense; do
	FI_PROVIDER=$hidden chooses "FI_PROVIDER=$hidden" "$native" "$unasked"
done
if [ "$native" = net ]; then
	# The same transport has two more names.
	FI_PROVIDER=^tcp chooses "FI_PROVIDER=^tcp" net "$unasked"
	for hidden in ^net tcp 'tcp;ofi_rxm'; do
		FI_PROVIDER=$hidden chooses "FI_PROVIDER=$hidden" \
			'tcp;ofi_rxm' "$unasked"
		holds "FI_PROVIDER=$hidden: says why not net" one_line_says \
			INFO "not used: provider net:" "FI_PROVIDER" "\"$hidden\""
	done
	FI_PROVIDER=tcp OFI_NCCL_PROVIDER=tcp chooses "both ask for tcp" \
		'tcp;ofi_rxm' "$asked"
	holds "both ask for tcp: says why not tcp itself" \
		one_line_says INFO "not used: provider tcp: has reliable datagrams"
fi

# Those that serve only when asked for do not serve because the rest is hidden.
for hidden in "" nonsense sockets shm ofi_mrail psm2 'udp;ofi_rxd' "^$native,tcp"; do
	FI_PROVIDER=$hidden chooses_none "FI_PROVIDER=$hidden" \
		"provider $native: libfabric offers none" \
		"FI_PROVIDER in the environment, \"$hidden\", may hide it"
	holds "FI_PROVIDER=$hidden: of rxm too" \
		one_line_says WARN "no rail possible" "provider tcp;ofi_rxm:"
done

mkdir "$scratch/empty"
FI_PROVIDER_PATH=$scratch/empty chooses "no provider in FI_PROVIDER_PATH" \
	"$native" "$unasked"
OFI_NCCL_PROVIDER='' chooses "OFI_NCCL_PROVIDER is empty" "$native" "$unasked"
for name in sockets shm; do
	OFI_NCCL_PROVIDER=$name show
	if [ $rc -eq 0 ]; then
		OFI_NCCL_PROVIDER=$name chooses "OFI_NCCL_PROVIDER=$name" $name \
			"$asked"
		FI_PROVIDER=$native OFI_NCCL_PROVIDER=$name chooses_none \
			"FI_PROVIDER=$native, OFI_NCCL_PROVIDER=$name" \
			"provider $name:" "\"$native\", may hide it"
	fi
done
OFI_NCCL_PROVIDER=ofi_mrail chooses_none "OFI_NCCL_PROVIDER=ofi_mrail" \
	"provider ofi_mrail: cannot write with remote CQ data"
OFI_NCCL_PROVIDER=nonsense chooses_none "OFI_NCCL_PROVIDER=nonsense" \
	"provider nonsense: not a provider known here"
finish
