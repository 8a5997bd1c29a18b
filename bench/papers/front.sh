#!/bin/sh
# Figures 7.11-7.15 of prema.txt, as CSV: the parallel advancing front on a simulated 100 Mb/s
# Ethernet, by the costs of apps/data/front-*.csv, which Netgen took for one domain in 64 to 2,048
# sub-domains. Times count FACTOR times, so that the unbalanced run on 128 ranks takes as long as
# the thesis's (1,332 s).
#   7.11a  time in the runtime, summed over ranks, for more and more sub-domains, with stealing
#   7.11b  the same with 2,048 sub-domains and costs of 1/16 to 1 (7.11c: in percent of the work)
#   7.12   the mesher's whole time, whatever the ranks, and the time of the heaviest sub-domain
#   7.13   16 sub-domains for each rank: the busiest and the idlest rank and the deviation, as
#          7.14 and 7.15 show them; with the helper thread and without. metis: stop and repartition
#          by numbers of sub-domains, metis-hint: by their expected sizes. Of three thresholds, with
#          one stop or any number of them, that which takes least counts. ferry-hint: the scheduler
#          is told the expected sizes too.
# FIGURES, RANKS and BALANCERS say which.
set -eu
ferry=$1 front=$2
data=$(dirname "$0")/../../apps/data
factor=506

shape()
{
    case $1 in
    64) echo 4,4,4 ;;
    128) echo 8,4,4 ;;
    256) echo 8,8,4 ;;
    512) echo 8,8,8 ;;
    1024) echo 16,8,8 ;;
    2048) echo 16,16,8 ;;
    esac
}

# one RANKS SUBDOMAINS FACTOR ARGUMENT...: "makespan bound least most deviation runtime work"
one()
{
    ranks=$1 count=$2 times=$3
    shift 3
    "$ferry" sim -n "$ranks" --seed 1 --net ethernet-100m "$front" --domain 16,16,16 \
        --subdomains "$(shape "$count")" --replay "$data/front-$count.csv" --factor "$times" "$@" |
        awk 'NF == 7 && $1 ~ /^[0-9]+$/ { runtime += $4 + $5; work += $3 }
            /^makespan .* deviation/ { printf "%s %s %s %s %s", $2, $7, $10, $12, $15; good = 1 }
            END { printf " %.6f %.3f\n", runtime, work; exit !good }'
}

# balanced RANKS SUBDOMAINS BALANCER: as one, with the arguments that BALANCER stands for
balanced()
{
    case $3 in
    metis) best "$1" "$2" ;;
    metis-hint) best "$1" "$2" --hint ;;
    ferry-hint) one "$1" "$2" $factor --hint ;;
    *) one "$1" "$2" $factor --scheduler "$3" ;;
    esac
}

# best RANKS SUBDOMAINS ARGUMENT...: stop and repartition, by the rule that takes least
best()
{
    ranks=$1 count=$2
    shift 2
    for threshold in 1 2 4; do
        for stops in 1 1000; do
            one "$ranks" "$count" $factor --repartition --threshold $threshold --stops $stops "$@"
        done
    done | sort -g | head -n 1
}

overheads()
{
    for ranks in ${RANKS:-8 16 32 64 128}; do
        for count in 64 128 256 512 1024 2048; do
            [ $count -lt "$ranks" ] || row 7.11a "$ranks" $count stealing 1 \
                "$(one "$ranks" $count $factor --scheduler stealing)"
        done
    done
    for part in 16 8 4 2 1; do
        for ranks in ${RANKS:-8 16 32 64 128}; do
            times=$(awk "BEGIN { print $factor / $part }")
            row 7.11b "$ranks" 2048 stealing 1 "$(one "$ranks" 2048 "$times" --scheduler stealing)"
        done
    done
}

# row FIGURE RANKS SUBDOMAINS BALANCER HELPER "RESULT"
row()
{
    echo "$1,$2,$3,$4,$5,$6 ${none:-0}" | tr ' ' , | awk -F, -v OFS=, '{
        gain = $13 > 0 ? sprintf("%.1f", 100 * (1 - $6 / $13)) : ""
        print $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, sprintf("%.4f", 100 * $11 / $12), gain }'
}

echo "figure,ranks,subdomains,balancer,helper,makespan_s,bound_s,least_busy_s,most_busy_s,\
deviation_s,runtime_s,runtime_percent,gain_percent"
for figure in ${FIGURES:-7.11 7.12 7.13}; do
    none=
    case $figure in
    7.11) overheads ;;
    7.12)
        for count in 64 128 256 512 1024 2048; do
            row 7.12 1 $count none 1 "$(one 1 $count 1 --scheduler none)"
        done
        ;;
    7.13)
        for ranks in ${RANKS:-32 64 128}; do
            none=
            for balancer in ${BALANCERS:-none metis metis-hint stealing diffusion multilist \
                master ferry ferry-hint}; do
                for helper in 1 0; do
                    case $helper,$balancer in 0,none | 0,metis*) continue ;; esac
                    result=$(FERRY_HELPER=$helper balanced "$ranks" $((16 * ranks)) "$balancer")
                    [ "$balancer" != none ] || none=${result%% *}
                    row 7.13 "$ranks" $((16 * ranks)) "$balancer" $helper "$result"
                done
            done
        done
        ;;
    esac
done
