#!/bin/sh
# Goal: the cost of closing for a rank does not grow with the number of the others. If a rank dies
# while they close, all that still wait notice, and a program that does not go on after deaths fails.
# Method: counts frames of a small program on 256 and 1,024 ranks. Then a rank dies at every 100 ns of
# its end, and one that is heard of while others leave a program that goes on after deaths. No run
# waits forever. $4: of so many runs, one is made.
set -u
ferry=$1 hello=$2 goes_on=$3 stride=${4:-1}
failures=0
# A run that is ended does not free its memory: that is no leak of its program.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# frames RANKS: of the program on so many ranks.
frames()
{
    "$ferry" sim -r -N infiniband-hdr -n "$1" "$hello" 2>&1 >/dev/null |
        sed -n 's/^sim: .* \([0-9]*\) frames, .*/\1/p'
}

few=$(frames 256) many=$(frames 1024)
if [ "${few:-0}" -eq 0 ] || [ "${many:-0}" -gt $((few * 6)) ]; then
    echo "$few frames on 256 ranks, $many on 1,024: expected at most six times as many"
    failures=$((failures + 1))
fi

# end_of RANKS PROGRAM: when it ends, in nanoseconds.
end_of()
{
    "$ferry" sim -r -N infiniband-hdr -n "$1" "$2" 2>&1 >/dev/null |
        sed -n 's/^sim: .*: 0\.0*\([0-9]*\) s, .*/\1/p'
}

# run RANKS PLAN PROGRAM: sets the status, and `died`, which is empty unless the rank has died.
run()
{
    died=$("$ferry" sim -N infiniband-hdr -n "$1" -f "$2" "$3" 2>&1 >/dev/null)
    got=$?
    died=$(echo "$died" | grep 'as planned')
}

# expect WHICH COMMAND...: `got` is one of the statuses WHICH.
expect()
{
    case " $1 " in *" $got "*) return ;; esac
    echo "$4 on $2 ranks, with $3: status $got, expected one of $1"
    failures=$((failures + 1))
}

# fails RANKS PLAN PROGRAM: no rank waits forever, and the run fails if a rank dies in it.
fails()
{
    run "$@"
    if [ -n "$died" ]; then
        expect "1 137" "$@"
    else
        expect 0 "$@"
    fi
}

# lives RANKS PLAN PROGRAM: no rank waits forever. Ranks that meet without others may fail.
lives()
{
    run "$@"
    expect "0 1" "$@"
}

end=$(end_of 24 "$hello") step=0
while [ $step -lt 30 ]; do
    fails 24 "die=3@$((end - step * 100))ns" "$hello"
    step=$((step + stride))
done

# Others hear of a death 0.4 ms later. One rank stands still, so that they are in the last barrier
# by then: some have just left it, and some fail in it and meet again without those.
end=$(end_of 8 "$goes_on") step=0
while [ $step -lt 60 ]; do
    lives 8 "stop=4@$((end - 1000))ns:$((399000 + step * 50))ns,die=3@${end}ns" "$goes_on"
    step=$((step + stride))
done
exit $((failures > 0))
