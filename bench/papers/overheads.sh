#!/bin/sh
# Tables 7.1 and 7.2 of prema.txt, as CSV: what the runtime takes by category, from FERRY_PROFILE;
# the mean over the ranks, in milliseconds. Table 7.1 has the advancing front on 128 ranks (front),
# Table 7.2 a step of the N-body program with two distributions (fmm-uniform, fmm-half), as in
# front.sh and fmm.sh. The synthetic benchmark runs as long as they do. Sending and taking messages
# cost what the simulated network says, 8 us each. The runtime's instructions cost nothing there, so
# `scheduler` and `callbacks` are counted by the clock's own steps alone. PROGRAMS and SCHEDULERS say
# which.
set -eu
ferry=$1 synthetic=$2 front=$3 fmm=$4
data=$(dirname "$0")/../../apps/data

# measure PROGRAM SCHEDULER RANKS COMMAND...
measure()
{
    head=$1,$2,$3 ranks=$3 scheduler=$2
    shift 3
    FERRY_PROFILE=1 FERRY_SCHEDULER=$scheduler "$ferry" sim -n "$ranks" --seed 1 \
        --net ethernet-100m "$@" 2>&1 |
        awk -v head="$head" '
            /send ms +pack ms/ { table = 1; next }
            /^messages to/ { table = 0 }
            !table && NF == 10 && $1 ~ /^[0-9]+$/ { wall += $9 }
            table && NF == 9 && $1 ~ /^[0-9]+$/ {
                n++; send += $2; calls += $3 + $4; sched += $5; poll += $6; helper += $7
                sum += $8 }
            END { if (n == 0 || wall == 0) exit 1
                printf "%s,%.3f,%.3f,%.3f,%.3f,%.3f,%.2f,%.4f\n", head, send / n, calls / n,
                    sched / n, poll / n, helper / n, wall / n, sum / wall / 10 }'
}

echo "program,scheduler,ranks,send_ms,callbacks_ms,scheduler_ms,poll_ms,helper_ms,wall_s,\
overhead_percent"
for program in ${PROGRAMS:-synthetic front fmm-uniform fmm-half}; do
    for scheduler in ${SCHEDULERS:-none stealing diffusion multilist master ferry}; do
        case $program in
        synthetic)
            measure synthetic "$scheduler" 128 "$synthetic" --work compute --light 30000 \
                --tasks 16 --heavy 25 ;;
        front)
            measure front "$scheduler" 128 "$front" --domain 16,16,16 --subdomains 16,16,8 \
                --replay "$data/front-2048.csv" --factor 506 ;;
        fmm-*)
            measure "$program" "$scheduler" 64 "$fmm" --bodies 65536 --level 4 --order 2 \
                --steps 1 --distribution "${program#fmm-}" --flops 8e4 --chunk 1 --split equal ;;
        esac
    done
done
