#!/bin/sh
# Goal: no change breaks programs that were built before, without anybody noticing. Method: prints
# what such programs depend upon: functions, layouts of structs, values of constants, and the
# symbols that the libraries export. Compares that with tests/growth/abi.list. A line that is gone
# or differs is a break; a new line is an addition. Needs a compiler and nm alone. `abidiff` finds
# the same and what hides behind pointers, but needs the debug information of the older library.
#
#     abi.sh INCLUDE LIBRARIES LIST check|print
#
# After an addition: sh tests/growth/abi.sh include build/lib tests/growth/abi.list print >list
# and put it in place of abi.list. From 1.0 on a break needs a new SOVERSION. CC is the compiler.
set -eu
include=$1 libraries=$2 list=$3 what=$4
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C

printf '#include <stdint.h>\n#if UINTPTR_MAX >> 32 == 0\n#error\n#endif\n' >"$scratch/wide.c"
"${CC:-cc}" -E "$scratch/wide.c" >/dev/null 2>&1 || { echo "the list is of 64 bits"; exit 77; }
# The structs that the library alone makes may grow at their end (docs/reference/growth.md).
made=$(awk -F'`' '/^## / { there = /library alone makes/ } there && /^[|] `/ { print $2 }' \
    "$here/../../docs/reference/growth.md")
awk -v made="$(echo $made)" -f "$here/abi.awk" "$include"/ferry/*.h >"$scratch/program.c"
"${CC:-cc}" -std=c11 "-I$include" "$scratch/program.c" -o "$scratch/program"
{
    "$scratch/program"
    for library in ferry ferry_data; do
        nm -D --defined-only "$libraries/lib$library.so" |
            sed -n "s/.* [A-TV-Za-z] \(ferry_[a-z_0-9]*\)\$/symbol \1 in lib$library.so/p"
    done
} | sort -u >"$scratch/now"
[ "$what" = check ] || { cat "$scratch/now"; exit 0; }
sort "$list" | diff - "$scratch/now" | sed -n 's/^</BREAK, gone or changed:/p; s/^>/new:/p' \
    >"$scratch/difference"
[ -s "$scratch/difference" ] || { echo "$(wc -l <"$scratch/now") facts as listed"; exit 0; }
cat "$scratch/difference"
echo "the binary interface differs from tests/growth/abi.list (see tests/growth/abi.sh)"
exit 1
