#!/bin/sh
# Goal: traces of programs with movers are whole and are drawn. The time of ranks whose movers wait
# is idle or the runtime's. Blocks that are objects have accounts. Each block that changes ranks is
# a move. Method: the movers of the program in $2 send messages; the scheduler moves the blocks of
# the one in $3 after each task. The command in $1 draws their traces. FERRY_THREADS is each of the
# other arguments.
set -u
ferry=$1
account=$2
amr=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail()
{
    echo "FAILED: threads $threads: $*"
    failed=1
}

# traced PROGRAM ARGUMENT...
traced()
{
    rm -rf "$folder/run"
    FERRY_TRACE=$folder/run FERRY_RANKS=3 FERRY_THREADS=$threads timeout 120 "$@" \
        >"$folder/out" 2>&1 || fail "$*: status $?: $(cat "$folder/out")"
    [ "$(tail -qn 1 "$folder"/run/rank-*.trace | grep -c '^end$')" = 3 ] || fail "not three traces"
    timeout 60 "$ferry" report "$folder/run" >"$folder/out.report" 2>&1 ||
        fail "the report of $*: $(cat "$folder/out.report")"
}

# The sum over ranks of field $2 of the lines that begin with $1.
sum()
{
    cat "$folder"/run/rank-*.trace | awk -v word="$1" -v field="$2" \
        'index($0, word " ") == 1 { n += $field } END { printf "%.0f\n", n }'
}

for threads; do
    traced "$account" 20
    for trace in "$folder"/run/rank-*.trace; do
        awk '/^time / { all = $3 - $2 } /^stat idle_ns / { idle = $3 }
            /^stat runtime_ns / { runtime = $3 } /^stat send_ns / { send = $3 }
            /^[ir] / { stretches++ }
            END { exit !(send > 0 && runtime > 0 && idle + runtime <= all && stretches > 1) }' \
            "$trace" || fail "times do not fit: $(grep '^time\|_ns ' "$trace")"
    done
    FERRY_SCHEDULER=rotate traced "$amr" 4 8
    moved=$(sed -n 's/.* \([0-9]*\) blocks changed ranks;.*/\1/p' "$folder/out")
    moves=$(cat "$folder"/run/rank-*.trace | grep -c '^move ')
    [ "$moves" -gt 0 ] && [ "$moves" = "$moved" ] || fail "$moves moves, $moved blocks moved"
    [ "$(sum object 3)" = "$(sum 'stat tasks' 3)" ] && [ "$(sum object 3)" -ge 128 ] ||
        fail "$(sum object 3) messages to blocks, $(sum 'stat tasks' 3) tasks"
    for word in advance_tile advance_fine 'Why objects moved'; do
        grep -q "$word" "$folder/run/report.html" || fail "no $word in the report"
    done
done
exit $failed
