#!/usr/bin/env bash
# The package logic against a machine made of toys, and the counting of results.
. "$(dirname "$0")/lib.sh"
lib=$FR_SRCDIR/scripts/lib

# A machine where every program and module of the needs is a toy: apt-get makes
# the program named like the package, and every call is written down.
toy_machine() {
	local tool
	rm -rf "${scratch:?}"/*
	mkdir -p "$scratch/bin"
	for tool in awk bash cat chmod env grep mktemp rm tail; do
		ln -s "$(command -v $tool)" "$scratch/bin/$tool"
	done
	put bin/apt-get <<'END'
#!/bin/bash
echo "apt-get $*" >>"$TOY/calls"
[ -e "$TOY/offline" ] && { echo "no network" >&2; exit 100; }
for arg; do
	case $arg in
	thing-dev) : >"$TOY/thing.pc" ;;
	tool-*) : >"$TOY/bin/tool" && chmod +x "$TOY/bin/tool" ;;
	esac
done
END
	put bin/pkg-config <<'END'
#!/bin/bash
[ -e "$TOY/$2.pc" ]
END
	put bin/sudo <<'END'
#!/bin/bash
echo "sudo $*" >>"$TOY/calls"
exec "$@"
END
	put bin/id <<'END'
#!/bin/bash
echo "${TOY_UID:-0}"
END
	chmod +x "$scratch"/bin/{apt-get,pkg-config,sudo,id}
	echo 'ID=debian' >"$scratch/os-release"
	: >"$scratch/calls"
}

needs='
cmd tool tool-package
pc thing thing-dev
'

# packages: fr_packages on the toy machine.
packages() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	run env -i TOY="$scratch" TOY_UID="${uid:-0}" PATH="$scratch/bin" \
		FR_OS_RELEASE="$scratch/os-release" bash -c \
		'. "$0"; PATH=$TOY/bin; fr_packages "$1"' "$lib" "$needs"
}

called() {
	grep -qF -- "$1" "$scratch/calls"
}

called_nothing() {
	[ ! -s "$scratch/calls" ]
}

toy_machine
packages
holds "what is missing is installed" rc_is 0
holds "what is missing is named" says "Installing tool-package thing-dev"
holds "the lists are fetched first" called "apt-get -q update"
holds "both packages come in one call" called "tool-package thing-dev"
: >"$scratch/calls"
packages
holds "nothing is missing any more" rc_is 0
holds "then nothing is said" is_silent
holds "then nothing is installed" called_nothing

toy_machine
: >"$scratch/thing.pc"
packages
holds "one missing package is enough" rc_is 0
holds "only that one is named" says "Installing tool-package"
holds "what is there is left alone" eval '! called thing-dev'
holds "root needs no sudo" eval '! called sudo'

toy_machine
uid=1000
packages
holds "an ordinary user installs" rc_is 0
holds "by way of sudo" called "sudo apt-get -q update"
toy_machine
rm "$scratch/bin/sudo"
packages
holds "without sudo it fails" rc_is 1
holds "without sudo it says what root would do" \
	says "apt-get install tool-package thing-dev"
holds "without sudo it tries nothing" called_nothing
uid=0

toy_machine
: >"$scratch/offline"
packages
holds "a failing apt-get fails" rc_is 1
holds "its words are shown" says "no network"

toy_machine
echo 'ID=fedora' >"$scratch/os-release"
packages
holds "another system fails" rc_is 1
holds "another system learns the whole list" eval \
	'says "  tool-package" && says "  thing-dev"'
holds "another system is left alone" called_nothing
: >"$scratch/thing.pc"
: >"$scratch/bin/tool" && chmod +x "$scratch/bin/tool"
packages
holds "another system with all there goes on" rc_is 0

# result NAME RESULT: one test of a finished "make check"; its log is read.
result() {
	printf ':test-result: %s %s\n' "$2" "$1" | put "$1.trs"
	put "$1.log"
}

counts() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	run bash -c '. "$0"; "$1" "$2"' "$lib" "$1" "$scratch"
}

rm -rf "${scratch:?}"/*
counts fr_count
holds "no test counts nothing" says "0 0 0"
result unit/a PASS <<<'100%: Checks: 7, Failures: 0, Errors: 0'
result unit/b FAIL <<<'50%: Checks: 6, Failures: 2, Errors: 1'
result plain PASS <<<'hello'
result crash FAIL <<<'Segmentation fault'
result odd ERROR <<<'no such file'
result two PASS <<'END'
100%: Checks: 2, Failures: 0, Errors: 0
100%: Checks: 3, Failures: 0, Errors: 0
END
result cases PASS <<<'12 passed, 0 failed, 2 skipped'
result rails SKIP <<'END'
needs root for network namespaces

SKIP rails (exit status: 77)
END
echo 'not a test' >"$scratch/test-suite.log"
counts fr_count
holds "checks, programs, failures and skips add up" says "28 5 3"
counts fr_skip_reasons
holds "a skip gives its reason" says "rails: needs root for network namespaces"
counts fr_failures
holds "a failure shows its log" eval 'says "Segmentation fault" && says "no such"'
holds "a passed test shows none" eval '! says hello'
result lying PASS <<<'0%: Checks: 1, Failures: 1, Errors: 0'
counts fr_count
holds "a failed check counts although its program passed" says "28 6 3"
finish
