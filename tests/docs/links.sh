#!/bin/sh
# Goal: no document points at a file that is not there. Method: follows each relative link of each
# page.
set -eu
cd "$1"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
find . -name '*.md' -not -path './build/*' | while read -r page; do
    grep -o '](\([^)#:]*\)[)#]' "$page" | sed 's/^](//; s/[)#]$//' | while read -r target; do
        [ -e "${page%/*}/$target" ] || echo "$page: $target is not there"
    done
done >"$list"
cat "$list"
[ ! -s "$list" ]
