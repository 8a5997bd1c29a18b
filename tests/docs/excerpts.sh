#!/bin/sh
# Goal: a guide shows the code that its example has. Method: finds each page that says "The whole
# program is [NAME.c](...)". Each line of code from there to the first command must be in
# examples/NAME.c. Comments, blanks, a semicolon or brace at the end and the example's check(f, ...)
# do not count. At least $2 pages must have such code.
set -eu
cd "$1"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
for page in docs/guide/*.md; do
    name=$(tr '\n' ' ' <"$page" | grep -oE 'whole program is \[[a-z_]+[.]c\]' |
        sed -n '1s/.*\[\(.*\)\]/\1/p')
    [ -n "$name" ] || continue
    awk -v page="$page" -v name="$name" '
        function normal(s)
        {
            while (match(s, /\/[*]([^*]|[*][^\/])*[*]\//))
                s = substr(s, 1, RSTART - 1) substr(s, RSTART + RLENGTH)
            gsub(/[ \t\n]|[.][.][.]/, "", s)
            return s
        }
        FILENAME != page { all = all $0 "\n"; next }
        FNR == 1 { all = normal(all) }
        { here = here || index($0, "[" name "]") }
        here && /^    [$]/ { exit }
        here && /^    ./ {
            code = normal($0)
            sub(/[;{]+$/, "", code)
            lines++
            if (code != "" && index(all, code) == 0)
                printf "%s:%d: examples/%s has no line: %s\n", page, FNR, name, $0
        }
        END { if (lines > 0) print "compared" }' "examples/$name" "$page" >>"$list"
done
pages=$(grep -c '^compared$' "$list" || true)
grep -v '^compared$' "$list" && exit 1
[ "$pages" -ge "$2" ] || { echo "$pages pages with code of an example, expected $2 or more"; exit 1; }
