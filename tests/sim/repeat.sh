#!/bin/sh
# Goal: equal seeds give equal runs, unequal ones do not, and faults change no result. Method: hash
# and output of the workload, run twice, with another layout of addresses, and with another seed; of
# many seeds with a tape and without, which makes the heap another.
set -u
ferry=$1 workload=$3 seeds=$4
run() { "$ferry" sim -n 6 -r --seed "$1" --net cloud --faults "$2" "$workload" 2>&1 | grep -v ' per event'; }

# The kernel gives the same addresses each time. Some containers do not allow to ask for that.
fixed=yes
setarch -R true 2>/dev/null || fixed=no
[ $fixed = yes ] || echo "SKIPPED: another layout of addresses: setarch -R is refused here"

for plan in ring=4 random drop=0.1,dup=0.1,delay=0.3:50us cut=0-2@10us:1ms,slow=1:50; do
    first=$(run 5 "$plan")
    second=$(run 5 "$plan")
    other=$first
    if [ "$fixed" = yes ]; then
        other=$(UNUSED=$(printf '%04000d' 0) setarch -R sh -c "$(printf \
            'exec %s sim -n 6 -r --seed 5 --net cloud --faults %s %s' "$ferry" "$plan" \
            "$workload")" 2>&1 | grep -v ' per event')
    fi
    third=$(run 6 "$plan")
    [ "$first" = "$second" ] || { echo "$plan: two runs differ: $first / $second"; exit 1; }
    [ "$first" = "$other" ] || { echo "$plan: addresses matter: $first / $other"; exit 1; }
    [ "$first" != "$third" ] || { echo "$plan: the seed does not matter"; exit 1; }
    echo "$first" | grep -q 'sim: hash [0-9a-f]\{16\}$' || { echo "$plan: no hash: $first"; exit 1; }
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
hash_of() { "$ferry" sim -n 4 -r "$@" "$workload" 2>&1 | grep 'sim: hash'; }
for seed in $(seq "$seeds"); do
    [ "$(hash_of --seed $seed)" = "$(hash_of --seed $seed -t "$scratch/tape")" ] ||
        { echo "seed $seed: the heap's layout matters"; exit 1; }
done
