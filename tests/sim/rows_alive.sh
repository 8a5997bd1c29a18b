#!/bin/sh
# Goal: rows.sh notices a stale file. Method: in a copy of docs/papers, each figure of each file
# becomes another one, so each file must be named; so must a file that nothing makes, and the page.
# The rows are those that the test of the right files made, so they are not made again.
set -u
build=$1 root=$2
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$root"/docs/papers/*.csv; do
    awk -F, -v OFS=, 'NR > 1 { for (i = NF - 1; i <= NF; i++) $i = -1 - $i } { print }' "$file" \
        >"$scratch/$(basename "$file")"
done
echo "ranks,seconds" >"$scratch/unknown.csv"
cp "$root/docs/papers/README.md" "$scratch"
sh "$here/rows.sh" "$build" "$root" "$scratch" >"$scratch/said"
status=$?
[ $status -eq 1 ] || { echo "rows.sh ended with status $status"; exit 1; }
for file in "$scratch"/*.csv "$scratch/README.md"; do
    grep -q "^stale: $(basename "$file"):" "$scratch/said" && continue
    echo "rows.sh did not notice $(basename "$file")"
    exit 1
done
