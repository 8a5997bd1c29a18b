#!/bin/sh
# expect.sh STATUS TEXT COMMAND [ARGUMENT]...: passes if COMMAND ends with STATUS and prints a line
# that matches TEXT, an extended regular expression. CTest's PASS_REGULAR_EXPRESSION ignores the
# status.
set -u
# A rank that fails ends the process beside other ranks' threads, which nobody joins then.
export TSAN_OPTIONS="${TSAN_OPTIONS-}:report_thread_leaks=0"
status=$1 text=$2
shift 2
output=$("$@" 2>&1)
ended=$?
printf '%s\n' "$output"
if [ "$ended" -ne "$status" ]; then
    echo "expect: the command ended with status $ended, expected $status"
    exit 1
fi
if ! printf '%s\n' "$output" | grep -qE -e "$text"; then
    echo "expect: no line matches $text"
    exit 1
fi
