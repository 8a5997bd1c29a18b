#!/bin/sh
# Figures 7.17-7.21 of prema.txt, as CSV: the mesh application on a simulated 100 Mb/s Ethernet, each
# point counted as 60 ms, so that the unbalanced run on 32 ranks takes as long as the thesis's.
#   7.17  32 ranks, 4, 8 and 16 sub-domains for each, finer triangles around one place
#   7.18  the same on 64 ranks; 7.19 a mesh of twice the size; 7.20 that, four schedulers
#   7.21  128 ranks of three speeds, a mesh whose sub-domains take equally long
# bound: the work divided by the speeds of all ranks; no balancer reaches less. FIGURES,
# SUBDOMAINS and SCHEDULERS say which.
set -eu
ferry=$1 mesh=$2
input=$(dirname "$0")/../../apps/data/great-britain.poly
speeds=0-63=1,64-95=1.081,96-127=1.952 # 333, 360 and 650 MHz

# one RANKS SUBDOMAINS SIZE SCHEDULER ARGUMENT...: "triangles makespan bound"
one()
{
    ranks=$1 subdomains=$2 size=$3 scheduler=$4
    shift 4
    "$ferry" sim -n "$ranks" --seed 1 --net ethernet-100m ${SPEEDS:+--cores-speed $SPEEDS} "$mesh" \
        --input "$input" --point-cost 60000 --subdomains $((ranks * subdomains)) --size "$size" \
        --scheduler "$scheduler" "$@" 2>/dev/null | awk -v ranks="$ranks" -v uneven="${SPEEDS:-}" '
        NF == 9 && $1 ~ /^[0-9]+$/ {
            speed = uneven == "" || $1 < 64 ? 1 : $1 < 96 ? 1.081 : 1.952
            work += $2 * speed; sum += speed }
        / triangles in / { gsub(",", "", $1); triangles = $1 }
        /^makespan/ { printf "%d %s %.3f\n", triangles, $2, work / sum; good = 1 }
        END { exit !good }'
}

# row FIGURE RANKS SUBDOMAINS SIZE SCHEDULER ARGUMENT...; "none" also sets what others compare with
row()
{
    figure=$1
    shift
    result=$(one "$@")
    # shellcheck disable=SC2086 # three words
    set -- "$1" "$2" "$4" $result
    [ "$3" != none ] || none=$5
    echo "$figure,$1,$2,$3,$4,$5,$6" | awk -F, -v none="$none" -v OFS=, \
        '{ print $0, none, sprintf("%.1f", 100 * (1 - $6 / none)) }'
}

place="--work-share 0 --feature=-60,5720,200,2"
echo "figure,ranks,subdomains_per_rank,scheduler,triangles,makespan_s,bound_s,none_s,gain_percent"
# shellcheck disable=SC2086 # words
for figure in ${FIGURES:-7.17 7.18 7.19 7.20 7.21}; do
    case $figure in
    7.17) ranks=32 size=5 some="4 8 16" schedulers="none stealing ferry" ;;
    7.18) ranks=64 size=5 some="4 8 16" schedulers="none stealing ferry" ;;
    7.19) ranks=64 size=3.5 some="4 8 16" schedulers="none stealing ferry" ;;
    7.20) ranks=64 size=3.5 some=16 schedulers="none stealing diffusion gradient multilist ferry" ;;
    7.21) ranks=128 size=2.5 some="8 16" schedulers="none stealing diffusion ferry"
        place="--work-share 1" SPEEDS=$speeds ;;
    esac
    for subdomains in ${SUBDOMAINS:-$some}; do
        for scheduler in ${SCHEDULERS:-$schedulers}; do
            row $figure $ranks $subdomains $size $scheduler $place
        done
    done
done
