#!/bin/sh
# Help and refusals of every command: `ferry COMMAND --help` fits a terminal, names each option of
# the command in both forms, and says what the exit status means. A value that an option does not
# take ends the command with a line that names the value and what was expected, and no program runs.
# ferry(1) has the options of each command, in both forms, and no other.
. "$(dirname "$0")/common.sh"
ferry=$1 man=$2
cd "$work" || exit 1

expect 0 "$ferry" --help
commands=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$work/out")
[ "$(echo "$commands" | wc -w)" -ge 10 ] || fail "fewer commands than known: $commands"

for command in $commands; do
    expect 0 "$ferry" "$command" --help
    [ ! -s "$work/err" ] || fail "ferry $command --help writes to the standard error"
    awk 'length($0) > 95 { exit 1 }' "$work/out" || fail "help of $command: over 95 columns"
    head -n 1 "$work/out" | grep -q "^usage: ferry $command" || fail "help of $command: no usage"
    [ "$command" = info ] || grep -q 'Exit status: ' "$work/out" ||
        fail "help of $command: no exit status"
    awk '/^ +--[a-z]/ { exit 1 }' "$work/out" || fail "help of $command: an option without a short form"
    cp "$work/out" "$work/help"
    expect 0 "$ferry" help "$command"
    cmp -s "$work/out" "$work/help" || fail "ferry help $command prints another text"
    expect 2 "$ferry" "$command" --no-such-option
    grep -qE "no-such-option|expected a folder and a program" "$work/err" || fail "ferry $command: no reason for --no-such-option"
done

# The options of a command in ferry(1): those below ".SS Of ferry COMMAND" or "... and ferry COMMAND".
in_manual()
{
    awk -v command="$1" '
        /^[.]S[HS]/ { here = $0 ~ ("^[.]SS Of .*ferry " command "( and|$)") }
        tagged && here {
            gsub(/\\-/, "-")
            while (match($0, /(^|[ ",])(--[a-z-]+|-[A-Za-z0-9])([ ",]|$)/)) {
                option = substr($0, RSTART, RLENGTH)
                $0 = substr($0, RSTART + RLENGTH - 1)
                gsub(/[ ",]/, "", option)
                print option
            }
        }
        { tagged = /^[.]TP/ }' "$man" | sort
}

for command in $commands; do
    "$ferry" "$command" --help | sed -n 's/^  *\(-[A-Za-z0-9]\), \(--[a-z-]*\).*/\1\n\2/p' |
        grep -vx -e -h -e --help | sort >"$work/out"
    in_manual "$command" >"$work/manual"
    diff "$work/out" "$work/manual" || fail "ferry(1) and ferry $command --help name other options"
done

# refuses TEXT COMMAND...: wrong usage; the line on standard error has TEXT and what was expected.
refuses()
{
    text=$1
    shift
    expect 2 "$ferry" "$@"
    grep -F -- "$text" "$work/err" | grep -qE 'expected|must be' ||
        fail "no line with $text and what was expected: $*"
    [ ! -s "$work/out" ] || fail "$* ran"
}

numbers='0 -1 one 4x 1e3'
for value in $numbers 1025; do
    refuses "-n $value" run -n "$value" echo
    refuses "-m $value" run -m "$value" echo
done
for command in sim swarm; do
    for value in $numbers 65537; do
        refuses "-n $value" "$command" -n "$value" echo
        refuses "-m $value" "$command" -m "$value" echo
    done
    for value in -1 one 1001; do
        refuses "-C $value" "$command" -C "$value" echo
    done
    for value in -1 one 5min; do
        refuses "-q $value" "$command" -q "$value" echo
        refuses "-T $value" "$command" -T "$value" echo
    done
    for value in 1 one 2G; do
        refuses "-S $value" "$command" -S "$value" echo
    done
    refuses '-M one' "$command" -M one echo
    refuses '4 data servers' "$command" -n 4 -d 4 echo
    refuses '-d 65536' "$command" -d 65536 echo
    expect 2 "$ferry" "$command" -n 2
    grep -q 'expected a program' "$work/err" || fail "ferry $command takes no program"
done
refuses '4 data servers' run -n 4 -d 4 echo
refuses '-m 1' run -n 2 -m 1 echo
refuses '-s one' sim -s one echo
refuses '5..1' swarm -s 5..1 echo
refuses '-e 0' swarm -e 0 echo
refuses '-l one' swarm -l one echo
refuses '--starve 2' swarm -n 2 --starve 2 echo
refuses '-n 0' model -n 0 x
refuses '-n one' scale -n one x
refuses '-b 1K' scale -n 2 -b 1K x
refuses one why one
refuses x info x
expect 2 "$ferry" help run x
says err 'ferry help: "x" is one word too many; expected one command'
for command in run sim swarm 'join folder'; do
    # shellcheck disable=SC2086
    expect 2 "$ferry" $command ''
    says err "ferry ${command%% *}: \"\": expected a program to run"
done
expect 2 "$ferry" scale -N absent -n 4 "$work"
says err 'ferry scale: "absent" is no network; expected a file, shm, memory'
expect 2 "$ferry" help fly
says err '"fly" is not a command'
expect 1 "$ferry" calibrate --quick -o /no/such/folder
says err '^ferry calibrate: /no/such/folder: No such file'
expect 1 "$ferry" calibrate --quick -o /dev/full
says err '^ferry calibrate: /dev/full: No space left on device'
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "calibrate speaks of a rank whose output had no room"
expect 125 env FERRY_PORT=none "$ferry" calibrate --quick -o "$work/none.net"
[ ! -e "$work/none.net" ] || fail "calibrate leaves an empty file"
ends_well
