#!/bin/sh
# Goal: an allocation that fails, anywhere in the runtime, ends in a clean error or in none. Method:
# the workload, whose oracle sees what is lost, doubled or out of order, on ranks whose allocations
# fail by seed, together with other faults. A run ends well, or with a status of the program's or of
# ferry_main's and a line that says what found no memory; it never hangs, crashes, or breaks a
# promise. Then: that memory was refused at all, that equal seeds give equal runs, and that the tape
# repeats them.
set -u
ferry=$1 scarce=$2 seeds=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
good=0 clean=0 refused=0
for seed in $(seq "$seeds"); do
    case $((seed % 4)) in
    0) plan=malloc=0.02,random ranks=5 ;;
    1) plan=malloc=0.002 ranks=7 ;;
    2) plan=malloc=0.0005,random ranks=4 ;;
    *) plan=malloc=0.005,nomem=0.01 ranks=2 ;;
    esac
    timeout 60 "$ferry" sim -n $ranks --seed "$seed" -f $plan -t "$scratch/tape" "$scarce" \
        >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$(tr ',' '\n' <"$scratch/tape" | grep -c '^malloc@')" -gt 0 ] && refused=$((refused + 1))
    if [ $status -eq 0 ]; then
        good=$((good + 1))
    elif { [ $status -eq 1 ] || [ $status -eq 4 ]; } &&
        tail -1 "$scratch/err" | grep -qE 'no memory|FERRY_ENOMEM|cannot be made'; then
        clean=$((clean + 1))
    else
        echo "seed $seed, $ranks ranks, $plan: status $status:"
        tail -3 "$scratch/err"
        exit 1
    fi
done
echo "$seeds seeds: $refused with refused allocations, $good ended well, $clean with a clean error"
[ $refused -ge $((seeds / 2)) ] && [ $good -ge $((seeds / 4)) ] && [ $clean -gt 0 ] || exit 1

run() { "$ferry" sim -n 4 --seed 3 -r -f "$1" -t "$2" "$scarce" 2>&1 | grep -v -e ' per event' -e faults; }
first=$(run malloc=0.02 "$scratch/tape")
[ "$first" = "$(run malloc=0.02 "$scratch/again")" ] || { echo "two runs differ"; exit 1; }
cmp "$scratch/tape" "$scratch/again" || exit 1
grep -q malloc@ "$scratch/tape" || { echo "no memory was refused"; exit 1; }
[ "$first" = "$(run "@$scratch/tape" "$scratch/again")" ] || { echo "the tape gives another run"; exit 1; }
