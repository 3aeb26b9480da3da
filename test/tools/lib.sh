# shellcheck shell=bash
# Sourced by the tests of the scripts: a scratch directory that goes away, and
# checks that count. A test ends with "finish".
set -u

FR_SRCDIR=${FR_SRCDIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
checks=0
failures=0

# put FILE: standard input becomes FILE in the scratch directory.
put() {
	mkdir -p "$scratch/$(dirname "$1")"
	# Never through a link into the machine.
	rm -f "$scratch/$1"
	cat >"$scratch/$1"
}

# run COMMAND...: its output in $out, its status in $rc.
run() {
	out=$("$@" 2>&1)
	rc=$?
}

# holds WHAT CONDITION...: one check, by the exit status of the condition.
holds() {
	local what=$1
	shift
	checks=$((checks + 1))
	if ! "$@"; then
		failures=$((failures + 1))
		echo "FAIL: $what"
		printf '%s\n' "${out-}" | sed 's/^/    | /'
	fi
}

rc_is() {
	[ "${rc-}" -eq "$1" ]
}

is() {
	[ "$1" = "$2" ]
}

# The output has a line that holds the text.
says() {
	grep -qF -- "$1" <<<"${out-}"
}

is_silent() {
	[ -z "${out-}" ]
}

skip() {
	echo "$1"
	exit 77
}

finish() {
	echo "100%: Checks: $checks, Failures: $failures, Errors: 0"
	[ $failures -eq 0 ]
}
