#!/bin/sh
# One benchmark, each case once: format.sh PROGRAM [LARGER]. Each line of --smoke --json must be one
# object of the eight members that docs/performance.md names. Each case of --list must have one
# line, and there may be no other. A case of Ferry's own must have a figure. Bad options must be
# refused with a message. Cases whose names match the expression LARGER differ from others in size
# alone: they are left out, unless TESTS_WHOLE is set.
set -u
program=$1 larger=${2:-}
[ -z "${TESTS_WHOLE:-}" ] || larger=
name=$(basename "$program")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail()
{
    echo "$name: $*"
    failures=$((failures + 1))
}

# Refused with status 2 and one line that says what was wrong.
refuses()
{
    "$program" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq 2 ] || fail "$* ended with status $status, not 2"
    [ -s "$scratch/out" ] && fail "$* wrote to standard output"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "$* said: $(cat "$scratch/err")"
}

refuses --case no-such-case
refuses --case
refuses --runs 0
refuses --runs 3x
refuses --runs
refuses --frobnicate
"$program" --help | grep -q -- --json || fail "--help does not mention --json"

"$program" --list >"$scratch/list" || fail "--list failed"
[ -s "$scratch/list" ] || fail "--list is empty"
grep -vnE '^[a-z0-9][A-Za-z0-9-]*$' "$scratch/list" && fail "--list has such names"

cases=
if [ -n "$larger" ]; then
    grep -E -e "$larger" "$scratch/list" >"$scratch/left" || fail "no case matches $larger"
    echo "$name: left out: $(tr '\n' ' ' <"$scratch/left")"
    grep -vE -e "$larger" "$scratch/list" >"$scratch/kept" && mv "$scratch/kept" "$scratch/list"
    cases=$(sed 's/^/--case /' "$scratch/list")
fi
# shellcheck disable=SC2086
"$program" --smoke --json $cases >"$scratch/json" 2>"$scratch/err" || fail "--json failed"
cat "$scratch/err"
number='-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?'
member="($number|null)"
word='"[A-Za-z0-9_./%-]+"'
line="^\\{\"bench\":\"$name\",\"case\":$word,\"ours\":$member,\"theirs\":$member,\"peer\":$word,"
line="$line\"unit\":$word,\"ratio\":$member,\"runs\":[0-9]+\\}\$"
grep -vnE "$line" "$scratch/json" && fail "such lines break the format"
grep -n '"ours":null' "$scratch/json" && fail "such cases have no figure of ours"
sed 's/.*"case":"\([^"]*\)".*/\1/' "$scratch/json" | sort -u >"$scratch/cases"
sort -u "$scratch/list" | diff - "$scratch/cases" || fail "cases of --list and of --json differ"

# The ratio is what it says.
awk -F '[:,]' '{ ours = $6; theirs = $8; ratio = $14
    if (theirs != "null" && theirs > 0 && (ratio - ours / theirs) ^ 2 > 1e-6 * (ratio ^ 2 + 1e-12)) {
        print; bad = 1 } }
    END { exit bad }' "$scratch/json" || fail "such ratios are not ours / theirs"

[ "$failures" -eq 0 ]
