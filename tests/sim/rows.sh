#!/bin/sh
# Goal: no CSV file of docs/papers is from other code than today's. Method: of each simulated one,
# some rows are made again and must stand in the file to the digit. Measured ones must have the
# rows that the benchmark makes today, with sensible figures. A file that this does not know is an
# error. The page's tables must be those of the files. rows.sh BUILD ROOT [FOLDER]; with FOLDER,
# the files there are looked at. Rows that are made stay in the folder ROWS_MADE, if that is set:
# a second call with it compares the same rows with other files.
set -u
build=$1 root=$2 docs=${3:-$2/docs/papers}
here=$root/bench/papers ferry=$1/bin/ferry papers=$1/bench/papers apps=$1/apps
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
made=${ROWS_MADE:-$scratch/made}
mkdir -p "$made"
[ $# -gt 2 ] || rm -f "$made"/*.csv
status=0

stale()
{
    echo "stale: $1: $2"
    status=1
}

# again FILE COMMAND...: each row that the command prints must stand in FILE
again()
{
    file=$1 rows=$made/$1
    shift
    [ -s "$rows" ] || env "$@" >"$rows" 2>"$scratch/err" ||
        stale "$file" "$* failed: $(cat "$scratch/err")"
    [ "$(wc -l <"$rows")" -ge 2 ] || stale "$file" "$* made no row"
    row=$(grep -vxFf "$docs/$file" "$rows" | head -n 1)
    [ -z "$row" ] || stale "$file" "today's code makes $row"
}

# shape FILE KEYS BYTES HEADER: FILE has this header and the rows whose first KEYS columns stand in
# $scratch/keys. All other columns are positive numbers. Column BYTES (0: none) is a size: of rows
# that have the other keys in common, the one with the largest size has the largest figures.
shape()
{
    file=$1 keys=$2
    [ "$(head -n 1 "$docs/$file")" = "$4" ] || stale "$file" "its header is not $4"
    tail -n +2 "$docs/$file" | cut -d, -f"1-$keys" | sort >"$scratch/have"
    sort "$scratch/keys" | diff - "$scratch/have" >"$scratch/diff" ||
        stale "$file" "not today's rows: $(grep '^[<>]' "$scratch/diff" | head -n 2 | tr '\n' ' ')"
    awk -F, -v keys="$keys" -v bytes="$3" 'NR == 1 { split($0, name, ",") }
        NR > 1 {
            series = ""
            for (i = 1; i <= keys; i++) series = series (i == bytes ? "" : $i ",")
            for (i = keys + 1; i <= NF; i++) {
                if (!($i + 0 > 0) && (name[i] != "mpi_us" || $i != "0.000")) bad = bad "not positive: " $0 " "
                if (!((series, i) in small) || $bytes + 0 < size_small[series]) small[series, i] = $i
                if (!((series, i) in large) || $bytes + 0 > size_large[series]) large[series, i] = $i
            }
            if (!(series in size_small) || $bytes + 0 < size_small[series])
                size_small[series] = $bytes + 0
            if (!(series in size_large) || $bytes + 0 > size_large[series])
                size_large[series] = $bytes + 0
        }
        END { for (s in small) if (bytes > 0 && large[s] < small[s])
                  bad = bad "the largest message takes less than the smallest: " s
              if (bad != "") print bad; exit bad != "" }' "$docs/$file" >"$scratch/bad" ||
        stale "$file" "$(cat "$scratch/bad")"
}

rows_of()
{
    case $1 in
    progressive-model.csv) again "$1" "$papers/progressive_model" ;;
    progressive.csv) again "$1" RANKS=16 sh "$here/progressive.sh" "$ferry" "$papers/progressive" ;;
    hops.csv) again "$1" sh "$here/hops.sh" "$ferry" "$papers/hops" ;;
    hops-histogram.csv)
        again "$1" sh "$here/hops.sh" "$ferry" "$papers/steps" histogram ;;
    pingpong-simulated.csv) again "$1" sh "$here/pingpong.sh" "$ferry" "$papers/pingpong" ;;
    dmcs.csv) again "$1" RANKS="2 4" sh "$here/dmcs.sh" "$ferry" "$apps" ;;
    steps.csv)
        again "$1" CASES=10,10,54 SCHEDULERS="ferry stealing" sh "$here/steps.sh" "$ferry" \
            "$papers/steps" ;;
    fmm.csv)
        again "$1" FIGURES=7.34 SCHEDULERS="ferry master" sh "$here/fmm.sh" "$ferry" "$apps/fmm" ;;
    mesh.csv)
        again "$1" FIGURES=7.17 SUBDOMAINS=4 SCHEDULERS="none ferry" sh "$here/mesh.sh" "$ferry" \
            "$apps/mesh" ;;
    front.csv)
        again "$1" FIGURES="7.12 7.13" RANKS=32 BALANCERS="none ferry" sh "$here/front.sh" "$ferry" \
            "$apps/front" ;;
    overheads.csv)
        again "$1" PROGRAMS="synthetic front" SCHEDULERS=ferry sh "$here/overheads.sh" "$ferry" \
            "$papers/synthetic" "$apps/front" "$apps/fmm" ;;
    preemption.csv)
        again "$1" SCHEDULERS=ferry sh "$here/preemption.sh" "$ferry" "$papers/synthetic" ;;
    synthetic.csv)
        again "$1" RANKS=32 HEAVY=25 TASKS=4 SCHEDULERS="ferry gradient" sh "$here/synthetic.sh" \
            "$ferry" "$papers/synthetic" ;;
    synthetic-ranks.csv)
        again "$1" RANKS=32 HEAVY=25 TASKS=4 SCHEDULERS="diffusion ferry" sh "$here/ranks.sh" \
            "$ferry" "$papers/synthetic" ;;
    model.csv)
        again "$1" RANKS=32 TASKS="2 4" sh "$here/model.sh" "$ferry" "$papers/synthetic" sim ;;
    foresight.csv)
        again "$1" PROGRAMS="mesh uts" RANKS=16 SCHEDULERS="ferry diffusion" sh "$here/foresight.sh" \
            "$ferry" "$apps/mesh" "$papers/steps" "$apps/uts" ;;
    studies.csv) again "$1" sh "$here/studies.sh" "$ferry" ;;
    model-measured.csv)
        for shape in linear-2 linear-4 step; do
            for ranks in 2 4 8 16 32; do
                for tasks in 2 4 8 16; do
                    for scheduler in none diffusion stealing ferry; do
                        echo "$shape,$ranks,$tasks,$scheduler"
                    done
                done
            done
        done >"$scratch/keys"
        awk -F, 'NR > 1 { sum += $10 < 0 ? -$10 : $10 } END { exit !(sum <= 3 * (NR - 1)) }' \
            "$docs/$1" || stale "$1" "the mean error is above 3%"
        cut -d, -f1-9 "$docs/$1" >"$scratch/$1"
        docs=$scratch
        shape "$1" 4 0 "shape,ranks,tasks,scheduler,measured_s,lower_s,average_s,upper_s,played_s"
        docs=$folder ;;
    cds.csv) again "$1" sh "$here/cds.sh" "$ferry" "$papers/handoff" ;;
    kelp.csv) again "$1" FIGURES=6 RANKS=8 PROGRAMS=mg sh "$here/kelp.sh" "$ferry" "$apps" ;;
    pingpong-measured.csv)
        "$ferry" sim -n 2 "$papers/pingpong" shm 1 | cut -d, -f1-3 >"$scratch/keys"
        sed 's/^shm/openmpi/' "$scratch/keys" >"$scratch/more"
        cat "$scratch/more" >>"$scratch/keys"
        shape "$1" 3 3 "network,form,bytes,call_us,mpi_us,half_round_us" ;;
    ping.csv)
        [ -x "$build/bench/events" ] || return 0
        "$build/bench/events" --list | awk '/^(pong|ping|put|get)-/ {
            size = $0; sub(/.*-/, "", size)
            name = substr($0, 1, length($0) - length(size) - 1)
            bytes = size + 0
            if (size ~ /KiB/) bytes *= 1024
            if (size ~ /MiB/) bytes *= 1048576
            print name "," bytes ",openmpi"; print name "," bytes ",mpich" }' >"$scratch/keys"
        shape "$1" 3 2 "test,bytes,peer,ours_us,theirs_us" ;;
    validation.csv)
        for ranks in 2 4 8 16; do
            for tasks in 4 8; do
                for scheduler in off ferry stealing diffusion; do
                    echo "$ranks,$tasks,$scheduler"
                done
            done
        done >"$scratch/keys"
        awk -F, 'NR > 1 && ($6 > 5 || $6 < -5) { exit 1 }' "$docs/$1" ||
            stale "$1" "a difference is above 5%"
        cut -d, -f1-5 "$docs/$1" >"$scratch/$1"
        docs=$scratch
        shape "$1" 3 0 "ranks,tasks,scheduler,shm_ms,sim_ms"
        docs=$folder ;;
    *) stale "$1" "no experiment of bench/papers is known to make it" ;;
    esac
}

folder=$docs
for file in "$docs"/*.csv; do
    rows_of "$(basename "$file")"
done
# The page's tables are those that its CSV files give.
page=$docs/README.md
[ -f "$page" ] || exit $status
sh "$here/tables.sh" "$docs" >"$scratch/tables" || stale README.md "tables.sh failed"
row=$(grep -vxFf "$page" "$scratch/tables" | head -n 1)
[ -z "$row" ] || stale README.md "its tables have no line $row"
exit $status
