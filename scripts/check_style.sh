#!/usr/bin/env bash
# How the code reads, as far as a script can tell: format, headers that compile
# alone and carry their contract, no function that cannot bound what it writes,
# scripts that shellcheck accepts.
#
# check_style.sh [TREE]    exits 1 after one line for each offence
# CC (cc), FR_CPPFLAGS: the compiler, and flags for headers of libraries
set -eu

tree=${1:-$(dirname "$0")/..}
cd "$tree"
cc=${CC:-cc}
bad=0

offence() {
	echo "$1"
	bad=1
}

skip() {
	echo "not checked: $1 is not installed"
}

# Files of the project with one of the given suffixes, as git would list them
# and as a release holds them.
files() {
	local dir dirs=()
	for dir in src plugin include test; do
		[ -d "$dir" ] && dirs+=("$dir")
	done
	find "${dirs[@]}" "$@" | sort
}

check_format() {
	local file
	command -v clang-format >/dev/null || { skip clang-format; return; }
	[ -e .clang-format ] || { offence ".clang-format is missing"; return; }
	while IFS= read -r file; do
		clang-format --dry-run -Werror "$file" 2>/dev/null ||
			offence "$file: clang-format would change it"
	done < <(files -name '*.[ch]')
}

check_guard() {
	local file=$1 macro
	macro=$(sed -n 's/^#ifndef \([A-Z][A-Z0-9_]*_H\)$/\1/p;T;q' "$file")
	if [ -z "$macro" ] || ! grep -q "^#define $macro\$" "$file"; then
		offence "$file: no include guard"
	fi
}

check_compiles_alone() {
	local file=$1
	# By its path from the top: with its folder among the -I a header could
	# take the place of one of the system (sched.h).
	# shellcheck disable=SC2086 # FR_CPPFLAGS is a list
	echo "#include \"$file\"" |
		"$cc" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
			-Isrc -Iinclude -I. -Itest ${FR_CPPFLAGS-} \
			-fsyntax-only -x c - 2>/dev/null ||
		offence "$file: does not compile alone"
}

# A contract is a comment that opens with two stars. It names the function that
# follows it, says what comes back unless that is void, and says one of whose,
# which thread and whether it waits, unless the top of the file said it for all.
check_contracts() {
	awk -v file="$1" '
	function fail(text) {
		printf "%s:%d: contract of %s %s\n", file, first, name, text
		n++
	}
	/^\/\*\*/ { open = 1; name = ""; text = ""; first = FNR; next }
	/^\/\*/ && !seen_top { top = 1; seen_top = 1 }
	top { top_text = top_text $0 }
	top && /\*\// { top = 0 }
	open == 1 && name == "" {
		name = $2
		if ($3 != "-")
			fail("does not open with \"name - what\"")
	}
	open == 1 { text = text "\n" $0 }
	open == 1 && /\*\// { open = 2; proto = ""; next }
	open == 2 {
		proto = proto $0
		if ($0 !~ /[;{]/)
			next
		open = 0
		if (index(proto, name "(") == 0 && proto !~ "struct " name)
			fail("stands above something else")
		if (proto !~ /^(static inline )?void [a-z]/ &&
		    proto ~ /\(/ && text !~ /Return/)
			fail("does not say what it returns")
		if ((text top_text) !~ /[Oo]wner|[Tt]hread|[Bb]lock/)
			fail("names neither ownership, threads nor blocking")
	}
	END { exit n > 0 }' "$1" || bad=1
}

check_headers() {
	local file
	command -v "$cc" >/dev/null || { skip "$cc"; return; }
	while IFS= read -r file; do
		check_guard "$file"
		check_compiles_alone "$file"
		check_contracts "$file"
		[ "$(head -c 2 "$file")" = "/*" ] ||
			offence "$file: does not open with a comment that says what it is"
	done < <(files -name '*.h')
}

banned='strcpy|strcat|stpcpy|sprintf|vsprintf|strtok|gets|atoi|atol|atoll|alloca'

check_words() {
	local file line
	while IFS= read -r file; do
		while IFS= read -r line; do
			offence "$file:$line"
		done < <(
			grep -nE "(^|[^A-Za-z0-9_])($banned)\(" "$file" |
				sed 's/:.*[^A-Za-z0-9_]\('"${banned//|/\\|}"'\)(.*/: \1() is banned/'
			grep -nE '(^|[^A-Za-z])(TODO|FIXME|XXX|HACK)([^A-Za-z]|$)' "$file" |
				sed 's/:.*/: unfinished work is named/'
			grep -nE '[ 	]+$' "$file" | sed 's/:.*/: blank at the end of the line/'
		)
	done < <(files -name '*.[ch]')
}

check_scripts() {
	local file
	command -v shellcheck >/dev/null || { skip shellcheck; return; }
	while IFS= read -r file; do
		shellcheck -x -P SCRIPTDIR "$file" >/dev/null ||
			offence "$file: shellcheck finds fault"
	done < <(find autogen.sh .ci scripts test -type f 2>/dev/null |
		while IFS= read -r file; do
			read -r line <"$file" 2>/dev/null || continue
			case $line in
			'#!'*sh | '# shellcheck shell='*) echo "$file" ;;
			esac
		done | sort)
}

check_format
check_headers
check_words
check_scripts
exit $bad
