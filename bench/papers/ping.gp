# Plot of docs/papers/ping.csv: gnuplot -e "dir='docs/papers'" ping.gp
set datafile separator ","
set terminal svg size 860,620 dynamic background "white" font "sans-serif,12"
set output dir . "/ping.svg"
tests = "pong ping put get"
titles = "'ping-pong' 'ping-ping' 'ping-put' 'ping-get'"
rows(t, peer, column) = sprintf("< awk -F, '$1==\"%s-complete\" && $3==\"%s\" {print $2\",\"$%d}' %s/ping.csv", t, peer, column, dir)
shared = sprintf("< awk -F, '$1==\"pong-shared\" && $3==\"openmpi\" {print $2\",\"$4}' %s/ping.csv", dir)
set multiplot layout 2,4 title "Ping tests that wait for completion: latency, us; bandwidth, GB/s; over bytes"
set logscale x 2
set xtics ("8" 8, "512" 512, "16K" 16384, "256K" 262144, "4M" 4194304) font ",9"
set grid
set logscale y 10
set key left top font ",9" samplen 1
do for [i=1:4] {
    set title word(titles, i)
    t = word(tests, i)
    plot rows(t, "openmpi", 4) with linespoints lc rgb "#2166ac" lw 2 pt 7 ps 0.4 title "Ferry", \
         rows(t, "openmpi", 5) with linespoints lc rgb "#b2182b" lw 2 pt 7 ps 0.4 title "Open MPI", \
         rows(t, "mpich", 5) with linespoints lc rgb "#ef8a62" lw 2 pt 7 ps 0.4 title "MPICH"
}
unset title
unset logscale y
set yrange [0:*]
unset key
do for [i=1:4] {
    t = word(tests, i)
    set key left top font ",9" samplen 1
    if (i == 1) {
        plot rows(t, "openmpi", 4) using 1:($1/$2/1000) with linespoints lc rgb "#2166ac" lw 2 pt 7 ps 0.4 notitle, \
             shared using 1:($1/$2/1000) with linespoints lc rgb "#2166ac" dt 2 lw 2 pt 6 ps 0.4 title "Ferry, shared heap", \
             rows(t, "openmpi", 5) using 1:($1/$2/1000) with linespoints lc rgb "#b2182b" lw 2 pt 7 ps 0.4 notitle, \
             rows(t, "mpich", 5) using 1:($1/$2/1000) with linespoints lc rgb "#ef8a62" lw 2 pt 7 ps 0.4 notitle
    } else {
        plot rows(t, "openmpi", 4) using 1:($1/$2/1000) with linespoints lc rgb "#2166ac" lw 2 pt 7 ps 0.4 notitle, \
             rows(t, "openmpi", 5) using 1:($1/$2/1000) with linespoints lc rgb "#b2182b" lw 2 pt 7 ps 0.4 notitle, \
             rows(t, "mpich", 5) using 1:($1/$2/1000) with linespoints lc rgb "#ef8a62" lw 2 pt 7 ps 0.4 notitle
    }
}
unset multiplot
