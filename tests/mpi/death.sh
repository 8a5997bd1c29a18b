#!/bin/sh
# Goal: a rank that dies or fails ends its job under mpirun: nobody waits for ever, nothing stays.
# Method: the last rank of the program ends in several ways, on one node and as several.
# death.sh MPIRUN PROGRAM
set -u
mpirun=$1 program=$2
run="$(dirname "$0")/mpirun.sh"
failed=0
for way in killed vanish status; do
    for shm in 1 0; do
        got=$(FERRY_MPI_SHM=$shm "$run" "$mpirun" 3 "$program" "$way" $$ 2>&1)
        status=$?
        # MPICH's mpiexec may end a job with 0 when a rank vanished with 0.
        [ "$way" = vanish ] && [ "$status" -eq 0 ] && status=1
        case $status in
        0 | 124) echo "FAILED: $way, FERRY_MPI_SHM=$shm: status $status: $got"; failed=1 ;;
        esac
        # The launcher may end before those that it has killed.
        left=3000
        while pgrep -f "^$program $way $$" >/dev/null && [ $left -gt 0 ]; do
            sleep 0.01
            left=$((left - 1))
        done
        if [ $left -eq 0 ]; then
            echo "FAILED: $way, FERRY_MPI_SHM=$shm: processes are left"
            failed=1
        fi
    done
done
exit $failed
