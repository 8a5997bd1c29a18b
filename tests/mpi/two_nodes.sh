#!/bin/sh
# Goal: a job over two nodes of two ranks each, under either library. Method: Open MPI's are two
# network namespaces (two_hosts.sh); MPICH's mpiexec takes two names of this machine for two, and
# starts both without ssh; port loopback is told how many. No process of the program is left behind,
# however it ends.
#
# two_nodes.sh MPIRUN PROGRAM [ARGUMENT...] exits with its status, or with 77 where it cannot be run.
set -u
mpirun=$1 program=$2
shift 2
mark=two-nodes-$$
case $mpirun in
loopback)
    FERRY_PORT=loopback FERRY_RANKS=4 FERRY_LOOPBACK_NODES=2 \
        timeout --kill-after=5 280 "$program" "$@" "$mark" ;;
*mpich*)
    # In an environment without a second address the names are one node, which is another test.
    timeout --kill-after=5 280 "$mpirun" -launcher fork -hosts localhost:2,127.0.0.1:2 -n 4 \
        "$program" "$@" "$mark" ;;
*) sh "$(dirname "$0")/two_hosts.sh" "$mpirun" "$program" "$@" "$mark" ;;
esac
status=$?
[ $status -eq 77 ] && exit 77
# The launcher may end before those that it has killed.
left=3000
while pgrep -f "^$program.* $mark\$" >/dev/null && [ $left -gt 0 ]; do
    sleep 0.01
    left=$((left - 1))
done
[ $left -gt 0 ] || { echo "FAILED: processes are left"; status=1; }
exit $status
