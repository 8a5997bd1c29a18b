#!/bin/sh
# Goal: however a job of port loopback ends, it says who was the first, and no process is left.
# Method: a job that hangs, whose ranks or launcher get signals.
# launcher.sh HANG_PROGRAM
set -u
program=$1
log=$(mktemp)
job= ranks=
trap '[ -z "$job" ] || kill -9 "$job" 2>/dev/null; rm -f "$log"' EXIT
failed=0

# Starts a job of three nodes; $job is its launcher, $ranks are the processes of its ranks.
start()
{
    FERRY_PORT=loopback FERRY_RANKS=3 "$program" receive >"$log" 2>&1 &
    job=$!
    left=3000
    ranks=
    while [ "$(echo "$ranks" | wc -w)" -ne 3 ] && [ $left -gt 0 ]; do
        sleep 0.01
        left=$((left - 1))
        ranks=$(sed 's/ $//' "/proc/$job/task/$job/children")
    done
}

lives()
{
    case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in '' | [ZX]*) return 1 ;; esac
}

# expect WHAT STATUS TEXT: the job ends with it, and its ranks too.
expect()
{
    wait "$job"
    status=$?
    job=
    [ -z "$3" ] || grep -q "$3" "$log" || { echo "FAILED: $1: not told: $3"; cat "$log"; failed=1; }
    [ $status -eq "$2" ] || { echo "FAILED: $1: status $status, expected $2"; failed=1; }
    for rank in $ranks; do
        left=1000
        while lives "$rank" && [ $left -gt 0 ]; do
            sleep 0.01
            left=$((left - 1))
        done
        [ $left -gt 0 ] || { echo "FAILED: $1: process $rank is left"; kill -9 "$rank"; failed=1; }
    done
}

start
kill -9 "${ranks##* }"
expect "a rank is killed" 137 "^ferry: rank 2 (process [0-9]*) was killed by SIGKILL (Killed); the job ends$"

# One that is stopped does not see the end of another.
start
kill -STOP "${ranks%% *}"
kill -SEGV "${ranks##* }"
expect "a rank is stopped" 139 "^ferry: rank 2 (process [0-9]*) was killed by SIGSEGV"

start
kill -TERM "$job"
expect "the launcher is told to end" 143 "was killed by SIGTERM (Terminated)"

start
kill -9 "$job"
expect "the launcher is killed" 137 ""
exit $failed
