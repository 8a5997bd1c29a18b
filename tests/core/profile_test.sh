#!/bin/sh
# Goal: FERRY_PROFILE reports what a run did, its parts fit together, and each time is counted where
# it belongs. Method: runs three programs, with FERRY_THREADS as each of the arguments after $6, and
# looks at the report's rows and sums. The ranks of the program in $1 send each other a known number
# of requests. The one in $2 puts and gets a known number of bytes. The program in $3 balances, so
# that its helpers poll the control lane: frames of that lane must have no rows of handling, which
# only application threads may write. The program in $5 takes known times in the simulator of $4.
# All ranks but rank 2 leave the job of the program in $6.
set -u
storm=$1
ring=$2
under=$3
ferry=$4
costs=$5
leaving=$6
shift 6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    sed 's/^/    /' "$folder/report"
    failed=1
}

# The report of running $2 with ranks as threads ($1 = 1) or processes (0).
profile() {
    FERRY_PROFILE=$folder/report FERRY_RANKS=3 FERRY_THREADS=$1 timeout 60 "$2" ||
        fail "threads $1: $2: status $?"
}

# $2 operation $3 verb: $4 calls of $5 bytes, by layer $1
row() {
    found=$(awk -v op="$2" -v verb="$3" '$2 == op && $3 == verb { print $1, $4, $5 }' \
        "$folder/report")
    [ "$found" = "$1 $4 $5" ] || fail "$2 $3: \"$found\", expected \"$1 $4 $5\""
}

# Ranks sum up to the last line; what they sent, and its bytes, to the rows; their times to the run.
sums() {
    [ "$(grep -c '^[0-9]' "$folder/report")" = 3 ] || fail "not a line per rank"
    # "get answer" is two words: fields are counted from the end.
    awk '/ sent / && !/^rank/ { sent += $(NF - 3); bytes += $(NF - 2) }
        / handled / && !/^rank/ { handled += $(NF - 3) }
        /^[0-9]/ { s += $2; h += $3; b += $4; wall += $9 }
        /^[0-9]/ && ($5 + $7 + $8 > 100.5 || $5 < 0 || $6 < 0) { bad = $0 }
        /^[0-9]/ { runtime[$1] = $5; cpu[$1] = $6 }
        # Processor time includes the helper thread, here in ms; $8 ms are $9 % of the run. All are
        # rounded, which is much of a run of few ms.
        /^ +[0-9]/ && $8 > 0.001 {
            helper = ($7 + 0.0005) / ($8 - 0.0005) * ($9 + 0.00005)
            if (cpu[$1] > runtime[$1] + 0.011 + helper) bad = $0
        }
        /^all/ && ($2 != s || $3 != h || $4 != b || s != sent || h != handled || b != bytes ||
            wall - $9 > 0.01 || $9 - wall > 0.01) { bad = $0 }
        /^all/ { seen = 1 }
        END { if (!seen || bad != "") { print "sums do not fit:", bad; exit 1 } }' \
        "$folder/report" || fail "sums"
    # By category, a line per rank: send, pack, unpack, scheduler, poll and helper are all of the
    # sum.
    awk '/^ +[0-9]/ { left = $8 - $2 - $3 - $4 - $5 - $6 - $7; lines++
            if (left > 0.01 || left < -0.01) exit 1 }
        END { exit lines != 3 }' "$folder/report" || fail "categories"
}

for threads; do
    # 3 ranks, 5 rounds, each a tree of 2^11 - 1 requests.
    profile $threads "$storm"
    row core request sent 30705 0
    row core request handled 30705 0
    grep -q '^program *handlers *run *30705 ' "$folder/report" || fail "handlers"
    sums
    # A put and a get of 100,000 bytes per rank into the shared heap, and as many into other memory.
    profile $threads "$ring"
    row memory put copied 3 300000
    row memory get copied 3 300000
    bytes=$(awk '/^memory *put *sent/ { print $5 }' "$folder/report")
    [ "$bytes" = 300000 ] || fail "put by frames: $bytes bytes"
    sums
    FERRY_PROFILE=$folder/report FERRY_RANKS=3 FERRY_THREADS=$threads FERRY_SCHEDULER=stealing \
        FERRY_HEAP_BYTES=64M timeout 60 "$under" flood || fail "threads $threads: $under: status $?"
    grep -q '^balance *scheduler *sent' "$folder/report" || fail "no words of schedulers"
    grep -q '^core *request *handled' "$folder/report" || fail "no requests"
    grep -E '^[a-z]+ +(quiesce|arrival|scheduler|refusal|why|credit) +handled' "$folder/report" &&
        fail "frames of the control lane are counted"
done

# has PATTERN: a line of the report
has() {
    grep -q -- "$1" "$folder/report" || fail "no line: $1"
}
FERRY_PROFILE=$folder/report timeout 60 "$ferry" sim -n 3 "$costs" || fail "costs: status $?"
# Handlers are not of the frames that they are called for.
has '^program *handlers *run *2 *0 *7[0-9]*\.[0-9]* *14\.0..$'
has '^object *message *handled *3 *0 *[0-9.]* *0\.0..$'
# By category, in ms: send, pack, unpack, scheduler, poll, helper, all; some microseconds for frames.
has '^ *0 *0\.0.. *3\.0.. *0\.000 *0\.000 *0\.0.. *0\.000 *3\.0.. '
has '^ *1 *0\.0.. *0\.000 *10\.0.. *0\.000 *0\.0.. *0\.000 *10\.0.. '
has '^ *2 *0\.0.. *3\.0.. *0\.000 *0\.000 *0\.0.. *0\.000 *3\.0.. '
# The 3 ms in which rank 1 waited for both objects count once. It ran for 7 of 27 ms, and unpacked.
has '^1 .* 37\.0.  *37\.0. *25\.9. *37\.0. *0\.027 *11\.1.$'
has '^messages to objects by forwards:  0: 1  1: 1$'

for port in shm sim; do
    FERRY_PROFILE=$folder/report FERRY_PORT=$port FERRY_RANKS=4 timeout 60 "$leaving" 4 ||
        fail "port $port: $leaving: status $?"
    has '^ferry profile: 1 ranks$'
    has '^ranks that are not counted, since they have died or left: 0, 1, 3$'
done

FERRY_PROFILE=1 FERRY_RANKS=2 timeout 60 "$storm" 2>"$folder/err" || fail "status $?"
grep -q '^ferry profile: 2 ranks' "$folder/err" || fail "nothing on standard error"
# A file that cannot be written is reported before the run, by name.
for name in FERRY_PROFILE=$folder/none/report FERRY_TRACE=$folder/none/run FERRY_TRACE=$folder/err; do
    for port in shm sim; do
        env "$name" FERRY_PORT=$port FERRY_RANKS=2 timeout 60 "$storm" 2>"$folder/err" >"$folder/out" &&
            fail "$name, port $port: runs"
        [ ! -s "$folder/out" ] || fail "$name, port $port: prints $(cat "$folder/out")"
        grep -q "open: ${name%%=*} is \"${name#*=}\"; expected .*to write" "$folder/err" ||
            fail "$name, port $port: $(cat "$folder/err")"
    done
done
# An older file of a rank that dies is not taken for its own.
mkdir "$folder/run"
echo old >"$folder/run/rank-1.trace"
FERRY_TRACE=$folder/run FERRY_RANKS=2 FERRY_PORT=sim FERRY_SIM_FAULTS=die=1@1us timeout 60 "$storm" \
    2>"$folder/err" && fail "rank 1 did not die"
[ ! -e "$folder/run/rank-1.trace" ] || fail "a trace of an earlier run is left: $(cat "$folder/err")"
for off in "" 0; do
    FERRY_PROFILE=$off FERRY_RANKS=2 timeout 60 "$storm" 2>"$folder/err" || fail "status $?"
    [ -s "$folder/err" ] && fail "a report that nobody wanted: $(cat "$folder/err")"
done
exit $failed
