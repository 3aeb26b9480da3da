#!/usr/bin/env bash
# Refuses a plugin that exports anything but its versioned tables: another
# symbol could take the place of one of the program that loads it.
#
# check_exports.sh PLUGIN.so [PATTERN]
# PATTERN: extended regular expression for a whole name; ncclNetPlugin_v[0-9]+
set -euo pipefail

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: $0 PLUGIN.so [PATTERN]" >&2
	exit 2
fi
plugin=$1
pattern=${2:-ncclNetPlugin_v[0-9]+}

if ! names=$(nm -D --defined-only --format=posix "$plugin" | cut -d ' ' -f 1); then
	echo "$plugin: nm cannot read it" >&2
	exit 1
fi
others=$(printf '%s\n' "$names" | grep -vxE "$pattern|" || true)
if [ -n "$others" ]; then
	printf '%s\n' "$others" | sed "s|^|$plugin exports |"
	exit 1
fi
if [ -z "$names" ]; then
	echo "$plugin exports no table"
	exit 1
fi
