#!/bin/sh
# Figures 7.1-7.4 and 7.7-7.10 of prema.txt, one line per experiment, as CSV. They are the synthetic
# benchmark on a simulated 100 Mb/s Ethernet of 2004, with tasks of 1 and 2 s, under every
# scheduler, with the helper thread (preemption) and without. Times are medians over five seeds.
# RANKS, HEAVY, TASKS and SCHEDULERS say which.
set -eu
ferry=$1 synthetic=$2
seeds="1 2 3 4 5"

# one RANKS TASKS HEAVY HELPER ARGUMENT...: "makespan bound", in seconds
one()
{
    ranks=$1 tasks=$2 heavy=$3 helper=$4
    shift 4
    for seed in $seeds; do
        FERRY_HELPER=$helper "$ferry" sim -n "$ranks" --seed "$seed" --net ethernet-100m \
            "$synthetic" --work compute --light 1000 --tasks "$tasks" --heavy "$heavy" "$@" |
            sed -n 's/.*makespan \([0-9.]*\) ms, bound \([0-9.]*\) ms.*/\1 \2/p'
    done | sort -n | awk '{ t[NR] = $1; b = $2 }
        END { if (NR == 0) exit 1; printf "%.3f %.3f\n", t[int((NR + 1) / 2)] / 1e3, b / 1e3 }'
}

echo "ranks,tasks,heavy,scheduler,helper,makespan_s,bound_s,none_s,gain_percent"
for ranks in ${RANKS:-32 64}; do
    for heavy in ${HEAVY:-25 10}; do
        for tasks in ${TASKS:-4 8 16}; do
            none=$(one $ranks $tasks $heavy 1 --no-balance)
            none=${none% *}
            for scheduler in ${SCHEDULERS:-ferry stealing diffusion diffusion-sender gradient \
                multilist master}; do
                for helper in 1 0; do
                    one $ranks $tasks $heavy $helper --scheduler $scheduler |
                        awk -v head="$ranks,$tasks,$heavy,$scheduler,$helper" -v none="$none" \
                            '{ printf "%s,%s,%s,%s,%.1f\n", head, $1, $2, none,
                                100 * (1 - $1 / none) }'
                done
            done
        done
    done
done
