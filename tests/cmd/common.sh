# Shared by the tests of the command: a scratch folder $work, commands whose output lies in
# $work/out and $work/err, jobs whose output lies in $work/NAME.out and $work/NAME.err. Sourced; the
# test ends with ends_well.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

fail()
{
    echo "FAILED: $*" >&2
    for file in "$work"/*out "$work"/*err; do
        [ ! -f "$file" ] || sed "s|^|    ${file##*/}: |" "$file" >&2
    done
    failures=$((failures + 1))
}

# expect STATUS COMMAND...: runs it.
expect()
{
    wanted=$1
    shift
    timeout 60 "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$wanted" ] || fail "status $got, not $wanted: $*"
}

# start NAME COMMAND...: runs it in the background; $NAME is its process.
start()
{
    name=$1
    shift
    timeout 60 "$@" >"$work/$name.out" 2>"$work/$name.err" &
    eval "$name=$!"
}

# ends NAME STATUS: waits for its end.
ends()
{
    eval "wait \$$1"
    got=$?
    [ "$got" -eq "$2" ] || fail "$1 ended with status $got, not $2"
}

# says FILE PATTERN
says()
{
    grep -q -- "$2" "$work/$1" || fail "\"$2\" is not in $1"
}

# lines FILE COUNT
lines()
{
    [ "$(wc -l <"$work/$1")" -eq "$2" ] || fail "not $2 lines in $1"
}

# Waits until a condition holds, for at most 30 s.
await()
{
    for _ in $(seq 3000); do
        if "$@"; then return 0; fi
        sleep 0.01
    done
    fail "never came true: $*"
}
exists() { [ -e "$1" ]; }
absent() { [ ! -e "$1" ]; }
has() { grep -q -- "$2" "$work/$1" 2>/dev/null; }
dead() { ! kill -0 "$1" 2>/dev/null; }

# Process numbers of the children of $1.
children_of() { cat "/proc/$1/task/$1/children" 2>/dev/null; }

ends_well() { [ "$failures" -eq 0 ]; }
