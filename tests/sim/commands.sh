#!/bin/sh
# Goal: wrong options and files are refused with what is wrong; options reach the run. Method: exit
# status and messages of ferry sim, ferry swarm and ferry calibrate.
set -u
ferry=$1 canary=$2 crashing=$5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
# A run that is ended does not free its memory: that is no leak of its program.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

expect()
{
    status=$1 pattern=$2
    shift 2
    "$@" >"$folder/out" 2>&1
    got=$?
    if [ "$got" -ne "$status" ] || { [ -n "$pattern" ] && ! grep -q -- "$pattern" "$folder/out"; }; then
        echo "$*: status $got, expected $status and \"$pattern\":"
        cat "$folder/out"
        failures=$((failures + 1))
    fi
}

printf 'topology flat\nlatency 1us\nlatency 2us\n' >"$folder/twice.net"
printf 'topology flat\nlatencyy 1us\n' >"$folder/wrong.net"
printf 'topology torus 4 4 1\nmemory private\nlatency 1us\n' >"$folder/good.net"
cp "$folder/good.net" "$folder/plain"
expect 2 'expected a program to run' "$ferry" sim -n 3
expect 2 'expected a time' "$ferry" sim --quantum soon "$canary"
expect 2 'expected a factor' "$ferry" sim --cpu 1us "$canary"
expect 2 '-n 0: must be a number of ranks, 1 to 65536' "$ferry" sim -n 0 "$canary"
expect 2 'FERRY_RANKS is "0"; expected a number from 1 to 65536' \
    env FERRY_RANKS=0 "$ferry" sim "$canary"
expect 1 'FERRY_RANKS is "0"; expected a number from 1 to 65536' \
    env FERRY_PORT=sim FERRY_RANKS=0 "$canary"
expect 2 'ferry sim: 2 ranks at most, 4 at the start; expected 4 to 65536 at most' \
    "$ferry" sim -n 4 -m 2 "$canary"
expect 2 'is no network' "$ferry" sim --net fast "$canary"
expect 2 'twice.net:3: given twice' "$ferry" sim --net "$folder/twice.net" "$canary"
expect 2 'wrong.net:2: unknown key' "$ferry" sim --net "$folder/wrong.net" "$canary"
expect 2 'fewer places than ranks' "$ferry" sim -n 17 --net "$folder/good.net" "$canary"
expect 2 'expected =PROBABILITY' "$ferry" sim --faults drop "$canary"
expect 2 'expected die=RANK@TIME, with ranks 0..1' "$ferry" sim -n 2 --faults die=2@1us "$canary"
expect 1 'ring_slots (FERRY_RING_SLOTS) is 3; expected a power of two, 2 to 65536' \
    env FERRY_RING_SLOTS=3 "$ferry" sim "$canary"
expect 2 'FERRY_THREADS is 1, but the ranks of port sim are simulated; expected 0' \
    env FERRY_THREADS=1 "$ferry" sim -n 2 "$canary"
expect 2 'speeds "0-9=1"' "$ferry" sim -n 2 --cores-speed 0-9=1 "$canary"
expect 2 'ranks, with factors from 0.001 to 1000000, at "0,0=2"' \
    "$ferry" sim -n 2 --cores-speed 1=0,0=2 "$canary"
expect 2 'cannot open the fault plan "/none": No such file' "$ferry" sim --faults @/none "$canary"
expect 2 'fault plan "/": Is a directory' "$ferry" sim --faults @/ "$canary"
expect 2 'fault plan "/dev/zero": longer than' "$ferry" sim --faults @/dev/zero "$canary"
expect 2 '/: Is a directory' "$ferry" sim --net / "$canary"
expect 1 'cannot write the tape "/dev/full": No space left' \
    "$ferry" sim --tape /dev/full --faults drop@1 "$canary"
expect 127 'No such file' "$ferry" sim "$folder/none"
expect 127 "cannot run $folder/none: No such file" "$ferry" swarm "$folder/none"
expect 0 '16 ranks, seed 3' "$ferry" sim -r -n 16 --seed 3 --net "$folder/good.net" "$canary"
expect 0 '16 ranks' env -C "$folder" "$ferry" sim -r -n 16 --net plain "$canary"
expect 2 'cannot open the network file "./none": No such file' "$ferry" sim --net ./none "$canary"
# A wrong value is no seed that fails. Variables that a swarm replaces are not looked at.
expect 2 'ferry swarm: "fast" is no network' "$ferry" swarm -n 2 --net fast "$canary"
expect 2 'ferry swarm: speeds "0-9=1"' "$ferry" swarm -n 2 --cores-speed 0-9=1 "$canary"
expect 2 'ferry swarm: disk "x"' "$ferry" swarm --disk x "$canary"
expect 2 'ferry swarm: 2 ranks at most, 4 at the start' "$ferry" swarm -n 4 -m 2 "$canary"
expect 0 '0 of 1 seeds failed' env FERRY_SIM_FAULTS=drop FERRY_SIM_SEED=x \
    "$ferry" swarm -n 2 --seeds 1..1 "$canary"
expect 0 '0 of 3 seeds failed, from 4 to 6' "$ferry" swarm -n 3 --seeds 4..6 "$canary"
expect 0 '--seeds after the program' "$ferry" swarm -n 2 --seeds 1..1 "$canary" --seeds 5
expect 2 'expected A..B' "$ferry" swarm --seeds 5 "$canary"
expect 2 'expected A..B' "$ferry" swarm --seeds 1..99999999999999999999 "$canary"
expect 2 'expected A..B' "$ferry" swarm --seeds 1..2..3 "$canary"
expect 2 '-l 1x: expected seconds' "$ferry" swarm -l 1x "$canary"
expect 2 '-s -1: expected a number' "$ferry" sim --seed -1 "$canary"
expect 2 '-S 5: expected a number from 16384' "$ferry" sim --stack 5 "$canary"
expect 2 '-M much: expected a number' "$ferry" sim --memory much "$canary"
expect 2 '-C 1e9: expected a factor' "$ferry" sim --cpu 1e9 "$canary"
expect 2 'here.net: expected no arguments' "$ferry" calibrate here.net
expect 2 'calibrate --help' "$ferry" calibrate -x
expect 1 'failed at seed 1, number 1 of 2' "$ferry" swarm --no-shrink --seeds 1..2 false
expect 2 '-e 0: expected seconds' "$ferry" swarm --effort 0 "$canary"

# A program that never calls Ferry is no success, whatever it returns.
expect 1 'true has ended without opening a rank; expected a program that calls ferry_main' \
    "$ferry" swarm --seeds 1..5 true
expect 1 'true has ended without opening a rank; expected a program that calls ferry_main' "$ferry" sim true
expect 3 '' "$ferry" sim sh -c 'exit 3'
expect 143 '' "$ferry" sim sh -c 'kill -TERM $$'

# Nothing is left behind by a swarm that is ended, and a full TMPDIR fails no seed.
mkdir "$folder/tmp"
TMPDIR=$folder/tmp "$ferry" swarm -n 2 --seeds 1..100000 "$canary" >/dev/null 2>&1 &
swarm=$!
sleep 0.5
kill -TERM $swarm
wait $swarm
[ -z "$(ls -A "$folder/tmp")" ] || { echo "a swarm that is ended leaves files"; failures=1; }
expect 0 '0 of 3 seeds failed' env TMPDIR=/dev/null "$ferry" swarm -n 2 --seeds 1..3 "$canary"

# If runs take long it tells how far it is, and shrinking ends: with the best until then.
expect 1 'ferry swarm: running seed 1; 1 runs were begun so far' \
    "$ferry" swarm -n 2 --no-shrink --seeds 1..1 sh -c 'sleep 11; exit 1'
expect 1 'faults are left, and the time for shrinking is over' "$ferry" swarm -n 4 --effort 1 \
    --seeds 1..50 sh -c 'sleep 0.2; exec "$@"' sh "$canary" hasty
expect 1 'ferry sim --seed [0-9]*' "$ferry" swarm -n 4 --effort 1 \
    --seeds 1..50 sh -c 'sleep 0.2; exec "$@"' sh "$canary" hasty

expect 2 'random-malloc' "$ferry" sim --faults nonsense "$canary"
expect 0 'ended with an error that names memory' \
    "$ferry" swarm -n 3 --seeds 1..3 --out-of-memory "$canary"
expect 0 'ended with an error that names memory' \
    "$ferry" swarm -n 3 --seeds 1..3 --starve 2 "$canary"
expect 0 '; [0-9]* ended with an error that names the object' \
    "$ferry" swarm -n 3 --seeds 1..3 --unreadable "$canary"
expect 2 '--starve 3: expected a rank from 0 to 2' "$ferry" swarm --starve 3 -n 3 "$canary"
expect 2 '--starve one: expected a rank from 0 to 2' "$ferry" swarm -n 3 --starve one "$canary"
expect 2 'expected starve=RANK' "$ferry" sim -n 3 --faults starve=3 "$canary"
expect 0 'find a small run that fails' "$ferry" --help
expect 0 'ferry sim' "$ferry" sim --help
expect 0 'ferry swarm' "$ferry" swarm --help
expect 0 'ferry calibrate' "$ferry" calibrate --help
expect 0 '' "$ferry" calibrate -o "$folder/here.net"
# Calibrate replaces what was there. A file that cannot be written is named.
seq 10000 >"$folder/long.net"
expect 0 '' "$ferry" calibrate -q -o "$folder/long.net"
expect 0 'long.net' "$ferry" sim -r -n 4 --net "$folder/long.net" "$canary"
expect 1 'calibrate: /dev/full: No space left on device' "$ferry" calibrate -q -o /dev/full
expect 1 "calibrate: $folder/no/x.net: No such file" "$ferry" calibrate -q -o "$folder/no/x.net"
if grep -q 'rank [01]' "$folder/out"; then
    echo "a file that cannot be opened is found after measuring:"
    cat "$folder/out"
    failures=$((failures + 1))
fi
expect 1 'standard output cannot be written' sh -c '"$0" calibrate -q >/dev/full' "$ferry"
expect 0 'here.net' "$ferry" sim -r -n 4 --net "$folder/here.net" "$canary"
# A rank that ends the process with status 0, before the others have ended, is no success.
for command in sim 'swarm -s 1..2'; do
    # shellcheck disable=SC2086
    expect 1 'has ended with status 0 before its ranks' \
        "$ferry" $command -n 2 "$crashing" _exit0 main 1
    # shellcheck disable=SC2086
    expect 0 '' "$ferry" $command -n 2 "$crashing" abort0 main 1
done
# The command that repeats a run has its arguments: a shell makes the same words of it.
cat >"$folder/words" <<'END'
#!/bin/sh
for word; do echo "word <$word>"; done
exit 3
END
chmod +x "$folder/words"
expect 1 'repeat it with' "$ferry" swarm -s 1..1 -n 2 "$folder/words" 'two words' "it's" '' '$HOME' plain
(cd "$folder" && sed -n 's|^  ferry |"$ferry" |p' out >again && export ferry && sh ./again >said 2>&1)
cat >"$folder/wanted" <<'END'
word <two words>
word <it's>
word <>
word <$HOME>
word <plain>
END
if ! diff "$folder/wanted" "$folder/said"; then
    echo "the command that repeats a run has other arguments"
    failures=$((failures + 1))
fi
exit "$failures"
