#!/bin/sh
# Figures 6 and 7 of kelp-data-mover.txt, as CSV: the applications redblack, mg, ft and summa, which
# verify their results, on simulated networks.
#   6  8 to 64 ranks of an IBM SP2 (sp2.net), 100 Mflop/s each: red-black on 360^3, MG on 256^3, FT
#      on 256 x 256 x 128, SUMMA of 1,400 to 2,800 rows (200 Mflop/s: a vendor's matrix product);
#      time, and time in communication
#   7  red-black, two million points for each of 16 to 64 nodes of four processors (blue.net), 200
#      Mflop/s together. overlap "no": all four compute, then the ghost cells travel. "three": three
#      compute while the fourth moves the data. "all": as "three", but the memory limits the speed
#      of computing, and three are as fast as four. The paper's nodes lie between these two.
# FIGURES, RANKS and PROGRAMS say which. 64 ranks take 1.5 GB.
set -eu
ferry=$1 apps=$2
here=$(dirname "$0")

# one RANKS NET PROGRAM ARGUMENT...: "seconds communication"
one()
{
    ranks=$1 net=$2
    shift 2
    FERRY_HEAP_BYTES=1G "$ferry" sim -n "$ranks" --seed 1 --net "$here/$net" "$@" |
        sed -n 's/.* \([0-9.]*\) s, .*communication \([0-9.]*\) s$/\1 \2/p' | grep .
}

echo "figure,program,ranks,overlap,seconds,communication_s,communication_percent"
for ranks in ${RANKS:-8 16 32 64}; do
    case $ranks in 8) n=1400 ;; 16) n=1800 ;; 32) n=2200 ;; *) n=2800 ;; esac
    for program in "redblack 360 5" "mg A" "ft A" "summa $n 50"; do
        case "${FIGURES:-6 7}" in *6*) ;; *) continue ;; esac
        name=${program%% *} flops=1e8
        case "${PROGRAMS:-redblack mg ft summa}" in *"$name"*) ;; *) continue ;; esac
        [ "$name" != summa ] || flops=2e8
        # shellcheck disable=SC2086 # words
        one "$ranks" sp2.net "$apps"/$program --flops $flops |
            awk -v head="6,$name,$ranks,no" '{ printf "%s,%s,%s,%.1f\n", head, $1, $2, 100 * $2 / $1 }'
    done
done
for ranks in ${RANKS:-16 32 64}; do
    case "${FIGURES:-6 7}" in *7*) ;; *) continue ;; esac
    [ "$ranks" != 8 ] || continue
    n=$(awk -v ranks="$ranks" 'BEGIN { printf "%d", (2e6 * ranks) ^ (1 / 3) + 0.5 }')
    for overlap in no three all; do
        flops=2e8 option=--overlap
        [ $overlap != no ] || option=
        [ $overlap != three ] || flops=1.5e8
        one "$ranks" blue.net "$apps"/redblack "$n" 5 $option --flops $flops |
            awk -v head="7,redblack,$ranks,$overlap" \
                '{ printf "%s,%s,%s,%.1f\n", head, $1, $2, 100 * $2 / $1 }'
    done
done
