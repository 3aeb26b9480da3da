#!/usr/bin/env bash
# Where nothing can be learnt of the host's topology there are devices all the
# same, and the reason is said once.
. "$(dirname "$0")/lib.sh"
need_perf
need_show
export OFI_NCCL_TCP_IF='=lo'

# usable WHAT [COMMAND...]: one device of one rail.
usable() {
	local what=$1
	show_good "$@"
	holds "$what: one device without a place" \
		grep -qE '^device fabrail0 speed 10000 .* pci none$' <<<"$out"
}

# said_once WHAT TEXT
said_once() {
	holds "$1: \"$2\" is said once" is "$(grep -c -- "$2" <<<"$err")" 1
}

usable "as it is"
holds "as it is: nothing is missing" nothing_says "hwloc finds no topology"

cat >"$scratch/empty.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x1" complete_cpuset="0x1"
 allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
 allowed_nodeset="0x1" gp_index="1">
<object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1"
 nodeset="0x1" complete_nodeset="0x1" gp_index="2"/>
<object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1"
 nodeset="0x1" complete_nodeset="0x1" gp_index="3"/>
</object>
</topology>
XML
head -n 5 "$scratch/empty.xml" >"$scratch/cut.xml"
: >"$scratch/zero.xml"
echo "no topology at all" >"$scratch/noise.xml"
HWLOC_XMLFILE=$scratch/empty.xml usable "an empty machine"
for file in cut zero noise; do
	HWLOC_XMLFILE=$scratch/$file.xml usable "$file.xml"
	said_once "$file.xml" "hwloc finds no topology in HWLOC_XMLFILE"
done
HWLOC_XMLFILE=$scratch/nowhere.xml usable "a file that is not there"

usable "one CPU" taskset -c 0

mkdir "$scratch/readonly"
chmod 500 "$scratch/readonly"
TMPDIR=$scratch/readonly usable "TMPDIR that cannot be written"
TMPDIR=$scratch/nowhere usable "TMPDIR that is not there"
NCCL_TOPO_FILE=$scratch/mine.xml usable "NCCL_TOPO_FILE"
holds "NCCL_TOPO_FILE: nobody wrote it" [ ! -e "$scratch/mine.xml" ]

if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016 # expands in the shell that runs it
	usable "/sys is empty" unshare -m sh -c \
		'mount -t tmpfs none /sys && exec "$@"' sh
	said_once "/sys is empty" "sysfs says nothing of network interfaces"
	# shellcheck disable=SC2016
	TMPDIR=$scratch/readonly usable "TMPDIR is full" unshare -m sh -c '
		mount -t tmpfs -o size=4k none "$TMPDIR" &&
		{ cat /dev/zero >"$TMPDIR/all" 2>/dev/null; exec "$@"; }' sh
	# Another namespace than /sys shows: its interfaces are not there.
	show_good "/sys of another namespace" unshare -n sh -c \
		'ip link set lo up && exec "$@"' sh
fi
finish
