#!/bin/sh
# Goal: a job that hangs says why: which rank does what, which messages wait, who waits for whom.
# Method: jobs that hang in known ways (hang_program.c), as processes and, where the job asks
# itself, as threads; ask until the lines that must come have come. Usage: why_test.sh FERRY
# HANG_PROGRAM HANG_SHARED
ferry=$1
program=$2
shared=$3 # with the shared library, which has what prints in a plug-in
work=$(mktemp -d) || exit 1
job=
end_job()
{
    [ -z "$job" ] || kill -KILL "$job" 2>/dev/null
    [ -z "$job" ] || wait "$job" 2>/dev/null
    job=
}
trap 'end_job; rm -rf "$work"' EXIT
failures=0

fail()
{
    echo "FAILED: $*" >&2
    sed 's/^/    /' "$work/out" "$work/err" >&2
    failures=$((failures + 1))
}

# Whether every line of $work/wanted is found in $1, as a pattern.
holds_all()
{
    while read -r line; do
        grep -q -- "$line" "$1" || return 1
    done <"$work/wanted"
}

# until_told COMMAND...: runs it until its output in $work/out holds all that is wanted.
until_told()
{
    for _ in $(seq 300); do
        "$@" >"$work/out" 2>&1
        holds_all "$work/out" && return 0
        kill -0 "$job" 2>/dev/null || break
        sleep 0.05
    done
    fail "not all was told: $(cat "$work/wanted")"
}

# begin COMMAND...: starts a job.
begin()
{
    end_job
    : >"$work/out"
    "$@" >"$work/err" 2>&1 &
    job=$!
}

cat >"$work/wanted" <<'L'
rank 0 (process [0-9]*): waiting for messages$
nothing to do for [0-9.]* s
waits for rank 1, which has not sent the message for a receive, tag 7
waits for rank 0, which has not sent the message for a receive, tag 7
rank 2 (process [0-9]*): in a barrier
ranks in a barrier wait for rank 0 1$
deadlock: rank 0 waits for rank 1, which waits for rank 0
L
begin "$ferry" run -n 3 "$program" receive
until_told "$ferry" why $job
# By a rank's number too.
until_told "$ferry" why "$(sed -n 's/.*rank 1 (process \([0-9]*\)).*/\1/p' "$work/out")"

# SIGUSR1 asks, and does not end ranks that do not know it.
kill -USR1 $job
until_told cat "$work/err"
kill -0 $job || fail "SIGUSR1 ended the job"

# Ranks that are threads, of one process with or without a launcher.
begin "$ferry" run --threads -n 3 "$program" receive
until_told "$ferry" why $job
kill -USR1 $job
until_told cat "$work/err"
kill -0 $job || fail "SIGUSR1 ended the job of threads"
begin env FERRY_RANKS=3 FERRY_THREADS=1 "$program" receive
until_told "$ferry" why $job

cat >"$work/wanted" <<'L'
rank 0 (process [0-9]*): in ferry_quiesce
3 messages wait for object 0000100000000001, the oldest for [0-9.]* s: the program has still to install it here
3 messages for handler "refine" wait, the oldest for [0-9.]* s
3 messages or tasks of the job were not finished when last counted
L
begin "$ferry" run -n 3 "$program" object
until_told "$ferry" why $job
# Ages grow.
cp "$work/wanted" "$work/kept"
sed -i 's/oldest for /oldest for [1-9]/' "$work/wanted"
until_told "$ferry" why $job
mv "$work/kept" "$work/wanted"

# The job asks itself; ranks may be threads.
for linked in "$program" "$shared"; do
    for threads in 0 1; do
        begin env FERRY_STALL_S=1 FERRY_RANKS=3 FERRY_THREADS=$threads "$linked" object
        until_told cat "$work/err"
    done
done

# Calls of two groups in different orders on two ranks.
cat >"$work/wanted" <<'L'
rank 0 (process [0-9]*): in a barrier
waits for rank 1, which has not sent its part of ferry_barrier of 2 ranks, first 0$
waits for rank 0, which has not sent its part of ferry_barrier of 2 ranks, first 1$
deadlock: rank 0 waits for rank 1, which waits for rank 0
L
begin "$ferry" run -n 3 "$program" groups
until_told "$ferry" why $job
cat >"$work/wanted" <<'L'
rank 1: sim:   waits for rank 0, which has not sent its part of ferry_barrier of 2 ranks, first 1$
sim: deadlock: rank 0 waits for rank 1, which waits for rank 0
L
# Memory that the job holds when it is ended is no leak.
ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" timeout 60 "$ferry" sim -n 3 "$program" groups \
    >"$work/out" 2>&1
status=$?
[ $status -eq 120 ] || fail "status $status: sim groups"
holds_all "$work/out" || fail "sim: not all was told: $(cat "$work/wanted")"

# Each kind of operation, and how many there are beside those that are told.
cat >"$work/wanted" <<'L'
^    rank 1 has not handled a message to object [0-9a-f]*, handler "refine"$
^    rank 1 has not ended an operation of 100 bytes, tag 5$
no rank has sent the message for a receive from any rank, tag 9$
^    rank 1 has not sent the message for a receive, tag 7$
and 3 more operations are pending$
L
begin "$ferry" run -n 2 "$program" operations
until_told "$ferry" why $job

# Ranks that wait for one that does nothing are in no deadlock, in a real job and in a simulated one.
# without_deadlock HOW: all that is wanted is told, and no deadlock.
without_deadlock()
{
    begin "$ferry" run -n 3 "$program" $1
    until_told "$ferry" why $job
    ! grep deadlock "$work/out" || fail "$1: a deadlock is reported"
    end_job
    [ "$1" != late ] || return 0 # its rank sleeps outside virtual time
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" timeout 60 "$ferry" sim -n 3 "$program" $1 \
        >"$work/out" 2>&1
    grep -q 'nothing will ever happen' "$work/out" || fail "sim $1 is not stuck"
    ! grep deadlock "$work/out" || fail "sim $1: a deadlock is reported"
}
cat >"$work/wanted" <<'L'
rank 0 (process [0-9]*): in a collective operation$
waits for rank 1, which has not sent its part of ferry_allreduce of 2 ranks, first 0$
ranks in a barrier wait for rank 0 1$
L
without_deadlock group
printf '%s\n' 'rank 0 (process [0-9]*): in a collective operation$' \
    'rank 1 (process [0-9]*): waiting for messages$' >"$work/wanted"
without_deadlock root
cat >"$work/wanted" <<'L'
^    rank 1 has not sent the message for a receive, any tag$
ranks in a barrier wait for rank 2$
L
without_deadlock posted
cat >"$work/wanted" <<'L'
ferry_cell_dequeue waits for a parcel in cell 5 of rank 1$
ranks in a barrier wait for rank 0 2$
L
without_deadlock parcel
without_deadlock tracked
cat >"$work/wanted" <<'L'
rank 0 (process [0-9]*): in ferry_leave$
waits for rank 1, which has not handled a request, handler "nudge"$
ranks in ferry_quiesce wait for rank 0 1$
L
without_deadlock late

# An object that the program carries to a rank that leaves.
cat >"$work/wanted" <<'L'
rank 1 (process [0-9]*): in ferry_leave$
waits for rank 0, which has sent 1 object that has not come; or the program carries it here$
deadlock: rank 0 waits for rank 1, which waits for rank 0$
L
begin "$ferry" run -n 3 "$program" carried
until_told "$ferry" why $job
end_job

# In virtual time: it asks itself after 10 s, after 20 more, after 40 more; and not while handlers
# run, however long the others wait.
for how in linger busy; do
    end_job
    FERRY_STALL_S=10 timeout 60 "$ferry" sim -n 3 "$program" $how >"$work/out" 2>"$work/err" ||
        fail "status $?: sim $how"
    asked=$(grep -c 'rank 0: ferry_quiesce makes no progress' "$work/err")
    [ "$how $asked" = "linger 3" ] || [ "$how $asked" = "busy 0" ] || fail "$how: asked $asked times"
done

# A job that hangs ends when nothing has been done for 10 s, though the waves of its quiescence go
# on. It does not end while a rank computes, is stopped or cut off, however often the others ask for
# work.
cat >"$work/wanted" <<'L'
stuck at 10[.][0-9]* s, seed 0: nothing was done for 10 s, however often the ranks looked
rank 0: sim:   3 messages wait for object 0000100000000001, the oldest for 10[.]00 s
L
# what it holds when it is ended is no leak of its
ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" timeout 60 "$ferry" sim -n 3 "$program" object \
    >"$work/out" 2>&1
status=$?
[ $status -eq 120 ] || fail "status $status: sim object"
holds_all "$work/out" || fail "sim: not all was told: $(cat "$work/wanted")"
for plan in slow=2:1 stop=0@59s:30s cut=0-0@59s:30s; do
    FERRY_SCHEDULER=stealing timeout 60 "$ferry" sim -n 3 \
        --faults $plan "$program" compute >"$work/out" 2>&1 || fail "status $?: sim compute, $plan"
done

# A lock that is not given back.
cat >"$work/wanted" <<'L'
rank 1 (process [0-9]*): waiting for messages$
waits for rank 0, which holds the lock of rank 1 in a window$
waits for rank 1, which has not sent the message for a receive, tag 7
deadlock: rank 0 waits for rank 1, which waits for rank 0
L
begin "$ferry" run -n 2 "$program" lock
until_told "$ferry" why $job

# A rank that takes no messages.
cat >"$work/wanted" <<'L'
rank 0 (process [0-9]*): waiting to send$
waits for rank 1, which has not taken what this rank sends$
L
for how in send flood; do
    begin "$ferry" run -n 2 "$program" $how
    until_told "$ferry" why $job
done

# A task that never ends: the helper tells what waits behind it.
cat >"$work/wanted" <<'L'
rank 1 (process [0-9]*): in task "refine" (6) for [0-9.]* s$
1 task, of load 1, waits here in scheduler none
ranks in ferry_quiesce wait for rank 1$
L
begin env FERRY_RANKS=3 FERRY_SCHEDULER=none "$program" task
until_told "$ferry" why $job
sed -i '/of load/d; s/ s\$$/ s; it does not call Ferry, so nothing more is known/' "$work/wanted"
begin env FERRY_HELPER=0 FERRY_RANKS=3 "$program" task
until_told "$ferry" why $job

cat >"$work/wanted" <<'L'
rank 1 (process [0-9]*): in the program's own code; it does not call Ferry, so nothing more is known
ranks in a barrier wait for rank 1$
L
begin "$ferry" run -n 2 "$program" barrier
until_told "$ferry" why $job
end_job

# refused STATUS WORDS ARGUMENT...: what is no job.
refused()
{
    wanted=$1 words=$2
    shift 2
    "$ferry" why "$@" >"$work/out" 2>&1
    status=$?
    [ $status -eq "$wanted" ] || fail "status $status, not $wanted, of: ferry why $*"
    grep -q -- "ferry why: $words" "$work/out" || fail "no reason in: ferry why $*"
    [ "$wanted" -ne 2 ] || grep -q "Try .ferry why --help" "$work/out" || fail "no hint: $*"
}
# until_listed RANKS: until the job is there with so many.
until_listed()
{
    for _ in $(seq 300); do
        "$ferry" why >"$work/out" 2>&1 && grep -q "^$job: $1 of $ferry run -n [23] " "$work/out" &&
            return 0
        sleep 0.05
    done
    fail "the job is not listed"
}
# Without a process it lists the jobs, each once.
begin "$ferry" run -n 2 "$program" collective
until_listed '2 ranks'
[ "$(grep -c "^$job: " "$work/out")" -eq 1 ] || fail "the job is listed more than once"
grep -q '`ferry why PROCESS` prints what the ranks of one job do' "$work/out" ||
    fail "the list does not say how to go on"
# A rank that has left does not count, as when one job is asked.
cat >"$work/wanted" <<'L'
what 2 ranks do
rank 2 has left
L
begin "$ferry" run -n 3 "$program" leave
until_told "$ferry" why $job
until_listed '2 ranks'
end_job
"$ferry" why >"$work/out" 2>&1 || fail "a list of jobs ends with $?"
refused 2 "2 jobs: expected the number of one process" 1 2
for wrong in x 0 -1 +1 1x 0x10 1.5 4294967297 99999999999999999999 --hepl ""; do
    refused 2 "$wrong: expected the number of a process" "$wrong"
done
refused 1 "999999999: there is no such process" 999999999
refused 1 "1: this process belongs to no job of this user" 1
sleep 60 &
idler=$!
refused 1 "$idler: this process belongs to no job of this user" $idler
kill $idler
wait $idler 2>/dev/null

[ $failures -eq 0 ] && echo "all is well"
exit $((failures > 0))
