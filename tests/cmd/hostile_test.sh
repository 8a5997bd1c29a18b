#!/bin/sh
# Goal: the launcher and ranks behave in hostile surroundings: closed descriptors, readers that stand
# still, ignored signals, folders with files of the user's, small stacks, programs with more rights
# than their user. Method: run small programs and examples there; look at status, output, files and
# processes. Usage: hostile_test.sh FERRY RANK_PROGRAM HELLO
ferry=$1
program=$2
hello=$3
. "$(dirname "$0")/common.sh"

# As MPI's users type it.
expect 0 "$ferry" run -np 2 "$hello"
says out 'rank 1: rank 0 says 42'
expect 0 "$ferry" run -m 4 -np 3 sh -c 'echo $FERRY_RANKS'
expect 2 "$ferry" run -np
says err 'n p: must be a number'
expect 2 "$ferry" run -np x "$hello"

# Wrong usage is told once, with what was expected.
expect 2 "$ferry" run -n 4 -m 2 "$hello"
says err '-m 2: room for fewer than the 4 ranks of -n; expected 4 or more'
for pair in PORT=sim COMPUTE=zz; do
    expect 125 env "FERRY_$pair" "$ferry" run -n 2 "$hello"
    says err "FERRY_${pair%=*} is \"${pair#*=}\"; expected"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "FERRY_$pair is told more than once"
done
for word in help -h --help; do
    expect 0 "$ferry" $word
    says out '^usage: ferry COMMAND'
done
expect 0 "$ferry" -v
says out '^ferry [0-9]'

# Descriptors 0 to 2 are closed. No file of the job's gets their numbers.
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-' ; do
    expect 0 sh -c "\"\$@\" $closed" sh "$ferry" run -n 2 "$hello"
    expect 0 sh -c "FERRY_RANKS=2 \"\$@\" $closed" sh "$hello"
    expect 0 sh -c "FERRY_TRACE=$work/trace \"\$@\" $closed" sh "$hello"
done
expect 0 sh -c '"$@" <&-' sh "$ferry" run -n 2 "$hello"
says out 'rank 1: rank 0 says 42'
expect 1 sh -c '"$@" >&-' sh "$ferry" info
says err 'standard output cannot be written'

# Nobody reads what ranks print. The launcher still follows signals and notices deaths.
mkfifo "$work/pipe"
blocked()
{
    sleep 60 <"$work/pipe" &
    reader=$!
    # shellcheck disable=SC2094
    case $1 in
    out) "$ferry" run -n 2 --label yes >"$work/pipe" 2>"$work/err" & ;;
    both) "$ferry" run -n 2 --label yes >"$work/pipe" 2>&1 & ;;
    esac
    launcher=$!
    await ranks_write
}
ranks_write()
{
    set -- $(children_of "$launcher")
    [ $# -eq 2 ] && grep -q pipe_write "/proc/$1/wchan" 2>/dev/null && return
    # Where the kernel does not tell where a process waits.
    [ $# -eq 2 ] && [ "$(cat "/proc/$1/wchan" 2>/dev/null)" = 0 ] && sleep 1
}
released()
{
    ( sleep 20; kill -KILL "$launcher" ) 2>/dev/null &
    watcher=$!
    wait "$launcher"
    got=$?
    kill "$watcher" "$reader" 2>/dev/null
    wait "$reader" 2>/dev/null
    [ "$got" -eq "$1" ] || fail "a launcher that nobody reads ends with $got after $2"
}
for pair in TERM-143 HUP-129; do
    for what in out both; do
        blocked $what
        kill -"${pair%-*}" "$launcher"
        released "${pair#*-}" "${pair%-*}"
    done
done
blocked out
kill -KILL $(children_of "$launcher")
released 137 "the death of its ranks"
says err 'rank [01] .* was killed by SIGKILL'
# A slow reader gets everything.
"$ferry" run -n 2 --label sh -c 'head -c 300000 /dev/zero | tr "\0" x; echo; seq 20000' |
    { sleep 0.5; cat; } >"$work/out"
[ "$(grep -c '^\[1\] [0-9]' "$work/out")" -eq 20000 ] || fail "a slow reader misses lines"
[ "$(tr -cd x <"$work/out" | wc -c)" -eq 600000 ] || fail "a slow reader misses a part of a line"
[ "$(grep -c '^\[[01]\] x*$' "$work/out")" -eq 2 ] || fail "a long line is cut"

# A script's shell has its background jobs ignore SIGINT: whoever sends it means it.
sh -c '"$@" & echo $! >&3; wait $!' sh "$ferry" run -n 2 "$program" idle "$work/there" \
    3>"$work/pid" 2>"$work/err" &
script=$!
await exists "$work/there"
kill -INT "$(cat "$work/pid")"
wait $script
[ $? -eq 130 ] || fail "a job in the background of a script does not end with SIGINT"
rm -f "$work/there"
# nohup's SIGHUP stays ignored.
sh -c 'trap "" HUP; exec "$@"' sh "$ferry" run -n 2 sh -c 'echo x >"$1.$FERRY_RANK"; sleep 1' \
    sh "$work/up" >"$work/out" 2>"$work/err" &
launcher=$!
await exists "$work/up.1"
kill -HUP $launcher
wait $launcher || fail "a job that ignores SIGHUP ends with $?"
# The one line is the warning about a program that does not open Ferry.
lines err 1
says err 'no process of sh .2 started. has opened Ferry'

# The folder to join by: what jobs left is taken, files of the user's are not touched.
mkdir -m 700 "$work/own"
for name in nonce socket; do
    echo "a file of the user's, of some length" >"$work/own/$name"
    expect 125 "$ferry" run -n 1 -m 2 --join "$work/own" true
    says err "$work/own has a file .* that no job has made; expected a new folder"
    [ -s "$work/own/$name" ] || fail "the user's $name is gone"
    rm "$work/own/$name"
done
"$ferry" run -n 1 -m 2 --join "$work/left" sleep 60 2>"$work/err" &
launcher=$!
await exists "$work/left/socket"
set -- $(children_of $launcher)
kill -KILL "$1" # its guard, which it starts first
kill -TERM $launcher
wait $launcher
absent "$work/left" || fail "the folder stays when the guard was killed"
"$ferry" run -n 1 -m 2 --join "$work/left" sleep 60 2>"$work/err" &
launcher=$!
await exists "$work/left/socket"
set -- $(children_of $launcher)
kill -KILL "$1" $launcher
wait $launcher
await absent "/proc/$1" # the guard has the folder's lock until it is gone
expect 0 "$ferry" run -n 1 -m 2 --join "$work/left" true
absent "$work/left" || fail "the folder of a dead job is not taken away"

# Small stacks. With 8 KiB not even the system's own programs start, with 16 KiB not always the
# sanitizers: of 150 runs 13 ended before main.
kib=16
! grep -q __asan_init "$hello" || kib=32
expect 125 prlimit --stack=$((kib * 1024)) "$ferry" run -n 2 "$hello"
says err 'stacks are limited to less than 64 KiB'
expect 1 prlimit --stack=$((kib * 1024)) env FERRY_RANKS=2 "$hello"
says err "stacks are limited to $kib KiB; expected 64 or more (ulimit -s)"

# A program with more rights than its user does not run the user's code, nor writes where the user
# says.
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 true 2>/dev/null; then
    mkdir -m 777 "$work/theirs"
    chmod 755 "$work"
    cp "$hello" "$work/suid" && chmod 4755 "$work/suid"
    # A file system may ignore the bit.
    if setpriv --reuid 65534 sh -c 'FERRY_SCHEDULER=/no/such "$1"' sh "$work/suid" \
        >"$work/out" 2>"$work/err"; then
        for variable in PROFILE TRACE SIM_TAPE; do
            expect 0 setpriv --reuid 65534 env "FERRY_$variable=$work/theirs/$variable" \
                FERRY_PORT=sim "$work/suid"
            absent "$work/theirs/$variable" || fail "a set-uid program writes FERRY_$variable"
        done
        expect 0 setpriv --reuid 65534 env FERRY_DIRECTORY=none FERRY_MPI=../../x "$work/suid"
    else
        fail "a set-uid program reads FERRY_SCHEDULER"
    fi
fi

ends_well
