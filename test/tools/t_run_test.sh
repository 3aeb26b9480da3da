#!/usr/bin/env bash
# The wrapper of every test hands its status on and ends what hangs.
. "$(dirname "$0")/lib.sh"
wrapper=$FR_SRCDIR/test/run_test

for status in 0 1 77 99; do
	run sh "$wrapper" sh -c "exit $status"
	holds "status $status is handed on" rc_is $status
done
# shellcheck disable=SC2016 # expanded when it runs
put says.sh <<<'echo "bash $BASH_VERSION"; exit 3'
run sh "$wrapper" "$scratch/says.sh"
holds "a script needs no execute permission" rc_is 3
holds "a script runs under bash" says "bash 5"
FR_TEST_EMULATOR="env MACHINE=arm64" run sh "$wrapper" printenv MACHINE
holds "a program runs under the emulator" says arm64
FR_TEST_EMULATOR="env MACHINE=arm64" run sh "$wrapper" "$scratch/says.sh"
holds "a script does without it" rc_is 3
export FR_TEST_TIMEOUT=1
run sh "$wrapper" sleep 30
holds "a hang ends" rc_is 124
holds "a hang is named" says "sleep: stopped after 1 s"
finish
