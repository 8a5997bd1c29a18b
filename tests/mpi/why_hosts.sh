#!/bin/sh
# Goal: a job over two nodes says why it hangs. SIGUSR1 to mpirun prints what the ranks of both do,
# by their numbers in the job, and the job goes on. ferry why prints what those of one node do. Both
# tell of a deadlock between the two nodes. Method: a job of two_hosts.sh that hangs in a known way
# is asked until what must come has come.
# Usage: why_hosts.sh MPIRUN FERRY HANG_PROGRAM
mpirun=$1 ferry=$2 program=$3
work=$(mktemp -d) || exit 1
: >"$work/why"
job=
# The shell around mpirun ends, and cleans up, when that has ended.
end_job()
{
    [ -n "$job" ] || return
    launcher=$(below "$job") && kill -TERM "$launcher"
    wait "$job" 2>/dev/null
}
trap 'end_job; rm -rf "$work"' EXIT

# below PROCESS: the first process below it that runs mpirun.
below()
{
    for child in $(cat /proc/"$1"/task/"$1"/children 2>/dev/null); do
        case $(readlink /proc/"$child"/exe) in
        *mpirun* | *orterun* | *mpiexec*) echo "$child" && return 0 ;;
        esac
        below "$child" && return 0
    done
    return 1
}

# told FILE LINE...: whether it holds all lines.
told()
{
    file=$1
    shift
    for line in "$@"; do
        grep -q -- "$line" "$file" || return 1
    done
}

sh "$(dirname "$0")/two_hosts.sh" "$mpirun" "$program" receive 2 >"$work/out" 2>&1 &
job=$!
while kill -0 $job 2>/dev/null; do
    launcher=$(below $job) && "$ferry" why "$launcher" >"$work/why" 2>&1
    told "$work/why" "ferry: what 2 ranks of this machine do" "the job has 4; those elsewhere" \
        "in a deadlock: rank [02] waits for rank [02], which waits for rank [02]" && break
    sleep 0.05
done
# MPI has begun on all, so none ends of the signal.
while kill -0 $job 2>/dev/null; do
    told "$work/out" "rank 0 (process [0-9]*): waiting for messages" \
        "rank 2, which has not sent the message for a receive, tag 7" \
        "deadlock: rank 0 waits for rank 2, which waits for rank 0" \
        "deadlock: rank 2 waits for rank 0, which waits for rank 2" \
        "rank 1 (process [0-9]*): in a barrier" "rank 3 (process [0-9]*): in a barrier" && exit 0
    kill -USR1 "$launcher"
    sleep 0.2
done
wait $job
status=$?
job=
[ $status -eq 77 ] && cat "$work/out" && exit 77
echo "FAILED: not all was told:" >&2
cat "$work/why" "$work/out" >&2
exit 1
