# Plots of studies.csv in docs/papers: gnuplot -e "dir='docs/papers'" plot_model.gp
# Lines: the schedule played through. Thin lines: the average of the bounds, which the thesis has.
set datafile separator ","
set grid
colours = "#2166ac #b2182b #4d9221 #e08214"
rows(figure, ranks, series, parameter, column) = sprintf( \
    "< awk -F, '$1==\"%s\" && $2==%d && $3==\"%s\" && $4==\"%s\" {print $5\",\"$%d}' %s/studies.csv", \
    figure, ranks, series, parameter, column, dir)

# What each figure varies: number, numbers of ranks, series, the parameter, and what a series is.
figures = "6.10 6.11 6.12 6.13 6.14 6.15 6.16 6.17"
ranks_of = "32,64,256 32,64,256 32,64,256 32,64,256 64,256,512 64,256,512 64,256,512 64,256,512"
series_of = "10,25,50 4,8,16 10,25,50 1,4,8,16 1.2,2,4 4,8,16 1.2,2,4 1,4,8,16"
parameters = "tasks quantum quantum tasks tasks quantum quantum tasks"
meanings = "'variance, %' 'tasks per rank' 'variance, %' 'neighbours' 'heaviest / lightest' 'tasks per rank' 'heaviest / lightest' 'neighbours'"
part(text, i) = system(sprintf("echo %s | cut -d, -f%d", text, i))

set terminal svg size 860,330 dynamic background "white" font "sans-serif,11"
do for [n=1:8] {
    figure = word(figures, n)
    parameter = word(parameters, n)
    set output dir . "/study-" . figure . ".svg"
    set multiplot layout 1,3 title "Figure " . figure . ": predicted seconds; series: " . word(meanings, n)
    set key top right font ",9" samplen 1
    if (parameter eq "quantum") { set logscale x; set xlabel "quantum, s" } else { unset logscale x; set xlabel "tasks per rank" }
    series = word(series_of, n)
    count = words(system("echo " . series . " | tr , ' '"))
    do for [r=1:3] {
        ranks = int(part(word(ranks_of, n), r))
        set title sprintf("%d ranks", int(ranks)) font ",11"
        plot for [i=1:count] rows(figure, ranks, part(series, i), parameter, 7) using 1:2 with lines lc rgb word(colours, i) lw 0.7 dt 2 notitle, \
             for [i=1:count] rows(figure, ranks, part(series, i), parameter, 9) using 1:2 with lines lc rgb word(colours, i) lw 2 title part(series, i)
    }
    unset multiplot
}

set output dir . "/study-6.18.svg"
set terminal svg size 860,560 dynamic background "white" font "sans-serif,11"
set multiplot layout 2,3 title "Figure 6.18: predicted seconds on 10, 100 and 1000 Mb/s Ethernet"
do for [ranks in "32 256"] {
    do for [parameter in "quantum tasks neighbours"] {
        if (parameter eq "quantum") { set logscale x; set xlabel "quantum, s" } else { unset logscale x; set xlabel (parameter eq "tasks" ? "tasks per rank" : parameter) }
        set title sprintf("%d ranks", int(ranks)) font ",11"
        nets = "10 100 1000"
        plot for [i=1:3] rows("6.18", int(ranks), word(nets, i), parameter, 7) using 1:2 with lines lc rgb word(colours, i) lw 0.7 dt 2 notitle, \
             for [i=1:3] rows("6.18", int(ranks), word(nets, i), parameter, 9) using 1:2 with lines lc rgb word(colours, i) lw 2 title word(nets, i) . " Mb/s"
    }
}
unset multiplot
