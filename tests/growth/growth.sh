#!/bin/sh
# Goal: programs built for an older or a newer Ferry run with this library. Method: copies the
# public headers of the sources in $1. Gives each struct that begins with its size one field more
# ($3 is "more"), one field less ("fewer"), or leaves it ("same"). Compiles program.c against the
# copy as C11 and as C++17, both without a warning, and runs it with the library in $2. A newer
# program also sets each new field, which the library has to refuse. CC and CXX are the compilers.
set -eu
source=$1 build=$2 how=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

here=$source/tests/growth
structs=$(cat "$source"/include/ferry/*.h | grep -c '#define FERRY_[A-Z_]*_DEFAULTS ')
mkdir -p "$scratch/include/ferry" "$scratch/out"
for header in "$source"/include/ferry/*.h; do
    awk -v how="$how" -f "$here/change.awk" "$header" >"$scratch/include/ferry/${header##*/}"
done
for macro in $(cat "$source"/include/ferry/*.h |
    sed -n 's/^#define \(FERRY_[A-Z_]*_DEFAULTS\) .*/\1/p'); do
    grep -qw "$macro" "$here/program.c" || { echo "program.c does not use $macro"; exit 1; }
done
added=
if [ "$how" = more ]; then
    added=-DADDED
    changed=$(cat "$scratch"/include/ferry/*.h | grep -c 'uint64_t added_later')
    [ "$changed" -eq "$structs" ] || { echo "$changed of $structs structs were changed"; exit 1; }
fi

use() # compiler, flags: compiles, and runs what came out
{
    # shellcheck disable=SC2086
    "$@" $added -pedantic -Wall -Wextra -Werror -O1 "-I$scratch/include" "$here/program.c" \
        -o "$scratch/program" "-L$build/lib" -lferry_data -lferry "-Wl,-rpath,$build/lib"
    "$scratch/program" "$scratch/out" || { echo "FAILED: $* ($how)"; exit 1; }
    echo "$1 ($how): ok"
}
use "$CC" -std=c11
use "$CXX" -std=c++17 -x c++
