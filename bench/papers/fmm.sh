#!/bin/sh
# Figures 7.29 to 7.35 of prema.txt as CSV: one time step of the fast multipole program on 64 ranks
# of a simulated 100 Mb/s Ethernet, with 4,096 boxes. most: the largest time that a rank computes,
# by the mean; thesis_most is the thesis's. Then clusters at rest and in motion, five steps on 32
# ranks: the best split by hand beside the default scheduler. FIGURES and SCHEDULERS say which.
set -eu
ferry=$1 fmm=$2
x='\([0-9.]*\)'

# one FIGURE NAME CHUNK SPLIT THESIS ARGUMENT...
one()
{
    figure=$1 name=$2 chunk=$3 split=$4 thesis=$5
    shift 5
    "$ferry" sim --seed 1 "$@" --chunk "$chunk" --split "$split" |
        sed -n "s/.*s: $x ms per step, ratio $x, most work $x of .*, $x moves.*/\1,\2,\3,\4/p" |
        sed "s/^/$figure,$name,$chunk,$split,/; s/\$/,$thesis/" | grep .
}

# step FIGURE DISTRIBUTION CHUNK NAME THESIS: a time step as the thesis ran it
step()
{
    case $4 in
    none) set -- "$@" --no-balance ;;
    master-unpreempted) export FERRY_SCHEDULER=master FERRY_HELPER=0 ;;
    diffusion) export FERRY_SCHEDULER=diffusion FERRY_SCHEDULER_NEIGHBOURS=8 ;;
    *) export FERRY_SCHEDULER="$4" ;;
    esac
    figure=$1 distribution=$2 chunk=$3 name=$4 thesis=$5
    shift 5
    one "$figure,$distribution" "$name" "$chunk" equal "$thesis" -n 64 --net ethernet-100m "$fmm" \
        --bodies 65536 --level 4 --order 2 --steps 1 --distribution "$distribution" \
        --flops 8e4 "$@"
}

# clusters NAME SPLIT SPEED ARGUMENT...
clusters()
{
    name=$1 split=$2 speed=$3
    shift 3
    one "clusters,$speed" "$name" 1 "$split" "" -n 32 --net infiniband-hdr "$fmm" --bodies 20000 \
        --leaf 50 --level 4 --order 3 --distribution clusters --clusters 8 --radius 0.1 \
        --steps 5 --flops 1e8 --speed "$speed" "$@"
}

echo "figure,bodies,scheduler,chunk,split,ms_per_step,over_bound,most,moves,thesis_most"
for figure in ${FIGURES:-7.29 7.30 7.31 7.32 7.33 7.34 7.35 clusters}; do
    case $figure in
    7.29) for bodies in uniform half; do (step 7.29 $bodies 1 none ""); done ;;
    7.30) chunk=1 bodies=uniform prema=1.020 master=1.024 ;;
    7.31) chunk=6 bodies=uniform prema='' master='' ;;
    7.32) chunk=1 bodies=half prema=1.037 master=1.076 ;;
    7.33) chunk=0 bodies=uniform prema=1.061 master=1.032 ;;
    7.34) chunk=0 bodies=half prema='' master='' ;;
    7.35) for bodies in uniform half; do (step 7.35 $bodies 1 master-unpreempted ""); done ;;
    clusters)
        for speed in 0 0.02; do
            clusters none equal $speed --no-balance
            clusters none weighted $speed --no-balance
            clusters ferry equal $speed
        done ;;
    esac
    case $figure in 7.3[0-4]) ;; *) continue ;; esac
    for scheduler in ${SCHEDULERS:-ferry diffusion master}; do
        thesis=
        case $scheduler in diffusion) thesis=$prema ;; master) thesis=$master ;; esac
        (step "$figure" "$bodies" "$chunk" "$scheduler" "$thesis")
    done
done
