#!/bin/sh
# swarm.sh FERRY SEEDS ARGUMENT...: a swarm with seeds from 1 on. Other seeds are more of the same,
# so make test takes a third of SEEDS, and at least four; with TESTS_WHOLE all.
ferry=$1 seeds=$2
shift 2
if [ -z "${TESTS_WHOLE:-}" ] && [ "$seeds" -gt 4 ]; then
    seeds=$((seeds / 3))
    [ "$seeds" -ge 4 ] || seeds=4
fi
exec "$ferry" swarm --seeds "1..$seeds" --limit 60 "$@"
