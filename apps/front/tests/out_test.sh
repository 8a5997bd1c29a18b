#!/bin/sh
# Goal: the files for ParaView have the whole mesh. Method: as many cells as the program says
# tetrahedra, each with four corners that exist, and every sub-domain in one piece.
# out_test.sh FRONT MESHER ARGUMENT...
set -eu
front=$1 mesher=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$front" "$@" --mesher "$mesher" --out "$scratch/mesh" >"$scratch/said"
tets=$(sed -n 's/ tetrahedra in .*//p' "$scratch/said")
parts=$(sed -n 's/.* tetrahedra in \([0-9]*\) .*/\1/p' "$scratch/said")
ranks=$(grep -c '<Piece Source' "$scratch/mesh/front.pvtu")
for file in $(sed -n 's/.*Source="\(.*\)".*/\1/p' "$scratch/mesh/front.pvtu"); do
    cat "$scratch/mesh/$file"
done | awk -v tets="$tets" -v parts="$parts" -v ranks="$ranks" '
    /<VTKFile/ { files++ }
    /<Piece/ { split($0, n, "\""); pieces++; points = n[2]; cells += n[4] }
    /Name="/ { split($0, n, "\""); array = n[4]; next }
    /^[^<]/ && array == "connectivity" {
        read++
        for (i = 1; i <= 4; i++) if (NF != 4 || $i < 0 || $i >= points) bad = bad " " $0 }
    /^[^<]/ && array == "subdomain" { seen[$1] }
    END {
        for (i in seen) distinct++
        if (files != ranks || pieces != parts || distinct != parts || cells != tets ||
            read != tets || bad != "") {
            print files, ranks, pieces, distinct, parts, cells, read, tets, bad
            exit 1 } }'
