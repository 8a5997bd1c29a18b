#!/bin/sh
# architecture.sh [ROOT] prints docs/architecture.svg: the folders of src, and which includes which.
# Rows and arrows come from the #include lines; an arrow that follows from two others is left out.
# tests/house compares. To draw it: sh tools/architecture.sh >docs/architecture.svg
set -eu
cd "${1:-$(dirname "$0")/..}"
# folder, column of its box, what it does; "plug-in" in front draws the box dashed.
places='
base|0|lists, tables, clocks, locks, log
port|0|the table of a port
port/shm|0|ranks of one machine
launch|0|starts ranks, watches them
port/sim|2|plug-in: simulated ranks
port/nodes|1|plug-in: several machines
port/open|0|finds the port, the only list
port/template|3|to begin a new port from
core|0|handlers, operations, collectives
memory|0|shared heap, put and get
object|0|names, directory, migration
balance|0|tasks, schedulers (more: plug-in)
mover|1|block arrays, plans, files
mover/io/hdf5|1|plug-in: HDF5
cell|2|parcels and cells
collection|1|objects by index, steps
window|3|arrays that grow, put and get
store|0|objects on disk, within a budget
percolation|0|data servers, engines
cmd|3|the command ferry
'
find src -name '*.[ch]' | sort | xargs grep -HE '^#include ("[a-z_/0-9]+/|<ferry/)' |
    awk -v places="$places" '
    BEGIN {
        count = split(places, row, "\n")
        for (i = 1; i <= count; i++) if (row[i] != "") {
            split(row[i], part, "|")
            name[++n] = part[1]; column[part[1]] = part[2]; what[part[1]] = part[3]
        }
        m = split("export base error base trace core two_sided core member core " \
                  "background core collective core group core directory object " \
                  "scheduler object convert cell", pair, " ")
        for (i = 1; i < m; i += 2) public[pair[i]] = pair[i + 1]
    }
    # The longest of our folders that a path lies in.
    function folder(path) {
        while (path != "" && !(path in column)) if (!sub(/\/[^\/]*$/, "", path)) path = ""
        return path
    }
    {
        split($0, half, ":"); from = half[1]; to = half[2]
        sub(/^src\//, "", from); from = folder(from)
        if (to ~ /<ferry\//) {
            sub(/.*<ferry\//, "", to); sub(/[.]h.*/, "", to)
            if (to ~ /^mover_/) to = "mover"
            if (to in public) to = public[to]
        } else { sub(/^#include "/, "", to); sub(/\/[^\/]*$/, "", to) }
        to = folder(to)
        if (from == "") { print "tools/architecture.sh: " half[1] " has no place" >"/dev/stderr"; bad = 1 }
        if (from != "" && to != "" && from != to) uses[from, to] = 1
    }
    # The row of a folder: above all that it uses.
    function level(f, depth,    i, l, high) {
        if (depth > n) { print "a circle at " f >"/dev/stderr"; bad = 1; return 0 }
        high = -1
        for (i = 1; i <= n; i++) if ((f, name[i]) in uses) {
            l = level(name[i], depth + 1)
            if (l > high) high = l
        }
        return high + 1
    }
    function reaches(f, t,    i) {
        if ((f, t) in uses) return 1
        for (i = 1; i <= n; i++) if ((f, name[i]) in uses && reaches(name[i], t)) return 1
        return 0
    }
    function direct(f, t,    i) {
        for (i = 1; i <= n; i++)
            if (name[i] != t && (f, name[i]) in uses && reaches(name[i], t)) return 0
        return 1
    }
    function x(f) { return 16 + column[f] * 240 }
    function y(f) { return 16 + (top - at[f]) * 84 }
    END {
        for (i = 1; i <= n; i++) { at[name[i]] = level(name[i], 0); if (at[name[i]] > top) top = at[name[i]] }
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 982 %d\" role=\"img\"\n", top * 84 + 92
        print "     aria-labelledby=\"title\" font-family=\"system-ui, sans-serif\" font-size=\"14\">"
        print "  <title id=\"title\">Folders of src: each uses only folders below it</title>"
        print "  <style>"
        print "    .box { fill: #f4f6f8; stroke: #57606a; } .plug { stroke-dasharray: 5 4; }"
        print "    .name { fill: #1f2328; font-weight: 600; } .what { fill: #424a53; font-size: 12px; }"
        print "    .arrow { stroke: #57606a; fill: none; marker-end: url(#head); } .head { fill: #57606a; }"
        print "    @media (prefers-color-scheme: dark) {"
        print "      .box { fill: #212830; stroke: #9198a1; } .name { fill: #f0f6fc; } .what { fill: #b7bdc8; }"
        print "      .arrow { stroke: #9198a1; } .head { fill: #9198a1; }"
        print "    }"
        print "  </style>"
        print "  <marker id=\"head\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\">"
        print "    <path class=\"head\" d=\"M0 0 L8 4 L0 8 z\"/>"
        print "  </marker>"
        for (i = 1; i <= n; i++) for (j = 1; j <= n; j++) {
            f = name[i]; t = name[j]
            if (!((f, t) in uses) || !direct(f, t)) continue
            printf "  <path class=\"arrow\" d=\"M%d %d L%d %d\"/>\n", x(f) + 115, y(f) + 62, x(t) + 115, y(t)
        }
        for (i = 1; i <= n; i++) {
            f = name[i]
            list = ""
            for (j = 1; j <= n; j++) if (name[j] != "base" && (f, name[j]) in uses) {
                short = name[j]
                sub(/.*\//, "", short)
                list = list (list == "" ? "" : ", ") short
            }
            plug = what[f] ~ /^plug-in/ ? " plug" : ""
            printf "  <rect class=\"box%s\" x=\"%d\" y=\"%d\" width=\"230\" height=\"62\" rx=\"6\"/>\n", plug, x(f), y(f)
            printf "  <text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", x(f) + 10, y(f) + 19, f
            printf "  <text class=\"what\" x=\"%d\" y=\"%d\">%s</text>\n", x(f) + 10, y(f) + 36, what[f]
            printf "  <text class=\"what\" x=\"%d\" y=\"%d\">%s</text>\n", x(f) + 10, y(f) + 53, list == "" ? "" : "uses " list
        }
        print "</svg>"
        exit bad
    }'
