#!/bin/sh
# Tables V, VI, VIII and IX of dmcs.txt, as CSV, on a simulated 100 Mb/s Ethernet: dmcs.sh FERRY
# APPS. RANKS says on how many ranks, WAYS which of these:
#   cavity   the distributed Delaunay triangulation, verified: each new triangle counts as 324 us,
#            what the paper's two processors take for a tetrahedron; a twentieth of its elements
#   static, mobile   the sorting network on 64 chunks of 256 numbers
# runtime_*: what FERRY_PROFILE counts for sending, taking and the runtime itself, of the rank with
# least, the mean, and of the rank with most. distributed_*: cavities on several ranks, per cent.
set -eu
ferry=$1 apps=$2

# profile HEAD: a line of the program's own figures, then the runtime's from the profile
profile()
{
    awk -v head="$1" '
        / points on / {
            gsub("%", ""); elements = 2 * $1 + 2; seconds = $7
            extra = $9 "," $16 "," $18 "," $21; gsub("[(]", "", extra) }
        /^(static|mobile):/ {
            gsub(",", "", $5); seconds = $8; extra = ",,,"
            elements = $2 * $5 }
        /send ms +pack ms/ { table = 1; next }
        table && NF == 9 && $1 ~ /^[0-9]+$/ {
            t = $8 / 1e3; sum += t; n++
            least = n == 1 || t < least ? t : least; most = t > most ? t : most }
        / points on / || /messages, [0-9]+ moves/ { table = 0 }
        END { printf "%s,%d,%s,%.4f,%.4f,%.4f,%s\n", head, elements, seconds, least, sum / n, most,
                  extra
              exit n == 0 || seconds == "" }'
}

echo "program,ranks,elements,seconds,runtime_min_s,runtime_mean_s,runtime_max_s,distributed_mean,distributed_min,distributed_max,messages_each"
for ranks in ${RANKS:-2 4 8 16}; do
    for elements in 50000 100000 200000 400000; do
        # the rows of Table VI: one, then two sizes more for each doubling
        [ $((elements / 25000)) -le "$ranks" ] || continue
        FERRY_PROFILE=1 "$ferry" sim -n "$ranks" --seed 1 --net ethernet-100m "$apps/cavity" \
            $((elements / 2 / ranks - 8)) --check --cost 324 2>&1 | profile "cavity,$ranks"
    done
done
for way in ${WAYS:-static mobile}; do
    for ranks in ${RANKS:-2 4 8}; do
        FERRY_PROFILE=1 "$ferry" sim -n $ranks --seed 1 --net ethernet-100m "$apps/netsort" \
            $way 64 256 2>&1 | profile "$way,$ranks"
    done
done
