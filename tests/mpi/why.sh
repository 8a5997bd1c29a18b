#!/bin/sh
# Goal: a job that mpirun has started says why it hangs. It does when `ferry why` has the number of
# mpirun or of a rank, or when mpirun gets SIGUSR1. If its ranks share no memory it does also when
# ferry_quiesce makes no progress. Deadlocks are found over ranks that share no memory too. Method:
# a job that hangs in a known way is asked until what must come has come.
# Usage: why.sh MPIRUN FERRY HANG_PROGRAM
mpirun=$1 ferry=$2 program=$3
run=$(dirname "$0")/mpirun.sh
work=$(mktemp -d) || exit 1
job=
end_job()
{
    [ -z "$job" ] || kill -TERM "$job" 2>/dev/null
    [ -z "$job" ] || wait "$job" 2>/dev/null
    job=
}
trap 'end_job; rm -rf "$work"' EXIT

# until_told COMMAND...: runs it until its output holds the lines of $work/wanted, while the job lives.
until_told()
{
    while kill -0 "$job" 2>/dev/null; do
        "$@" >"$work/out" 2>&1
        missing=0
        while read -r line; do
            grep -q -- "$line" "$work/out" || missing=1
        done <"$work/wanted"
        [ $missing -eq 0 ] && return 0
        sleep 0.05
    done
    echo "FAILED: not all was told:" >&2
    cat "$work/wanted" "$work/out" "$work/err" >&2
    exit 1
}

cat >"$work/wanted" <<'L'
rank 0 (process [0-9]*): waiting for messages$
waits for rank 1, which has not sent the message for a receive, tag 7
rank 2 (process [0-9]*): in a barrier
deadlock: rank 0 waits for rank 1, which waits for rank 0
L
sh "$run" "$mpirun" 3 "$program" receive >"$work/err" 2>&1 &
job=$!
until_told "$ferry" why $job
until_told "$ferry" why "$(sed -n 's/.*rank 1 (process \([0-9]*\)).*/\1/p' "$work/out")"
launcher=$(cat /proc/$job/task/$job/children) # of timeout
ask()
{
    kill -USR1 $launcher
    cat "$work/err"
}
until_told ask
end_job

cat >"$work/wanted" <<'L'
rank 0: ferry_quiesce makes no progress
3 messages wait for object 0000100000000001, the oldest for [0-9.]* s: the program has still to install it here
rank 1: what it waits for
rank 2: what it waits for
L
FERRY_MPI_SHM=0 FERRY_STALL_S=1 sh "$run" "$mpirun" 3 "$program" object >"$work/err" 2>&1 &
job=$!
until_told cat "$work/err"
end_job

# Each rank is a node of its own: whichever is asked, it knows the deadlock it is in.
cat >"$work/wanted" <<'L'
the job has 3; those elsewhere share no memory
in a deadlock: rank [0-2] waits for rank [0-2], which waits for rank [0-2]
L
for how in "receive 2" between; do
    # shellcheck disable=SC2086
    FERRY_MPI_SHM=0 sh "$run" "$mpirun" 3 "$program" $how >"$work/err" 2>&1 &
    job=$!
    until_told "$ferry" why $job
    end_job
done

# A stalled call has it logged, once each time, by the lowest rank in the deadlock.
echo 'rank [01]: deadlock: rank [01] waits for rank 2, which waits for rank [01]' >"$work/wanted"
FERRY_MPI_SHM=0 FERRY_STALL_S=1 sh "$run" "$mpirun" 3 "$program" quiesce >"$work/err" 2>&1 &
job=$!
until_told cat "$work/err"
echo "all is well"
