#!/bin/sh
# Goal: no program floods when it gets more ranks. With k times the ranks, events grow by k times
# the ratio of the logarithms, and one tenth more. A farm whose ranks leave one by one tells each
# of the others: its events grow with the square at most. Method: counts of events at two sizes.
set -u
ferry=$1 hello=$2 tree=$3 uts=$4 elastic=$5 synthetic=$6
failures=0

# How many events a program of `$1` ranks takes.
count() {
    ranks=$1
    shift
    "$ferry" sim -r -n "$ranks" "$@" 2>&1 >/dev/null | sed -n 's/^sim: \([0-9]*\) events,.*/\1/p'
}

# grows FORM FEW MANY PROGRAM...: the events with MANY ranks are at most those with FEW, times what
# FORM allows.
grows() {
    form=$1 few=$2 many=$3
    shift 3
    if ! awk -v form="$form" -v few="$few" -v many="$many" -v a="$(count "$few" "$@")" \
        -v b="$(count "$many" "$@")" 'BEGIN {
            k = many / few
            most = form == "square" ? k * k : k * log(many) / log(few) * 1.1
            printf "%d ranks: %d events, %d ranks: %d, at most %.2f times as many\n", few, a, many,
                b, most
            exit !(a > 0 && b > 0 && b <= most * a)
        }'; then
        echo "too many: $*"
        failures=1
    fi
}

grows linear 64 1024 "$hello"
grows linear 64 1024 --net torus "$hello"
grows linear 64 1024 "$tree"
grows linear 64 1024 --net infiniband-hdr "$synthetic" --tasks 8 --work compute
grows linear 1024 2048 "$uts"
grows square 64 256 "$elastic"
exit "$failures"
