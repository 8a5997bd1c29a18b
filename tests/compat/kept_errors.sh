#!/bin/sh
# Runs two processes and prints their errors, which they write to a file: Hydra may lose the last
# lines of a job that is aborted.
# kept_errors.sh MPIRUN_SH MPIRUN PROGRAM ARGUMENT
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2016
sh "$1" "$2" 2 sh -c 'exec "$0" "$1" 2>>"$2"' "$3" "$4" "$log"
status=$?
cat "$log"
exit $status
