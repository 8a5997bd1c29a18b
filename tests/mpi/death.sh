#!/bin/sh
# Goal: a rank that dies or fails ends its job under mpirun: nobody waits forever, nothing stays.
# Method: the last rank of the program ends in several ways, on one node and as several; then a rank
# that was started later, and the one that has started it, likewise.
# death.sh MPIRUN PROGRAM
set -u
mpirun=$1 program=$2
run="$(dirname "$0")/mpirun.sh"
failed=0

# try WAY SHM ROOM
try() {
    got=$(FERRY_MPI_SHM=$2 FERRY_RANKS_MAX=$3 "$run" "$mpirun" 3 "$program" "$1" $$ 2>&1)
    status=$?
    # MPICH's mpiexec may end a job with 0 when a rank vanished with 0.
    [ "$1" = vanish ] && [ "$status" -eq 0 ] && status=1
    case $status in
    0 | 124) echo "FAILED: $1, FERRY_MPI_SHM=$2: status $status: $got"; failed=1 ;;
    esac
    # The launcher may end before those that it has killed.
    left=3000
    while pgrep -f "^$program $1 $$" >/dev/null && [ $left -gt 0 ]; do
        sleep 0.01
        left=$((left - 1))
    done
    if [ $left -eq 0 ]; then
        echo "FAILED: $1, FERRY_MPI_SHM=$2: processes are left"
        failed=1
    fi
}

for way in killed vanish status; do
    try $way 1 ""
    try $way 0 ""
done
for way in spawn-killed spawn-status spawn-late starter; do
    try $way 1 4
    try $way 0 6
done
# The launcher's message of a rank that it does not know is not enough.
case $(FERRY_RANKS_MAX=4 "$run" "$mpirun" 3 "$program" spawn-killed $$ 2>&1) in
*"rank 3 (process "*" was killed by SIGKILL"*"; the job ends"*) ;;
*) echo "FAILED: spawn-killed is not told of"; failed=1 ;;
esac
exit $failed
