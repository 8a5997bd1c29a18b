#!/bin/sh
# The instructions that operations execute stay within bench/instructions.budgets, with 5% room:
# instructions.sh PROGRAM BUDGETS CONFIG COMPILER. A budget of nothing must fail, which shows that
# the test can. Times that the library measures decide how often it polls, so a busy machine adds
# instructions: one count of three has to stay within. Status 77: they cannot be counted here.
set -u
program=$1 budgets=$2 config=$3 compiler=$4
room=1.05

skip()
{
    echo "skipped: $*"
    exit 77
}

command -v valgrind >/dev/null || skip "valgrind is not installed"
[ -x "$(dirname "$program")/peers/instructions" ] || skip "valgrind's headers were not there"
case $config in Rel*) ;; *) skip "the build is not optimised ($config)" ;; esac
grep -q "hold for: $compiler\$" "$budgets" || skip "the budgets are not those of $compiler"

sh "$(dirname "$0")/format.sh" "$program" || exit 1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Names what passes its budget, times $1.
over()
{
    awk -F '[:,]' -v room="$1" '$6 == "null" || $6 > $8 * room {
        gsub(/"/, "", $4)
        print $4 ": " $6 " instructions, the budget is " $8
        bad = 1 }
        END { exit bad }' "$scratch/json"
}

for attempt in first second third; do
    "$program" --json --quick >"$scratch/json" || exit 1
    over 0 >/dev/null && { echo "a budget of nothing is kept"; exit 1; }
    echo "$attempt count:"
    over $room && exit
done
exit 1
