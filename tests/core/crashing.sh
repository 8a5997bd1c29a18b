#!/bin/sh
# Goal: no rank is told of success after another was lost with its work. Method: one rank of
# tests/programs/crashing.c ends in many ways at many places. A result of a round must come after
# the parts of all ranks. The job must not end with 0 unless all results were written. crashing.sh
# RANKS LIMIT_S COMMAND... : the command that runs the program, without its arguments. Every rank
# that fails names the rank that was lost first, and how it ended. With CRASHING_CAUSES=untold,
# between nodes, it names how only if the lost rank told so itself. The errors of ferry_object_send
# and ferry_request_send are not checked: they name the rank that they send to. Ranks write to a
# file: a launcher that ends a job may lose or mix what they print.
set -u
CRASHING_LOG=$(mktemp)
export CRASHING_LOG
trap 'rm -f "$CRASHING_LOG"' EXIT
ranks=$1 limit=$2
shift 2
failed=0 count=0
cases=${CRASHING_CASES:-"segv:handler segv:task abort:allreduce exit3:main exit3:quiesce exit3:close
    kill:main kill:handler kill:task kill:barrier kill:allreduce kill:gather kill:broadcast
    kill:quiesce kill:close kill:phase _exit0:main _exit0:handler _exit0:quiesce _exit0:close
    exit0:task return0:main return0:allreduce return0:gather return0:quiesce return256:main return3:main
    return3:quiesce return3:phase abort7:handler abort7:task abort7:barrier none:main
    return3:gather return3:gather return3:gather return3:gather"}
for one in $cases; do
    how=${one%%:*} where=${one##*:} rank=$((count % ranks))
    count=$((count + 1))
    : >"$CRASHING_LOG"
    text=$(ulimit -c 0; timeout "$limit" "$@" "$how" "$where" "$rank" 2>&1)
    status=$?
    text=$(cat "$CRASHING_LOG"; echo "$text")
    case $how in
    return0) cause="rank $rank returned from its main function" ;;
    return3) cause="rank $rank ended with exit status 3" ;;
    return256) cause="rank $rank ended with exit status 1" ;;
    exit3) cause="exit status 3" ;;
    _exit0) cause="exit status 0" ;;
    segv) cause=SIGSEGV ;;
    kill) cause=SIGKILL ;;
    abort) cause=SIGABRT ;;
    *) cause= ;;
    esac
    # Sanitizers take the signal, report it, and end the process with a status of theirs.
    case $how:$text in segv:*Sanitizer:DEADLYSIGNAL*) cause="exit status (1|66)" ;; esac
    case ${CRASHING_CAUSES:-told}$how in untoldreturn* | told*) ;; *) cause= ;; esac
    wrong=$(echo "$text" | awk -v ranks="$ranks" -v rank="$rank" -v how="$how" -v status="$status" \
        -v cause="$cause" '
        $1 == "enter" { entered[$2]++ }
        $1 == "result" { results++; written[$2]++; if (entered[$2] != ranks) print "a result of round " $2 " after " entered[$2] " parts" }
        /WRONG/ { print }
        /has opened Ferry/ { print }
        how ~ /^return|^exit|^_exit|kill|segv|abort$/ && /crashing: rank/ && !/: send: / {
            if ($0 !~ "rank " rank " ") print "the rank is not named: " $0
            else if ($0 !~ cause) print "the cause is not named: " $0
        }
        END {
            for (round in written) if (entered[round] != ranks) print "a result of round " round " with " entered[round] " parts"
            if (status == 124) print "it did not end in time"
            if (status == 120 || status == 121) print "the simulator ended it: status " status
            if (how == "none" && (status != 0 || results != 4 * ranks)) print "status " status ", " results " results"
            if (how != "none" && how != "abort0" && status == 0) print "status 0"
            if (how ~ /^abort[07]$/ && status != substr(how, 6)) print "status " status
        }')
    if [ -n "$wrong" ]; then
        echo "FAILED: $how in $where, rank $rank: $wrong"
        echo "$text" | grep -v '^enter' | sed 's/^/    /'
        failed=1
    fi
done
exit $failed
