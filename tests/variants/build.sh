#!/bin/sh
# Configures and builds preset $1 in directory $2 with generator $3.
set -eu
preset=$1 directory=$2
shift 2
[ -f "$directory/build.ninja" ] || [ -f "$directory/Makefile" ] ||
    cmake --preset "$preset" -B "$directory" -G "$*" -DFERRY_BENCH=OFF
cmake --build "$directory" --parallel "$(nproc)"
