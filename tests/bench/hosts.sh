#!/bin/sh
# The benchmark between two hosts keeps to the format. It needs the namespaces of two_hosts.sh, and
# is skipped where these are not allowed.
# Usage: hosts.sh TWO_HOSTS MPIRUN PROGRAM LARGER
sh "$1" "$2" -n 2 true >/dev/null
[ $? -ne 77 ] || { echo "skipped: no network namespaces (tests/mpi/two_hosts.sh)"; exit 77; }
exec sh "$(dirname "$0")/format.sh" "$3" "$4"
