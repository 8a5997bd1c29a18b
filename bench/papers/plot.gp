# Plots of docs/papers from the CSV files there: gnuplot -e "dir='docs/papers'" plot.gp
set datafile separator ","
set terminal svg size 860,360 dynamic background "white" font "sans-serif,12"
set style line 1 lc rgb "#b2182b" lw 2 pt 7 ps 0.5
set style line 2 lc rgb "#ef8a62" lw 2 pt 7 ps 0.5
set style line 3 lc rgb "#2166ac" lw 2 pt 7 ps 0.5
names = "passing driven progressive"

# Figures 6.1-6.3 of progressive-messages.txt: the model as lines, programs on Ferry as points.
do for [threshold in "10 100 1000"] {
    set output dir . "/progressive-" . threshold . ".svg"
    set multiplot layout 1,2 title "Threshold " . threshold
    set logscale x 2
    set xlabel "ranks"
    set xtics (1, 16, 256, 4096, 16384)
    set grid
    set key left top font ",9"
    set xrange [1:20000]
    set yrange [1:20000]
    set logscale y 2
    set ylabel "speed-up"
    set ytics (1, 16, 256, 4096, 16384)
    line(d) = sprintf("< awk -F, '$1==\"meant\" && $2==\"%s\" && $3==%s {print $4\",\"$5}' %s/progressive-model.csv", d, threshold, dir)
    dots(d) = sprintf("< awk -F, '$1==\"%s\" && $2==%s {print $3\",\"$4}' %s/progressive.csv", d, threshold, dir)
    plot for [i=1:3] line(word(names, i)) using 1:2 with lines ls i title word(names, i) . ", model", \
         for [i=1:3] dots(word(names, i)) using 1:2 with points ls i ps 1 title word(names, i) . ", on Ferry"
    unset logscale y
    unset key
    set ylabel "efficiency, %"
    set yrange [0:105]
    set ytics auto
    plot for [i=1:3] line(word(names, i)) using 1:(100*$2/$1) with lines ls i, \
         for [i=1:3] dots(word(names, i)) using 1:(100*$2/$1) with points ls i ps 1
    unset multiplot
    set xrange [*:*]
    set yrange [*:*]
    unset logscale
}

# Figures 7.1-7.4 and 7.7-7.10 of prema.txt: what each scheduler gains over none.
schedulers = "ferry stealing diffusion diffusion-sender gradient multilist master"
reset
set datafile separator ","
set grid
set terminal svg size 860,560 dynamic background "white" font "sans-serif,12"
do for [ranks in "32 64"] {
    set output dir . "/synthetic-" . ranks . ".svg"
    set multiplot layout 2,3 title ranks . " ranks: gain over no balancing, %; blue with preemption, pink without; the line is the bound"
    set style fill solid
    set boxwidth 0.38
    set xtics rotate by 60 right scale 0 font ",9"
    set bmargin 6
    set xrange [-0.6:6.6]
    set yrange [0:50]
    set ytics 0, 10
    unset xlabel
    unset ylabel
    unset key
    do for [heavy in "25 10"] {
        do for [tasks in "4 8 16"] {
            set title tasks . " tasks per rank, " . heavy . "% heavy" font ",11"
            rows(h) = sprintf("< awk -F, '$1==%s && $2==%s && $3==%s && $5==%d {print $4\",\"$9\",\"100*(1-$7/$8)}' %s/synthetic.csv", ranks, tasks, heavy, h, dir)
            plot rows(1) using ($0-0.2):2:xtic(1) with boxes lc rgb "#2166ac", \
                 rows(0) using ($0+0.2):2 with boxes lc rgb "#d1a5a5", \
                 rows(1) using 0:3 with lines lc rgb "black"
        }
    }
    unset multiplot
}

# Figure 5.13 of prema.txt: how long each rank worked.
reset
set datafile separator ","
set style fill solid
set output dir . "/preemption.svg"
set terminal svg size 860,360 dynamic background "white" font "sans-serif,12"
set multiplot layout 1,2 title "512 tasks on 32 ranks, scheduler diffusion: busy (blue) and idle (black), s"
set xrange [-0.6:31.6]
set yrange [0:70]
set ytics auto
set boxwidth 0.9
unset key
set xlabel "rank"
do for [helper in "1 0"] {
    set title (helper eq "1" ? "with preemption" : "without preemption")
    rows = sprintf("< awk -F, '$1==\"diffusion\" && $2==%s {print $3\",\"$4\",\"$5}' %s/preemption.csv", helper, dir)
    plot rows using 1:3 with boxes lc rgb "black", rows using 1:2 with boxes lc rgb "#9ab8d8"
}
unset multiplot

# The simulator against the machine: equal makespans lie on the line, those within 5% between the others.
reset
set datafile separator ","
set output dir . "/validation.svg"
set terminal svg size 560,420 dynamic background "white" font "sans-serif,12"
set grid
set logscale xy 2
set xlabel "makespan on port shm, ms"
set ylabel "simulated, ms"
set key left top
set xrange [64:512]
set yrange [64:512]
rows(n) = sprintf("< awk -F, '$1==%d {print $4\",\"$5}' %s/validation.csv", n, dir)
plot x with lines lc rgb "black" notitle, 0.95*x with lines lc rgb "grey" notitle, \
     1.05*x with lines lc rgb "grey" notitle, \
     for [n in "2 4 8 16"] rows(int(n)) using 1:2 with points pt 7 ps 0.6 title n . " ranks"
