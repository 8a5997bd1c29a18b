#!/bin/sh
# The tables of docs/papers/README.md, from its CSV files: tables.sh [FOLDER [NAME]]. Behind a
# figure, where the paper gives one, stands the paper's. The test papers_rows compares.
set -eu
docs=${1:-$(dirname "$0")/../../docs/papers}
only=${2:-}

wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }

# Columns are numbers of ranks, each with the model as meant / the program.
wanted progressive && awk -F, -v OFS='' '
    function number(x) { x = x < 1000 ? sprintf("%.1f", x) : sprintf("%.0f", x)
        return length(x) > 3 && x !~ /\./ ? substr(x, 1, length(x) - 3) "," substr(x, length(x) - 2) : x }
    FNR == 1 { next }
    FILENAME ~ /model/ && $1 == "meant" { model[$2, $3, $4] = $5; next }
    FILENAME !~ /model/ { program[$1, $2, $3] = $4; if (!($3 in seen)) { seen[$3]; ranks[++n] = $3 } }
    END {
        printf "| threshold | discipline |"
        for (i = 1; i <= n; i++) printf " %s ranks |", number(ranks[i] + 0) == ranks[i] ".0" ? ranks[i] : number(ranks[i])
        printf "\n|---|---|"
        for (i = 1; i <= n; i++) printf "---|"
        print ""
        split("10 100 1000", thresholds, " "); split("passing driven progressive", names, " ")
        for (t = 1; t <= 3; t++) for (d = 1; d <= 3; d++) {
            printf "| %s | %s |", thresholds[t], d < 3 ? "message-" names[d] : names[d]
            for (i = 1; i <= n; i++)
                printf " %s / %s |", number(model[names[d], thresholds[t], ranks[i]]),
                    number(program[names[d], thresholds[t], ranks[i]])
            print "" } }' "$docs/progressive-model.csv" "$docs/progressive.csv"

# gain HELPER HEAVY: a row for each scheduler
gain()
{
    awk -F, -v helper="$1" -v heavy="$2" '
        BEGIN {
            thesis["stealing", 32, 8, 25] = 24; thesis["diffusion", 32, 4, 25] = 25
            thesis["diffusion", 32, 8, 25] = 37; thesis["diffusion", 32, 16, 25] = 33
            thesis["diffusion", 64, 4, 25] = 25; thesis["diffusion", 64, 16, 25] = 31
            thesis["gradient", 32, 8, 25] = 24; thesis["multilist", 32, 8, 25] = 32
            thesis["diffusion", 64, 4, 10] = 25; thesis["diffusion", 64, 16, 10] = 38
            m = split("ferry stealing diffusion diffusion-sender gradient multilist master", names, " ")
            split("4 8 16", tasks, " "); split("32 64", ranks, " ") }
        NR > 1 && $3 == heavy && $5 == helper { gain[$4, $1, $2] = $9 + 0 == 0 ? "0.0" : $9 }
        END {
            printf "| scheduler |"
            for (r = 1; r <= 2; r++) for (t = 1; t <= 3; t++)
                printf " %d ranks, %d tasks |", ranks[r], tasks[t]
            print "\n|---|---|---|---|---|---|---|"
            for (i = 1; i <= m; i++) {
                printf "| %s |", names[i]
                for (r = 1; r <= 2; r++) for (t = 1; t <= 3; t++) {
                    printf " %s", gain[names[i], ranks[r], tasks[t]]
                    key = names[i] SUBSEP ranks[r] SUBSEP tasks[t] SUBSEP heavy
                    if (helper && key in thesis) printf " (thesis %d)", thesis[key]
                    printf " |" }
                print "" } }' "$docs/synthetic.csv"
}
wanted synthetic && for helper in 1 0; do for heavy in 25 10; do gain $helper $heavy; done; done

wanted hops && awk -F, '
    NR == 1 { head = "| forwards |"; line = "|---|"; row = "| us |" }
    NR > 1 { head = head " " $1 " |"; line = line "---|"; row = row sprintf(" %.0f |", $2) }
    END { print head; print line; print row }' "$docs/hops.csv"

wanted histogram && awk -F, '
    function number(x) { return x < 1000 ? x : substr(x, 1, length(x) - 3) "," substr(x, length(x) - 2) }
    NR > 1 { n[$1, $2] = $3; all[$1] += $3; most = $2 > most ? $2 : most }
    END {
        printf "| forwards |"; for (i = 0; i <= most; i++) printf " %d%s |", i, (i == 7 ? " or more" : "")
        printf "\n|---|"; for (i = 0; i <= most; i++) printf "---|"
        split("10 50", percents, " ")
        for (p = 1; p <= 2; p++) {
            printf "\n| %d%% refined |", percents[p]
            for (i = 0; i <= most; i++) {
                k = n[percents[p], i]; share = 100 * k / all[percents[p]]
                printf "%s |", k == "" ? "" : " " number(k) (share >= 5 ? sprintf(" (%.0f%%)", share) : "") } }
        print "" }' "$docs/hops-histogram.csv"

wanted preemption && awk -F, '
    BEGIN { print "| makespan, s | with preemption | without |"; print "|---|---|---|" }
    NR > 1 { if (!($1 in seen)) { seen[$1]; order[++n] = $1 } makespan[$1, $2] = $5 }
    END { for (i = 1; i <= n; i++)
        printf "| %s | %.1f | %.1f |\n", order[i], makespan[order[i], 1], makespan[order[i], 0] }' \
    "$docs/preemption.csv"

wanted foresight && awk -F, '
    function error(percent) { return percent == "" ? "" : sprintf(" %+.1f%%", percent) }
    BEGIN { print "| program | ranks | scheduler | measured, s | replayed | average of the bounds | played |"
        print "|---|---|---|---|---|---|---|" }
    NR > 1 { printf "| %s | %d | %s | %.2f |%s |%s |%s |\n", $1, $2, $3, $4, error($6), error($8), error($10) }' \
    "$docs/foresight.csv"

# The quantum of the shortest run, and those of the runs that are at most 1% longer.
wanted studies && awk -F, '
    NR > 1 && $4 == "quantum" {
        key = $1 SUBSEP $3; if (!(key in seen)) { seen[key]; order[++n] = key }
        k = ++count[key, $2]; value[key, $2, k] = $5; played[key, $2, k] = $9
        if (!((key, $2) in least) || $9 < least[key, $2]) { least[key, $2] = $9; best[key, $2] = $5 } }
    END {
        m = split("32 64 256 512", ranks, " ")
        print "| figure | series | 32 ranks | 64 ranks | 256 ranks | 512 ranks |"
        print "|---|---|---|---|---|---|"
        for (i = 1; i <= n; i++) {
            split(order[i], part, SUBSEP)
            printf "| %s | %s |", part[1], part[2]
            for (r = 1; r <= m; r++) {
                key = order[i] SUBSEP ranks[r]; first = ""
                for (k = 1; k <= count[key]; k++) if (played[key, k] <= least[key] * 1.01) {
                    last = value[key, k]; if (first == "") first = last }
                printf " %s |", count[key] ? best[key] " (" first " to " last ")" : "" }
            print "" } }' "$docs/studies.csv"

wanted mesh && awk -F, '
    BEGIN {
        thesis["7.17", 4] = 30; thesis["7.17", 16] = 42
        thesis["7.18", 4] = thesis["7.18", 8] = thesis["7.18", 16] = 15
        thesis["7.19", 16] = 20; thesis["7.20", "stealing"] = 20; thesis["7.20", "diffusion"] = 18
        thesis["7.20", "gradient"] = 12; thesis["7.20", "multilist"] = 14; thesis["7.21", 16] = 23
        print "| figure | ranks | sub-domains per rank | none, s | bound | scheduler: gain, % |"
        print "|---|---|---|---|---|---|" }
    function flush() { if (row != "") print row " |"; row = "" }
    NR > 1 && $4 == "none" { flush()
        row = sprintf("| %s | %d | %d | %.1f | %.1f |", $1, $2, $3, $6, 100 * (1 - $7 / $6)); first = 1; next }
    NR > 1 {
        row = row (first ? " " : ", ") $4 " " $9; first = 0
        t = ($1, $4) in thesis ? thesis[$1, $4] : $4 == "stealing" && ($1, $3) in thesis ? thesis[$1, $3] : ""
        if (t != "") row = row " (thesis " t ")" }
    END { flush() }' "$docs/mesh.csv"

wanted front && awk -F, '
    BEGIN { thesis[32, "diffusion"] = thesis[128, "diffusion"] = 42; thesis[64, "diffusion"] = 39
        busy["none"] = "487 to 1,332"; busy["metis"] = "499 to 786"; busy["stealing"] = "635 to 775"
        busy["diffusion"] = "632 to 765"; busy["multilist"] = "411 to 1,043"; busy["master"] = "622 to 775"
        print "| ranks | balancer | makespan, s | gain, % | without the helper, % | busy, s | deviation, s |"
        print "|---|---|---|---|---|---|---|" }
    function flush() { if (row != "") print row " | " without " | " rest " |"; row = without = "" }
    $1 != "7.13" { next }
    $5 == 0 { without = $13; next }
    { flush()
        row = sprintf("| %d | %s | %.0f | %s", $2, $4, $6, $4 == "none" ? "" : $13)
        if (($2, $4) in thesis) row = row " (thesis " thesis[$2, $4] ")"
        rest = sprintf("%.0f to %.0f%s | %.0f", $8, $9, $2 == 128 && $4 in busy ? " (thesis " busy[$4] ")" : "", $10) }
    END { flush() }' "$docs/front.csv"
wanted front && awk -F, '
    $1 == "7.11a" { value[$3, $2] = $11; if (!($2 in seen)) { seen[$2]; ranks[++n] = $2 }
        if (!($3 in had)) { had[$3]; counts[++m] = $3 } }
    $1 == "7.11b" { weight[$2, ++of[$2]] = sprintf("%.1f s, %.4f%%", $11, $12) }
    END {
        printf "| sub-domains |"
        for (i = 1; i <= n; i++) printf " %d ranks |", ranks[i]
        printf "\n|---|"
        for (i = 1; i <= n; i++) printf "---|"
        print ""
        for (j = 1; j <= m; j++) {
            printf "| %d |", counts[j]
            for (i = 1; i <= n; i++) printf (counts[j], ranks[i]) in value ? " %.1f |" : " |", value[counts[j], ranks[i]]
            print "" }
        split("1/16 1/8 1/4 1/2 1", parts, " ")
        for (j = 1; j <= 5; j++) {
            printf "| 2048, costs x %s |", parts[j]
            for (i = 1; i <= n; i++) printf " %s |", weight[ranks[i], j]
            print "" } }' "$docs/front.csv"
wanted front && awk -F, '
    BEGIN { print "| sub-domains | mesher, s |"; print "|---|---|" }
    $1 == "7.12" { printf "| %d | %.1f |\n", $3, $6 }' "$docs/front.csv"

wanted steps && awk -F, '
    BEGIN { print "| steps | refined | none, s | bound, % | thesis, % | scheduler: gain, % |"
        print "|---|---|---|---|---|---|" }
    function flush() { if (row != "") print row " |"; row = "" }
    NR > 1 && $1 "," $2 != last { flush(); last = $1 "," $2
        row = sprintf("| %d | %d%% | %.1f | %.1f | %d | %s %s", $1, $2, $6 / 1e3,
            100 * (1 - $5 / $6), $8, $3, $7); next }
    NR > 1 { row = row ", " $3 " " $7 }
    END { flush() }' "$docs/steps.csv"

wanted fmm && awk -F, '
    BEGIN { print "| figure | bodies | boxes of an object | scheduler: s, most work / mean |"
        print "|---|---|---|---|" }
    function flush() { if (row != "") print row " |"; row = "" }
    NR == 1 || $1 == "clusters" { next }
    $1 "," $2 != last { flush(); last = $1 "," $2
        row = sprintf("| %s | %s | %s |", $1, $2, $4 == 0 ? "half of what is left" : $4); more = "" }
    { row = row more sprintf(" %s %.1f, %.3f", $3, $6 / 1e3, $8); more = ";"
        if ($10 != "") row = row " (thesis " $10 ")" }
    END { flush() }' "$docs/fmm.csv"
wanted fmm && awk -F, '
    BEGIN { print "| clusters move per step | scheduler | begin with | ms per step | ratio | moves |"
        print "|---|---|---|---|---|---|" }
    $1 == "clusters" { printf "| %s | %s | %s | %.1f | %.3f | %d |\n", $2, $3,
        $5 == "equal" ? "as many boxes" : "the best split", $6, $7, $9 }' "$docs/fmm.csv"

wanted overheads && awk -F, '
    BEGIN { print "| program | scheduler | sending | callbacks | scheduler | polls | helper | run, s | in all |"
        print "|---|---|---|---|---|---|---|---|---|" }
    NR > 1 { printf "| %s | %s | %s ms | %s ms | %s ms | %s ms | %s ms | %s | %s%% |\n", $1, $2, $4, $5,
        $6, $7, $8, $9, $10 }' "$docs/overheads.csv"

wanted dmcs && awk -F, '
    BEGIN {
        split("2,1 162 4,1 95 4,2 185 8,1 61 8,2 111 8,4 208 16,1 40 16,2 71 16,4 128 16,8 240", p, " ")
        for (i = 1; i in p; i += 2) paper[p[i]] = p[i + 1]
        print "| ranks | elements | s | paper: tetrahedra, s | runtime: least, mean, most, s | cavities on several ranks: mean, least, most | messages for each |"
        print "|---|---|---|---|---|---|---|" }
    NR > 1 && $1 == "cavity" { m = int($3 / 50000 + 0.5)
        printf "| %d | %d | %.1f | %d M, %d | %s, %s, %s | %s%%, %s%%, %s%% | %s |\n", $2, $3, $4, m,
            paper[$2 "," m], $5, $6, $7, $8, $9, $10, $11 }' "$docs/dmcs.csv"
wanted dmcs && awk -F, '
    BEGIN { split("static,2 4.010 static,4 5.716 static,8 65.756 mobile,2 21.209 mobile,4 19.161 mobile,8 22.989", p, " ")
        for (i = 1; i in p; i += 2) paper[p[i]] = p[i + 1]
        print "| sort | ranks | s | runtime, s | paper (Linux), s |"
        print "|---|---|---|---|---|" }
    NR > 1 && $1 != "cavity" { printf "| %s | %d | %s | %s | %s |\n", $1, $2, $4, $6, paper[$1 "," $2] }' \
    "$docs/dmcs.csv"

wanted cds && awk -F, '
    BEGIN { n = split("ethernet-10m fddi hippi ethernet-1g", nets, " ")
        m = split("64 4096 32768 262144 2097152", sizes, " ")
        paper["ethernet-10m"] = "750-1,100 us; 1 MB/s of 10 KB"
        paper["fddi"] = "750-1,100 us; 9.3 MB/s of 100 KB"
        paper["hippi"] = "750-1,100 us; 27.5 MB/s of 1 MB"
        print "| network | 64 B, us | 4 KiB, MB/s | 32 KiB | 256 KiB | 2 MiB | paper |"
        print "|---|---|---|---|---|---|---|" }
    { us[$1, $2] = $3; rate[$1, $2] = $4 }
    END { for (i = 1; i <= n; i++) {
        printf "| %s | %.1f |", nets[i], us[nets[i], sizes[1]]
        for (k = 2; k <= m; k++) printf " %.1f |", rate[nets[i], sizes[k]]
        print " " paper[nets[i]] " |" } }' "$docs/cds.csv"

wanted kelp && awk -F, '
    BEGIN { n = split("8 16 32 64", ranks, " "); m = split("redblack mg ft summa", names, " ")
        print "| program | 8 ranks | 16 ranks | 32 ranks | 64 ranks |"; print "|---|---|---|---|---|" }
    $1 == 6 { cell[$2, $3] = sprintf("%.2f s, %s%%", $5, $7) }
    $1 == 7 { s[$3, $4] = $5; part[$3, $4] = $7 }
    END {
        for (i = 1; i <= m; i++) {
            printf "| %s |", names[i]
            for (r = 1; r <= n; r++) printf " %s |", cell[names[i], ranks[r]]
            print "" }
        print "| nodes | no overlap | three of four compute | three as fast as four | paper |"
        print "|---|---|---|---|---|"
        split("0 8.7 14 19", paper, " ")
        for (r = 2; r <= n; r++)
            printf "| %d | %.3f s, %s%% in communication | %.3f s, %+.1f%% | %.3f s, %+.1f%% | %+.1f%% |\n", ranks[r],
                s[ranks[r], "no"], part[ranks[r], "no"], s[ranks[r], "three"],
                100 * (s[ranks[r], "three"] / s[ranks[r], "no"] - 1), s[ranks[r], "all"],
                100 * (s[ranks[r], "all"] / s[ranks[r], "no"] - 1), -paper[r] }' "$docs/kelp.csv"

wanted pingpong && awk -F, '
    BEGIN {
        split("7 10 11 9 10", linux, " "); split("10 13 14 12 12", all, " ")
        print "| request with | shared memory, us | over Open MPI, us | of it MPI | rest | paper (Linux): MPI, rest, in all |"
        print "|---|---|---|---|---|---|" }
    $2 ~ /^words/ { call[$1, $2] = $4; mpi[$1, $2] = $5 }
    END { for (w = 0; w <= 4; w++) { k = "openmpi" SUBSEP "words" w
        printf "| %d words | %s | %s | %s | %.3f | %d, 1, %d |\n", w, call["shm", "words" w], call[k],
            mpi[k], call[k] - mpi[k], linux[w + 1], all[w + 1] } }' "$docs/pingpong-measured.csv"
wanted pingpong && awk -F, '
    BEGIN { n = split("64 4096 65536 1048576", sizes, " ")
        m = split("nonblocking blocking synchronous put object object-lent", forms, " ")
        print "| form | 64 B | 4 KiB | 64 KiB | 1 MiB |"; print "|---|---|---|---|---|" }
    NR > 1 { call[$1, $2, $3] = $4 }
    END { for (f = 1; f <= m; f++) {
        printf "| %s |", forms[f]
        for (i = 1; i <= n; i++) printf " %s / %s |", call["shm", forms[f], sizes[i]],
            call["openmpi", forms[f], sizes[i]]
        print "" } }' "$docs/pingpong-measured.csv"
wanted pingpong && awk -F, '
    BEGIN { n = split("64 512 2048 8192", sizes, " ")
        print "| put with a handler | 64 B | 512 B | 2 KiB | 8 KiB |"; print "|---|---|---|---|---|" }
    $1 == "openmpi" && $2 == "put" { call[$3] = $4; mpi[$3] = $5 }
    END {
        printf "| in the call, us |"; for (i = 1; i <= n; i++) printf " %s |", call[sizes[i]]
        printf "\n| of it MPI |"; for (i = 1; i <= n; i++) printf " %s |", mpi[sizes[i]]
        print "" }' "$docs/pingpong-measured.csv"
exit 0
