#!/bin/sh
# Goal: the messages and bytes that movers say they send are those that the runtime counts
# (FERRY_PROFILE). Method: the program in $1 with few movements and with many, whose handshakes and
# partings are the same; what is more in the one account is more in the other.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# Rounds $1, ranks as threads ($2 = 1) or processes: what movers say, and messages and bytes sent.
counts()
{
    FERRY_PROFILE=$folder/report FERRY_RANKS=3 FERRY_THREADS=$2 timeout 120 "$program" "$1" \
        >"$folder/out" || { echo "FAILED: $1 rounds, threads $2: status $?"; exit 1; }
    awk '$1 == "frames" { print $2 }' "$folder/out"
    awk '$1 == "mover" && $2 == "mover" && $3 == "sent" { print $4, $5 }' "$folder/report"
}

program=$1
for threads in 0 1; do
    set -- $(counts 5 $threads) $(counts 45 $threads)
    [ $# = 6 ] || { echo "FAILED: threads $threads: no account: $*"; exit 1; }
    said=$(($4 - $1)) sent=$(($5 - $2)) bytes=$(($6 - $3))
    # 40 more movements of two movers between three ranks in a row, so four links each, of 96 bytes:
    # in one message or in packets of 40, and an acknowledgement.
    [ "$said" = $((40 * 4 * (2 + 4))) ] || { echo "FAILED: movers say $said more"; failed=1; }
    [ "$sent" = "$said" ] && [ "$bytes" = $((40 * 4 * 2 * 96)) ] || {
        echo "FAILED: threads $threads: movers say $said more, sent were $sent of $bytes bytes"
        failed=1
    }
done
exit $failed
