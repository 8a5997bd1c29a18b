#!/bin/sh
# Goal: tools/rename-1.0 does what docs/porting-to-1.0.md says. Method: writes a program that has the
# old name of each row of the page's table of names, and runs the script on it. The program must then
# have the new names, which the headers must know. A second run must change nothing.
set -eu
source=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk -F'`' '/^## / { here = $0 == "## Names" }
    here && /^[|] `[A-Za-z_]+` [|] `[A-Za-z_]+` [|]$/ { print $2, $4 }' \
    "$source/docs/porting-to-1.0.md" >"$scratch/rows"
rows=$(wc -l <"$scratch/rows")
[ "$rows" -ge 40 ] || { echo "$rows rows in docs/porting-to-1.0.md, expected 40 or more"; exit 1; }
awk '{ printf "/* row %d */ (%s);\n", NR, $1 }' "$scratch/rows" >"$scratch/old.c"
awk '{ printf "/* row %d */ (%s);\n", NR, $2 }' "$scratch/rows" >"$scratch/new.c.expected"
perl "$source/tools/rename-1.0" "$scratch/old.c" >"$scratch/log"
diff "$scratch/new.c.expected" "$scratch/old.c" ||
    { echo "FAILED: tools/rename-1.0 differs from docs/porting-to-1.0.md"; exit 1; }
perl "$source/tools/rename-1.0" "$scratch/old.c" | grep '^changed' &&
    { echo "FAILED: a second run changes the program"; exit 1; }
cat "$source"/include/ferry/*.h >"$scratch/headers"
while read -r old new; do
    grep -qw "$new" "$scratch/headers" || { echo "FAILED: no header has $new, once $old"; exit 1; }
done <"$scratch/rows"
