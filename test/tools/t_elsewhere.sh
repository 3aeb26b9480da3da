#!/usr/bin/env bash
# The scripts that test fabrail elsewhere say why they cannot, and leave the
# machine's own lists of packages alone.
. "$(dirname "$0")/lib.sh"
libfabric2=$FR_SRCDIR/scripts/libfabric2
arm64=$FR_SRCDIR/scripts/arm64-check
nowhere=http://127.0.0.1:9/debian
unset FR_TEST_EMULATOR
echo 'ID=fedora' >"$scratch/os-release"

for script in "$libfabric2" "$arm64"; do
	name=$(basename "$script")
	where=(--cache "$scratch/cache.$name" --build "$scratch/build.$name")
	run "$script" --help
	holds "$name has help" rc_is 0
	holds "$name names its options" says "--cache DIR"
	run "$script" --bogus
	holds "$name refuses what it does not know" rc_is 2
	run "$script" --cache
	holds "$name refuses an option without its value" rc_is 2
	FR_OS_RELEASE=$scratch/os-release run "$script" "${where[@]}"
	holds "$name needs apt" rc_is 77
	holds "$name says so" says "needs apt"
done

# lists: what a library function says on a machine without a mirror.
lists() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	FR_DEBIAN_MIRROR=$nowhere run bash -c '. "$0"; fr_apt_open "$@"' \
		"$FR_SRCDIR/scripts/lib" "$scratch/apt" "$@"
}

. "$FR_SRCDIR/scripts/lib"
if fr_is_debian; then
	before=$(find /var/lib/apt/lists /etc/apt -newer "$scratch/os-release")
	lists deb trixie arm64
	holds "without a mirror there are no lists" rc_is 1
	holds "and the mirror is named" says "apt cannot read Debian's trixie (arm64) from $nowhere"
	FR_DEBIAN_MIRROR=$nowhere run "$libfabric2" --cache "$scratch/none" \
		--build "$scratch/none.build"
	holds "libfabric2 cannot run then" rc_is 77
	holds "and says why" says "apt cannot read"
	if [ -z "$(fr_missing "$fr_needs_arm64")" ] && [ "$(uname -m)" = x86_64 ]; then
		FR_DEBIAN_MIRROR=$nowhere run "$arm64" --cache "$scratch/none" \
			--build "$scratch/none.build" --suite bookworm
		holds "nor can arm64-check" rc_is 77
		holds "and it says why" says "apt cannot read"
	fi
	out=$before
	holds "the machine's lists are as they were" is "$before" \
		"$(find /var/lib/apt/lists /etc/apt -newer "$scratch/os-release")"
fi
finish
