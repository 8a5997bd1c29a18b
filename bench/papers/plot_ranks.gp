# Plots of docs/papers/synthetic-ranks.csv: gnuplot -e "dir='docs/papers'" plot_ranks.gp
set datafile separator ","
set style fill solid
unset grid
unset key
names = "none diffusion ferry"
others = "diffusion stealing multilist gradient"

# Figures 7.1-7.4 of prema.txt: a row for each scheduler, a column for each number of tasks.
set terminal svg size 860,620 dynamic background "white" font "sans-serif,11"
do for [ranks in "32 64"] {
    do for [heavy in "25 10"] {
        set output dir . "/ranks-" . ranks . "-" . heavy . ".svg"
        set multiplot layout 3,3 title ranks . " ranks, " . heavy . "% heavy: time of each rank, s; blue: at work, black: idle"
        set xrange [-0.5:ranks-0.5]
        do for [name in names] {
            do for [tasks in "4 8 16"] {
                set yrange [0:2.2*tasks]
                set ytics 0, tasks, 2*tasks
                set xtics 0, ranks/4
                set title name . ", " . tasks . " tasks per rank" font ",10"
                rows = sprintf("< awk -F, '$1==%s && $2==%s && $3==%s && $4==\"%s\" { print $5 - 0.5 \",\" $6 \",\" $7; print $5 + 0.5 \",\" $6 \",\" $7 }' %s/synthetic-ranks.csv", ranks, tasks, heavy, name, dir)
                plot rows using 1:3 with filledcurves y1=0 lc rgb "black", rows using 1:2 with filledcurves y1=0 lc rgb "#9ab8d8"
            }
        }
        unset multiplot
    }
}

# Figures 7.7-7.10: four schedulers.
set terminal svg size 860,480 dynamic background "white" font "sans-serif,11"
do for [ranks in "32 64"] {
    do for [tasks in "8 16"] {
        set output dir . "/schedulers-" . ranks . "-" . tasks . ".svg"
        set multiplot layout 2,2 title ranks . " ranks, " . tasks . " tasks for each, 25% heavy: time of each rank, s; blue: at work, black: idle"
        set xrange [-0.5:ranks-0.5]
        set yrange [0:1.5*tasks]
        set ytics 0, tasks/2, 1.5*tasks
        set xtics 0, ranks/4
        do for [name in others] {
            set title name font ",10"
            rows = sprintf("< awk -F, '$1==%s && $2==%s && $3==25 && $4==\"%s\" { print $5 - 0.5 \",\" $6 \",\" $7; print $5 + 0.5 \",\" $6 \",\" $7 }' %s/synthetic-ranks.csv", ranks, tasks, name, dir)
            plot rows using 1:3 with filledcurves y1=0 lc rgb "black", rows using 1:2 with filledcurves y1=0 lc rgb "#9ab8d8"
        }
        unset multiplot
    }
}
