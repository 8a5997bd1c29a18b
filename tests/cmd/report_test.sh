#!/bin/sh
# Goal: a traced run is drawn, and a bad trace is refused with file, line and what was expected.
# Method: trace a run of the program in $2, draw it by the command in $1, look into the files; then
# break the traces in folder $3 in known places. $4 destroys objects, $5 makes a collection, $6 is
# hang_program.
ferry=$1
program=$2
traces=$3
outcome=$4
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

fail()
{
    echo "FAILED: $*" >&2
    cat "$work/err" >&2
    failures=$((failures + 1))
}

# draws STATUS ARGUMENT...
draws()
{
    wanted=$1
    shift
    timeout 60 "$ferry" report "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$wanted" ] || fail "status $got, not $wanted: report $*"
}

says()
{
    grep -q -- "$1" "$work/err" || fail "\"$1\" is not in the error"
}

holds()
{
    grep -q -- "$2" "$work/run/$1" || fail "\"$2\" is not in $1"
}

# A run, and one with migrations for certain: rotate moves each object after its task.
for threads in 0 1; do
    rm -rf "$work/run"
    FERRY_TRACE=$work/run FERRY_RANKS=3 FERRY_THREADS=$threads FERRY_SCHEDULER=rotate timeout 60 \
        "$program" --work sleep --heavy 25 --factor 2 --bytes 1024 --tasks 4 --light 1 \
        >"$work/out" 2>"$work/err" || fail "the run: $?"
    [ "$(cat "$work"/run/rank-*.trace | grep -c '^move [0-9]* [0-9a-f]* [0-2] task -1 ')" -ge 12 ] ||
        fail "not every migration has its reason"
    [ "$(cat "$work"/run/rank-*.trace | awk '$1 == "object" { n += $3 } END { print n }')" = 12 ] ||
        fail "12 messages are not in the objects' accounts"
    [ "$(cat "$work"/run/rank-*.trace | awk '$1 == "object" && $10 > 0 && $7 == 0' | wc -l)" = 0 ] ||
        fail "an object arrived and nothing was counted for unpacking it"
done
draws 0 "$work/run"
holds report.html 'Why objects moved'
# Elements of a collection are made without a handler.
FERRY_TRACE=$work/collection FERRY_RANKS=2 "$5" --width 8 --steps 3 --task-us 1 \
    >"$work/out" 2>"$work/err" || fail "the collection: $?"
grep -q '^t [0-9]* 65535 ' "$work"/collection/rank-*.trace || fail "all ran in handlers"
draws 0 "$work/collection"
holds report.html 'synthetic --work sleep --heavy 25'
holds bars.svg 'rank 2: in tasks'
holds timeline.svg '</svg>'
holds load.svg '>scheduler rotate, 3 ranks<'
holds trace.json '"name":"unit"'
[ "$(grep -c '"thread_name"' "$work/run/trace.json")" -eq 3 ] || fail "not a thread per rank"
[ "$(grep -c 'src=\|href=\|@import' "$work/run/report.html")" -eq 0 ] ||
    fail "the page needs other files"
# If two runs stand side by side, the end of a long command is shown: it tells them apart.
draws 0 -o "$work/both" "$work/run" "$work/run"
[ "$(grep -c '…[^<]*--light 1<title>[^<]*--tasks 4 --light 1<' "$work/both/bars.svg")" -eq 2 ] ||
    fail "a long command does not end as it should"
if python3 -c '' 2>/dev/null; then
    python3 -m json.tool "$work/run/trace.json" /dev/null || fail "trace.json is no JSON"
    python3 -c 'import sys, xml.dom.minidom as m; [m.parse(p) for p in sys.argv[1:]]' \
        "$work/run/bars.svg" "$work/run/load.svg" "$work/run/timeline.svg" "$work/both/load.svg" ||
        fail "a picture is no XML"
fi

# The forecast: of four equal tasks on two ranks, and of the run, which was 12 tasks.
mkdir "$work/even"
for rank in 0 1; do
    printf 'ferry trace 1\nrank %s 2\ntime 0 5000000000\nt 0 0 0\ni 2000000000\nend\n' $rank \
        >"$work/even/rank-$rank.trace"
done
sed -i 's/^t 0 0 0/t 0 0 0\nt 1000000000 0 0/' "$work"/even/rank-?.trace
draws 0 "$work/even"
grep -q 'From the first task to the end of the last it took 2000.000\.' "$work/even/report.html" ||
    fail "the page does not say how long the tasks took"
grep -q '<td>none</td>\(<td>2000.000</td>\)\{4\}</tr>' "$work/even/report.html" ||
    fail "the page has not the forecast of four tasks"
draws 0 --simulate "$work/run"
holds report.html '<th>replayed</th>'
holds report.html '<td>ferry</td>\(<td>[1-9][0-9]*[.][0-9]*</td>\)\{5\}</tr>'
draws 0 --during unit -o "$work/cut" "$work/run"
grep -q 'Predicted run times' "$work/run/report.html" || fail "a whole run has no forecast"
! grep -q 'Predicted run times' "$work/cut/report.html" || fail "a part of a run has a forecast"
draws 1 --simulate -o "$work/cut" "$work/even" # it has no objects
says 'expected a trace with tasks of objects'

# Two runs on one scale, elsewhere; a rank without a file.
rm "$work/run/rank-1.trace"
draws 0 -o "$work/both" "$traces" "$work/run"
grep -q 'rank 1 left no trace' "$work/both/bars.svg" || fail "the missing rank is not shown"
grep -q '>rank 1<.*>left no trace<' "$work/both/load.svg" || fail "the missing rank has no row"
[ "$(grep -c '>scheduler [a-z]*, [23] ranks<' "$work/both/load.svg")" -eq 2 ] ||
    fail "not a panel per run"
grep -q 'a name with &lt;blanks&gt; &amp; &quot;signs&quot;' "$work/both/report.html" ||
    fail "a handler's name is not escaped"

# parts PICTURE RANK PARTS: what the time of a rank of $traces went to.
parts()
{
    grep -q ">rank $2<.*>$3<" "$work/$1/load.svg" || fail "rank $2 is not $3 in $1"
}

# The whole run lasts 4 us; one handler is at work in 1 us of it, the other in 2.6.
draws 0 -o "$work/whole" "$traces"
parts whole 0 'busy 92.5%, runtime 5.00%, idle 2.5%'
parts whole 1 'busy 72.5%, runtime 0.00%, idle 27.5%'
draws 0 --during unit -o "$work/unit" "$traces"
parts unit 0 'busy 100.0%, runtime 0.00%, idle 0.0%'
parts unit 1 'busy 100.0%, runtime 0.00%, idle 0.0%'
grep -q '>0 objects sent away' "$work/unit/timeline.svg" || fail "moves before unit's are there"
draws 0 -d 'a name with <blanks> & "signs"' -o "$work/signs" "$traces"
parts signs 0 'busy 100.0%, runtime 0.00%, idle 0.0%'
parts signs 1 'busy 65.4%, runtime 0.00%, idle 34.6%'
grep -q '>2 objects sent away' "$work/signs/timeline.svg" || fail "moves are not there"
grep -q 'during a name with &lt;blanks' "$work/signs/load.svg" || fail "the phase has no title"
grep -q 'from the first task of a name with &lt;' "$work/signs/report.html" ||
    fail "the page does not say what it shows"
# Tasks with half the processor, two of one handler, and one that began before them.
cp -r "$traces" "$work/half"
sed -i 's/^t 1300 3 0/t 1300 0 1300/' "$work/half/rank-0.trace"
sed -i 's/^t 0 5 2900/t 0 5 1450/' "$work/half/rank-1.trace"
draws 0 --during unit "$work/half"
parts half 0 'busy 97.3%, runtime 0.00%, idle 2.7%'
parts half 1 'busy 75.7%, runtime 0.00%, idle 24.3%'
grep -q 'rank 1: in tasks 50.00%' "$work/half/bars.svg" || fail "a task was cut and its time was not"

# has FILE TEXT: of the pictures in $work/known.
has()
{
    grep -qF -- "$2" "$work/known/$1" || fail "\"$2\" is not in $1"
}

# Every number is the one it should be: two ranks of 40 ms, from 1 s on, of which all is known.
mkdir "$work/known"
sed 's/@/000000/g' >"$work/known/rank-0.trace" <<'L'
ferry trace 1
command a \ b
rank 0 2
time 1000@ 1040@
stat tasks 3
stat runtime_cpu_ns 400000
stat awaiting_ns 1@
stat send_ns 2@
stat pack_ns 3@
stat unpack_ns 4@
stat scheduler_ns 5@
stat poll_ns 6@
stat helper_ns 7@
stat objects_in 8
stat objects_out 9
handler 0 unit
object 0000000000000002 1 1@ 0 0 0 0 0 0 0 unit
object 0000000000000001 2 1@ 2@ 3@ 4@ 5@ 6 7 8 unit
m 0
r 5@
t 7@ 0 3@
i 17@
t 20@ 0 4@
m 24000001
end
L
sed 's/@/000000/g' >"$work/known/rank-1.trace" <<'L'
ferry trace 1
rank 1 2
time 1002@ 1042@
handler 0 unit
object 0000000000000001 1 500000 500000 500000 500000 500000 1 1 1 -
move 1005@ 0000000000000001 0 word 0 2.5 7.5
t 0 0 2@
i 2@
end
L
draws 0 "$work/known"
has trace.json '{"name":"a \\ b"}'
has trace.json '"name":"program","cat":"program","pid":0,"tid":0,"ts":0.000,"dur":5000.000}'
has trace.json '"name":"runtime","cat":"runtime","pid":0,"tid":0,"ts":5000.000,"dur":2000.000}'
has trace.json '"unit","cat":"task","pid":0,"tid":0,"ts":20000.000,"dur":4000.001,"args":{"cpu_ns":4'
has trace.json '"name":"unit","cat":"task","pid":0,"tid":1,"ts":2000.000,"dur":2000.000,'
has trace.json '"to rank 0","cat":"move","pid":0,"tid":1,"ts":5000.000,"args":{"object":"0000000000000'
has trace.json '"occasion":"word","asker":0,"load":2.5,"asker_load":7.5}'
[ "$(grep -c '"ph":"X"' "$work/known/trace.json")" -eq 6 ] || fail "not a slice per stretch"
# Per rank: tasks, in them, on the processor, program, idle, runtime, its processor time; then stats.
ranks=$(printf '<td>%s</td>' 0 3 14.000 7.000 21.000 3.000 2.000 0.400 1.000 2.000 3.000 4.000 \
    5.000 6.000 7.000 8 9)
has report.html "<tr>$ranks</tr>"
has report.html '<td>unit (0)</td><td>3</td><td>16.000</td><td>9.000</td><td>10.000</td>'
# An object is one row, its ranks' together; the most costly is the first.
object=$(printf '<td>%s</td>' unit 3 1.500 2.500 3.500 4.500 5.500 7 8)
has report.html "<td><code>0000000000000001</code></td>$object</tr>"
[ "$(grep -o '<code>000000000000000[12]</code></td><td>unit' "$work/known/report.html" | head -n 1)" = \
    '<code>0000000000000001</code></td><td>unit' ] || fail "objects are not by cost"
has report.html '<tr><td>5.000</td><td><code>0000000000000001</code></td><td>1</td><td>0</td><td>2.5'
has report.html '<td>a message of the scheduler of rank 0, which had a load of 7.5</td>'
has bars.svg '42 ms; 8 ms of work per rank; runtime 2.500%'

# Names in UTF-8 are drawn as they are; a byte that is none is '?'. A task without measured processor
# time counts whole, as in the table of ranks.
mkdir "$work/words"
printf 'ferry trace 1\nrank 0 1\ntime 0 5000000\nhandler 1 L\303\266sung \377\357\277\277\nt 0 1 0\nend\n' \
    >"$work/words/rank-0.trace"
draws 0 "$work/words"
grep -qF '<td>Lösung ???? (1)</td><td>1</td><td>5.000</td><td>5.000</td>' "$work/words/report.html" ||
    fail "a name in UTF-8, or a time that was not measured, is not in the page"
grep -qF '"name":"Lösung ????"' "$work/words/trace.json" || fail "UTF-8 is not in trace.json"
# A control character in a name of the program's does no harm.
FERRY_TRACE=$work/control FERRY_RANKS=2 timeout 60 "$6" name >"$work/out" 2>"$work/err" ||
    fail "the run with a control character: $?"
draws 0 "$work/control"
grep -q 'a?name' "$work/control/report.html" || fail "the name with a control character is not there"
# Beyond the limit of file sizes there is a reason.
(ulimit -f 1 && exec timeout 60 "$ferry" report -o "$work/limit" "$work/control") \
    >"$work/out" 2>"$work/err"
status=$?
[ $status -eq 1 ] || fail "status $status beyond the limit of file sizes"
says "limit/report.html: File too large"

# writes RANK RANKS OPEN CLOSE COMMAND: a trace in $work/mixed, with a task of an object.
writes()
{
    printf '%s\n' 'ferry trace 1' "command $5" "rank $1 $2" "port ${port-shm}" "time $3 $4" \
        'handler 0 unit' "x 0000000000000001 $1 0 500 $3 0 0" 't 0 0 500' 'i 600' end \
        >"$work/mixed/rank-$1.trace"
}
# Numbers after the last rank that left a trace may never have been used.
mkdir "$work/mixed"
writes 0 8 10000 20000 'a b'
writes 1 8 10100 20000 'a b'
draws 0 "$work/mixed"
[ ! -s "$work/err" ] || fail "a job with room for more ranks gets an error"
grep -q '<br>2 ranks, .*<br>The job had room for 8 ranks[.] Those from 2 on left no trace' \
    "$work/mixed/report.html" || fail "numbers that were not used are not told"
! grep -q 'ranks left no trace' "$work/mixed/report.html" || fail "unused numbers are dead ranks"
! grep -q 'rank 2' "$work/mixed/bars.svg" || fail "a number that was not used is drawn"
# Files that an earlier run left in the folder, and one of a later run. Ranks that join may have
# other commands.
writes 3 8 1000 9000 'a b'
writes 4 8 1000 9000 'c'
writes 5 8 15000 30000 'c'
writes 6 8 25000 30000 'a b'
writes 7 8 25000 30000 'c'
draws 0 --simulate "$work/mixed"
says "report: $work/mixed: left out 3 files of another run; expected the files of one run\$"
[ "$(grep -c 'left out' "$work/err")" -eq 1 ] || fail "files of another run are told more than once"
grep -q '<br>7 ranks, .*<b>3 ranks left no trace: .*for 8 ranks.*another run .*; 3 left out' \
    "$work/mixed/report.html" || fail "the page does not tell of files of another run"
for command in 'scale -n 2 -S none' 'model'; do
    # shellcheck disable=SC2086
    timeout 60 "$ferry" $command "$work/mixed" >"$work/out" 2>"$work/err" || fail "$command: $?"
    says "${command%% *}: $work/mixed: left out 3 files of another run"
done
# Every simulated run begins at 0, and its ranks have one command.
port=sim
rm "$work"/mixed/rank-[3-7].trace
for rank in 0 1; do
    writes $rank 3 0 10000 'a b'
done
writes 2 3 0 10000 'c'
draws 0 "$work/mixed"
says 'left out 1 file of another run'

# Ranks of an earlier run that the last one does not have.
rm "$work"/mixed/*
port=shm
for rank in 2 3; do
    writes $rank 4 0 10000 'a b'
done
for rank in 0 1; do
    writes $rank 2 20000 30000 'a b'
done
draws 0 "$work/mixed"
says 'left out 2 files of another run'

# Wrong usage, wrong folders, wrong files.
draws 2
draws 2 --fast "$work/run"
draws 0 --help
draws 1 "$work/none"
says 'none: there is no file rank-0.trace; expected the folder that FERRY_TRACE named'
draws 1 "$traces/rank-0.trace"
says 'rank-0.trace: there is no file rank-0.trace; expected the folder that FERRY_TRACE named'
draws 1 -o /dev/null/x "$traces"
says 'report: "/dev/null/x": Not a directory; expected a folder to write to'
draws 1 -o '' "$traces"
says 'report: "": No such file or directory; expected a folder to write to'
draws 2 "$traces" --during
draws 1 -o "$work/nothing" --during units "$traces"
says 'traces: no task of a handler "units" is in this run; handlers with tasks: unit, a name'
[ ! -e "$work/nothing" ] || fail "files of a phase that is not there"

# breaks SED-SCRIPT ERROR...: the file of rank 0, changed.
breaks()
{
    rm -rf "$work/bad"
    cp -r "$traces" "$work/bad"
    sed "$1" "$traces/rank-0.trace" >"$work/bad/rank-0.trace"
    shift
    draws 1 "$work/bad"
    says "bad/rank-0.trace:$1"
}
breaks '1s/1/2/' '1: expected the line "ferry trace 1"'
breaks '4s/0 2/2 2/' '4: rank 2 of 2: expected a rank below their number'
breaks '4s/0 2/1 2/' ' is of rank 1 of 2; expected rank 0'
breaks '6s/5000/500/' '6: the rank closes before it opens'
breaks '6d' '15: a stretch before the line "time OPEN CLOSE"'
breaks '7s/2/two/' '7: "two": expected the value of the stat, a whole number up to'
breaks '9s/0/1024/' '9: "1024": expected the index of a handler, a whole number up to 1023'
breaks '11s/0000000000000001/1/' '11: "1": expected an object, 16 hexadecimal digits'
breaks '14s/word/whim/' '14: "whim": expected an occasion: task, word or time'
breaks '14s/2.5/nan/' '14: "nan": expected a load, a number'
breaks '17s/100/100 7/' '17: " 7" after the last word expected'
breaks '18s/1000$/-1/' '18: "-1": expected ns of processor time'
breaks '19s/1200/9999/' '19: "9999": expected the start in ns, a whole number up to 4000'
breaks '20s/1300/1100/' '20: starts at 1100 ns, the one before at 1200; expected rising times'
breaks '21s/r/q/' '21: "q": expected version, command'
breaks '22d' '22: the file ends here; expected the line "end" at last'
breaks '$a more' '23: more lines after "end"'
printf '\001\n' >>"$work/bad/rank-1.trace"
cp "$traces/rank-0.trace" "$work/bad/"
draws 1 "$work/bad"
says 'bad/rank-1.trace:6: more lines'

# Objects that were destroyed in the run still have their kind.
FERRY_TRACE=$work/outcomes FERRY_RANKS=3 timeout 60 "$outcome" 4 >"$work/out" 2>"$work/err" ||
    fail "the run with objects that are destroyed: $?"
[ "$(cat "$work"/fates/rank-*.trace | awk '$1 == "object" && $3 > 0 && $NF == "-"' | wc -l)" -eq 0 ] ||
    fail "an object that handled messages has no kind"

# Waiting for a processor is not the runtime's work: with six ranks on one, the picture gives the
# runtime what processor time the trace has of it, and calls the rest waiting.
cpu=$(taskset -cp $$ | sed 's/.*[: ,]\([0-9]*\)\(-[0-9]*\)\{0,1\}$/\1/')
FERRY_TRACE=$work/crowd FERRY_RANKS=6 timeout 60 taskset -c "$cpu" "$program" --work spin --heavy 50 \
    --tasks 12 --light 2 >"$work/out" 2>"$work/err" || fail "the run on one processor: $?"
draws 0 "$work/crowd"
for rank in 0 1 2 3 4 5; do
    awk -v rank=$rank '
        $1 == "time" { if (from == 0 || $2 < from) from = $2; if ($3 > to) to = $3 }
        $1 == "rank" { mine = $2 == rank }
        mine && $2 == "runtime_cpu_ns" { cpu = $3 }
        FILENAME ~ /svg$/ && match($0, ">rank " rank "<.*runtime [0-9.]*%") {
            text = substr($0, RSTART, RLENGTH)
            sub(/.*runtime /, "", text)
            shown = text + 0
            seen = 1
        }
        END { want = 100 * cpu / (to - from); exit !(seen && shown < want + 0.1 && shown > want - 0.1) }' \
        "$work"/crowd/rank-*.trace "$work/crowd/load.svg" ||
        fail "rank $rank: the picture's runtime is not its processor time"
done
grep -q ', waiting [0-9.]*%, idle' "$work/crowd/load.svg" || fail "load.svg does not show waiting"

# A file that cannot be written whole is a failure: of the run, and of the job.
run() { timeout 60 env FERRY_RANKS=2 "$@" "$program" --tasks 2 >"$work/out" 2>"$work/err"; }
if [ -w /dev/full ]; then
    run FERRY_PROFILE=/dev/full && fail "a run whose profile cannot be written ends with 0"
    says 'profile: /dev/full: not all could be written'
fi
cat >"$work/full.sh" <<'EOF'
mkdir "$1/full" && mount -t tmpfs -o size=4k none "$1/full" || exit 77
head -c 4096 /dev/zero >"$1/full/filler"
FERRY_RANKS=2 FERRY_TRACE=$1/full timeout 60 "$2" --tasks 2
EOF
mkdir "$work/mount"
if unshare -Urm mount -t tmpfs none "$work/mount" 2>/dev/null; then
    unshare -Urm sh "$work/full.sh" "$work" "$program" >"$work/out" 2>"$work/err"
    got=$?
    [ $got -eq 1 ] || fail "a run on a full disk ends with $got"
    says 'FERRY_TRACE: .*full/rank-[01].trace: No space left on device'
else
    echo "no file system can be mounted here: full disks are left out"
fi

# In a folder of somebody else's, a link leads nowhere.
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$work/theirs"
    echo precious >"$work/victim"
    for name in report.html profile; do
        ln -s "$work/victim" "$work/theirs/$name"
        chown -h 65534 "$work/theirs/$name"
    done
    chown 65534 "$work/theirs"
    draws 1 -o "$work/theirs" "$traces"
    says 'theirs/report.html: it is a symbolic link of another user'
    run FERRY_PROFILE="$work/theirs/profile" && fail "FERRY_PROFILE follows a planted link"
    says 'theirs/profile.*it is a symbolic link of another user'
    [ "$(cat "$work/victim")" = precious ] || fail "a file behind a link was overwritten"
    ln -sf "$work/own" "$work/profile"
    run FERRY_PROFILE="$work/profile" || fail "a link of one's own is not followed"
    [ -s "$work/own" ] || fail "nothing is written behind a link of one's own"
fi

[ $failures -eq 0 ] && echo "all is well"
exit $((failures > 0))
