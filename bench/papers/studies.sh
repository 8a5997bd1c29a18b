#!/bin/sh
# Figures 6.10 to 6.18 of prema.txt: what `ferry model` predicts under diffusion when one parameter
# changes, as CSV. A rank has 60 s of work on average. 6.10 to 6.13: half of the tasks are heavy;
# the series "10" has tasks of 54 and 66 s in all. 6.14 to 6.18: times rise linearly, and each task
# exchanges messages with four others; the series "2" has a heaviest task of twice the lightest.
#
#     studies.sh FERRY [FIGURE...]
#
# RANKS says on how many ranks. The thesis does not tell what its machine took; ours stands below.
set -eu
ferry=$1
shift
figures=${*:-6.10 6.11 6.12 6.13 6.14 6.15 6.16 6.17 6.18}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/machine" <<'END'
quantum 500ms
poll 200us
switch 50us
startup 78us
byte 80ns
reply 200us
decide 100us
uninstall 200us
pack 200us
unpack 200us
install 200us
task-bytes 100000
neighbours 1
END
quanta=0.001s,0.002s,0.005s,0.01s,0.02s,0.05s,0.1s,0.2s,0.5s,1s,2s,5s,10s,20s
few=2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32
many=2,3,4,5,6,8,10,12,16,20,24,28,32,40,48,56,64
more=2,4,8,12,16,20,24,32,40,50,60,70,80,90,100
short="-s quantum=20ms" # where the number of tasks is what counts
network="-s messages=4 -s message-bytes=1024 -s message-work=10ms"

# make_list SHAPE AMOUNT RANKS COUNT: so many tasks, 60 s per rank together
make_list()
{
    awk -v shape="$1" -v amount="$2" -v ranks="$3" -v n="$4" 'BEGIN {
        for (i = 0; i < n; i++) {
            place = (i + 0.5) / n
            relative = shape == "step" ? 1 + (place < 0.5 ? -1 : 1) * amount / 100 \
                                       : 2 * (1 + (amount - 1) * place) / (1 + amount)
            printf "%.12g\n", 60 * ranks * relative / n
        } }' >"$work/list"
}

# list SHAPE AMOUNT RANKS: a curve that a study of tasks cuts into as many as it wants
list()
{
    if [ "$1" = step ]; then make_list "$@" 2; else make_list "$@" 1024; fi
}

# study FIGURE SERIES RANKS PARAMETER=VALUES OPTION...: a line of the figure, of the tasks in
# $work/list
study()
{
    figure=$1 series=$2 count=$3 what=$4
    shift 4
    "$ferry" model -c -n "$count" -p "$work/machine" -y "$what" "$@" "$work/list" |
        awk -F, -v head="$figure,$count,$series" '$4 == "diffusion" {
            printf "%s,%s,%g,%.3f,%.3f,%.3f,%.3f\n", head, $1, $2 + 0, $5, $6, $7, $8 }'
}

# divided SHAPE AMOUNT RANKS TASKS: so many tasks per rank
divided()
{
    make_list "$1" "$2" "$3" $(($3 * $4))
}

# shellcheck disable=SC2086 # words
# Each figure: series that change the tasks, the machine or their number.
figure()
{
    ranks=$2
    case $1 in
    6.10) for v in 10 25 50; do list step $v $ranks; study $1 $v $ranks tasks=$few $short; done ;;
    6.11) for t in 4 8 16; do divided step 25 $ranks $t; study $1 $t $ranks quantum=$quanta; done ;;
    6.12) for v in 10 25 50; do divided step $v $ranks 8; study $1 $v $ranks quantum=$quanta; done ;;
    6.13) list step 25 $ranks
        for k in 1 4 8 16; do study $1 $k $ranks tasks=$few -s neighbours=$k; done ;;
    6.14) for f in 1.2 2 4; do
            list linear $f $ranks
            study $1 $f $ranks tasks=$many $network $short
        done ;;
    6.15) for t in 4 8 16; do divided linear 2 $ranks $t; study $1 $t $ranks quantum=$quanta $network; done ;;
    6.16) for f in 1.2 2 4; do divided linear $f $ranks 16; study $1 $f $ranks quantum=$quanta $network; done ;;
    6.17) list linear 2 $ranks
        for k in 1 4 8 16; do study $1 $k $ranks tasks=$many -s neighbours=$k $network; done ;;
    6.18) for net in 10:500us:800ns 100:78us:80ns 1000:30us:8ns; do
            set -- 6.18 "${net%%:*}" "${net#*:}"
            wires="-s startup=${3%:*} -s byte=${3#*:} -s messages=4 -s message-bytes=16384"
            divided linear 2 $ranks 16
            study $1 $2 $ranks quantum=$quanta $wires
            study $1 $2 $ranks neighbours=1,2,4,8,16,31 $wires
            list linear 2 $ranks
            study $1 $2 $ranks tasks=$more $wires
        done ;;
    *) echo "studies.sh: $1 is no figure; expected 6.10 to 6.18" >&2; exit 2 ;;
    esac
}

echo "figure,ranks,series,parameter,value,lower_s,average_s,upper_s,played_s"
for which in $figures; do
    case $which in
    6.1[0-3]) all="32 64 256" ;;
    6.18) all="32 256" ;;
    *) all="64 256 512" ;;
    esac
    # shellcheck disable=SC2086 # words
    for count in ${RANKS:-$all}; do figure "$which" "$count"; done
done
