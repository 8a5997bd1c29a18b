# Plots of kelp.csv and pingpong-*.csv in docs/papers: gnuplot -e "dir='docs/papers'" plot_more.gp
set datafile separator ","
set grid

# Figures 6 and 7 of kelp-data-mover.txt.
set terminal svg size 860,460 dynamic background "white" font "sans-serif,11"
set output dir . "/kelp.svg"
set multiplot layout 2,3 title "Simulated: seconds over ranks; blue: in all, red: in communication"
set xtics (8, 16, 32, 64)
set xrange [6:80]
set logscale x 2
set yrange [0:*]
unset key
do for [name in "redblack mg ft summa"] {
    set title name font ",11"
    rows = sprintf("< awk -F, '$1==6 && $2==\"%s\" {print $3\",\"$5\",\"$6}' %s/kelp.csv", name, dir)
    plot rows using 1:2 with linespoints lc rgb "#2166ac" lw 2 pt 7 ps 0.5, \
         rows using 1:3 with linespoints lc rgb "#b2182b" lw 2 pt 7 ps 0.5
}
set title "redblack with overlap, nodes of four" font ",11"
set key bottom right font ",9"
over(o) = sprintf("< awk -F, '$1==7 && $4==\"%s\" {print $3\",\"$5}' %s/kelp.csv", o, dir)
plot over("no") using 1:2 with linespoints lc rgb "black" lw 2 pt 7 ps 0.5 title "no overlap", \
     over("three") using 1:2 with linespoints lc rgb "#ef8a62" lw 2 pt 7 ps 0.5 title "3 of 4 compute", \
     over("all") using 1:2 with linespoints lc rgb "#2166ac" lw 2 pt 7 ps 0.5 title "3 are as fast as 4"
unset multiplot

# Figures 4.3-4.5, 4.15 and 4.16 of prema.txt.
set output dir . "/pingpong.svg"
set terminal svg size 860,330 dynamic background "white" font "sans-serif,11"
set multiplot layout 1,3 title "Requests and messages to objects, us over bytes"
set xrange [1:1048576]
set xtics ("1" 1, "64" 64, "4K" 4096, "64K" 65536, "1M" 1048576)
set yrange [*:*]
set logscale y 10
set key top left font ",9" samplen 1
line(file, network, form, column) = sprintf("< awk -F, '$1==\"%s\" && $2==\"%s\" {print $3\",\"$%d}' %s/%s.csv", network, form, column, dir, file)
forms = "nonblocking blocking synchronous object object-lent"
do for [network in "shm openmpi"] {
    set title "in the call, " . (network eq "shm" ? "shared memory" : "Open MPI") font ",11"
    plot for [form in forms] line("pingpong-measured", network, form, 4) using 1:2 with linespoints lw 2 pt 7 ps 0.4 title form
}
set title "half a round trip, simulated Ethernet" font ",11"
plot for [form in forms] line("pingpong-simulated", "ethernet-2004", form, 6) using 1:2 with linespoints lw 2 pt 7 ps 0.4 title form
unset multiplot
