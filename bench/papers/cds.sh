#!/bin/sh
# Section 7.0 of cds.txt over networks, as CSV: a region passed to and fro between cells of two
# ranks. The simulated networks have the rates of the paper's (10 Mb/s Ethernet, 100 Mb/s FDDI, 800
# Mb/s HiPPI, 40 us each), or are gigabit Ethernet. Within a node bench/cells measures it. NETS says
# which.
set -eu
ferry=$1 handoff=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for net in ethernet-10m:800ns fddi:80ns hippi:10ns; do
    printf 'topology flat\nmemory private\nlatency 20us\nsend 10us\nreceive 10us\ngap 0ns\nbyte %s\n' \
        "${net#*:}" >"$scratch/${net%:*}"
done
echo "network,bytes,us,mb_per_s"
for net in ${NETS:-ethernet-10m fddi hippi ethernet-1g}; do
    file=$net
    [ ! -f "$scratch/$net" ] || file=$scratch/$net
    "$ferry" sim -n 2 --seed 1 --net "$file" "$handoff" 100 2097152 |
        awk -v net="$net" '$2 == "bytes:" { printf "%s,%d,%.3f,%.3f\n", net, $1, $3 / 1e3, $1 * 1e3 / $3 }'
done
