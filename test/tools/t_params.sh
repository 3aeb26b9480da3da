#!/usr/bin/env bash
# The manual's parameter tables are those of the source.
. "$(dirname "$0")/lib.sh"
gen=${FR_BUILDDIR:-.}/gen-params
[ -x "$gen" ] || skip "gen-params was not built"

run diff "$FR_SRCDIR/doc/parameters.md" <("$gen" page)
holds "doc/parameters.md is up to date (make update-params)" rc_is 0

readme_table() {
	sed -n '/^<!-- parameters: begin -->$/,/^<!-- parameters: end -->$/p' \
		"$FR_SRCDIR/README.md" | sed '1d;$d'
}
run diff <(readme_table) <("$gen" table)
holds "the README's table is up to date (make update-params)" rc_is 0

run "$gen" nonsense
holds "an unknown form is refused" rc_is 2
finish
