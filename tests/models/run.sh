#!/bin/sh
# Checks each model exhaustively with Spin, then breaks the one safeguard that it is about and
# expects Spin to find the error: a model that cannot fail proves nothing. make verify.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# check MODEL [-DMUTANT]: prints Spin's verdict, "errors: 0" or another number. If a model says what
# has to come at the end (ltl), it is checked first without that.
check()
{
    model=$1
    shift
    spin -DNOLTL "$@" -a "$here/$model.pml" >log
    gcc -w -O2 -DSAFETY -DMEMLIM=2048 -o pan pan.c
    ./pan -m1000000 >log
    grep -q 'max search depth too small' log && { cat log; exit 1; }
    sed -n 's/.*\(errors: [0-9]*\).*/\1/p' log
    sed -n 's/ *\([0-9.e+]* states, stored\).*/    \1/p' log
}

# check_progress MODEL [-DMUTANT]: as check, of what comes in the end when every process goes on.
check_progress()
{
    model=$1
    shift
    spin "$@" -a "$here/$model.pml" >log
    gcc -w -O2 -DNFAIR=4 -DMEMLIM=2048 -o pan pan.c
    ./pan -a -f -m1000000 >log
    grep -q 'max search depth too small' log && { cat log; exit 1; }
    sed -n 's/.*\(errors: [0-9]*\).*/\1/p' log
    sed -n 's/ *\([0-9.e+]* states, stored\).*/    \1, in the end/p' log
}

failed=0
while read -r model mutants; do
    printf '%s\n' "$model"
    check "$model" | tee verdict
    grep -qx 'errors: 0' verdict || failed=1
    if grep -q '^ltl' "$here/$model.pml"; then
        check_progress "$model" | tee verdict
        grep -qx 'errors: 0' verdict || failed=1
    fi
    if [ "$model" = deaths ]; then
        printf '%s with MORTAL\n' "$model"
        check "$model" -DMORTAL | tee verdict
        grep -qx 'errors: 0' verdict || failed=1
    fi
    for mutant in $mutants; do
        printf '%s with %s\n' "$model" "$mutant"
        check "$model" "-D$mutant" | tee verdict
        ! grep -qx 'errors: 0' verdict || { echo "the mutant survives"; failed=1; }
        grep -q '^ltl' "$here/$model.pml" || continue
        check_progress "$model" "-D$mutant" | tee verdict
        ! grep -qx 'errors: 0' verdict || { echo "the mutant makes progress"; failed=1; }
    done
done <<END
cell NO_REDO UNLOCK_FIRST LATE_NOTE NO_HOLDS WRITE_SHARED REFS_TOO
termination ONE_WAVE COUNT_ARRIVALS
rest NO_STIR CREATED_FIRST BLIND
deaths NO_SHARE NO_MARK ANSWERS_ON
wake NO_BARRIER
doze NO_BARRIER NO_SECOND_LOOK
migration ANY_ORDER STALE_LOCATION NO_WAIT NO_MOVEMENT
credit NO_ROUTE FORWARD_WAITS MAIN_WAITS TOKEN_LOST
ending NO_ASK TELL_FIRST NO_WORD
END
[ "$failed" -eq 0 ] && echo "all models hold and every mutant is found"
exit "$failed"
