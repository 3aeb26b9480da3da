#!/usr/bin/env bash
# Refuses an include that points upward or sideways in the tree, libfabric and
# hwloc outside src/fabric, the ABI headers of the host program outside the
# parts that speak it, and a state field that is written outside its one writer.
#
# check_layers.sh [TREE]     exits 1 after one line for each offence
set -eu

tree=${1:-$(dirname "$0")/..}
cd "$tree"

# Folder: the folders it may include from. "own" is always allowed. A name with
# a slash is one header.
allowed() {
	case $1 in
	src/base) echo "" ;;
	src/wire) echo "base" ;;
	src/fabric) echo "base wire" ;;
	src/net) echo "base wire fabric" ;;
	src/kv) echo "base wire" ;;
	plugin) echo "base wire net nccl" ;;
	src/tools) echo "base wire fabric/raw.h fabric/provider.h nccl" ;;
	src/async) echo "base wire kv nccl fabrail" ;;
	src/ofl) echo "base wire fabric net ofl.h fabrail" ;;
	src/memd) echo "base wire fabric net fabrail" ;;
	esac
}

bad=0
offence() {
	echo "$1"
	bad=1
}

# One quoted include: file, line, folder, header as written.
check_quoted() {
	local file=$1 line=$2 folder=$3 header=$4 from=${4%%/*} ok
	[ "$from" = "${folder#src/}" ] && return
	case $header in
	*..*)
		offence "$file:$line: \"$header\" climbs out of its folder"
		return
		;;
	*/*) ;;
	*)
		[ "$header" != config.h ] && [ -e "$(dirname "$file")/$header" ] &&
			return
		;;
	esac
	for ok in $(allowed "$folder"); do
		[ "$ok" = "$from" ] || [ "$ok" = "$header" ] && return
	done
	offence "$file:$line: $folder may not include \"$header\""
}

check_angled() {
	local file=$1 line=$2 folder=$3 header=$4
	case $folder:$header in
	src/fabric:*) ;;
	*:rdma/* | *:infiniband/*)
		offence "$file:$line: <$header> belongs to src/fabric alone" ;;
	*:hwloc*)
		offence "$file:$line: <$header> belongs to src/fabric alone" ;;
	esac
	case $folder:$header in
	plugin:* | src/tools:* | src/async:*) ;;
	*:nccl/* | *:nccl*.h)
		offence "$file:$line: $folder may not include <$header>" ;;
	esac
	case $header in
	check.h) offence "$file:$line: <$header> belongs to the tests" ;;
	esac
}

check_includes() {
	local folder=$1 file=$2 line text header
	while IFS=: read -r line text; do
		header=${text#*[\"<]}
		header=${header%%[\">]*}
		case $text in
		*\"*) check_quoted "$file" "$line" "$folder" "$header" ;;
		*) check_angled "$file" "$line" "$folder" "$header" ;;
		esac
	done < <(grep -nE '^[ 	]*#[ 	]*include[ 	]*["<]' "$file" || true)
}

# The function around a line is the last head that began in column one.
check_state_writers() {
	awk -v file="$1" '
	/^[A-Za-z_][A-Za-z0-9_ *]*\(/ {
		fn = $0
		sub(/\(.*/, "", fn)
		sub(/.*[ *]/, "", fn)
	}
	/[A-Za-z0-9_\])](->|\.)state[ \t]*=[^=]/ && fn !~ /(^|_)(set_state|set_state_locked|init)$/ {
		printf "%s:%d: %s() writes a state; only *_set_state() and *_init() may\n",
			file, FNR, fn
		n++
	}
	END { exit n > 0 }' "$1" || bad=1
}

for folder in plugin src/*; do
	[ -d "$folder" ] || continue
	if [ "$folder" != src/base ] && [ -z "$(allowed "$folder")" ]; then
		offence "$folder: not a floor that this script knows"
		continue
	fi
	while IFS= read -r file; do
		check_includes "$folder" "$file"
		check_state_writers "$file"
	done < <(find "$folder" -name '*.[ch]' | sort)
done
exit $bad
