#!/bin/sh
# Makes ./configure. Needs autoconf, automake, libtool and pkg-config.
set -eu

cd "$(dirname "$0")"
missing=
for tool in autoconf:autoconf automake:automake libtoolize:libtool \
	pkg-config:pkg-config; do
	command -v "${tool%%:*}" >/dev/null 2>&1 || missing="$missing ${tool##*:}"
done
if [ -n "$missing" ]; then
	echo "autogen.sh: missing:$missing" >&2
	echo "On Debian and Ubuntu: apt-get install$missing" >&2
	exit 1
fi
mkdir -p build-aux
exec autoreconf --install --force --warnings=all
