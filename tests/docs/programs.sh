#!/bin/sh
# Goal: the programs in page $3 of the sources in $1 are right. Method: extracts each block that
# begins with "```c NAME.c", compiles it with strict warnings against the build in $2, runs it on 4
# ranks, and compares its lines, in any order, with the block "```text NAME.c" when there is one.
# The words after the name there are settings of the environment; "any numbers" compares with all
# numbers made equal. CC and SANITIZE are those of the build; under the thread sanitizer ranks are
# threads. A program NAME.mpi.c is one of MPI alone: it is compiled with MPICC, if there is one.
set -eu
source=$1 build=$2 page=$3
case ${SANITIZE-} in
address) flags="-fsanitize=address,undefined -fno-sanitize-recover=all" ;;
thread) flags=-fsanitize=thread ;;
*) flags= ;;
esac
threads=$([ "${SANITIZE-}" != thread ] || echo --threads)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

awk -v dir="$scratch/" '
    /^```$/ { out = ""; next }
    /^```c [a-z]+([.]mpi)?[.]c$/ { out = dir $2; print $2 > (dir "list"); next }
    /^```text [a-z]+[.]c/ {
        out = dir $2 ".expected"
        how = $0
        sub(/^```text [^ ]* */, "", how)
        print how > (dir $2 ".how")
        next
    }
    out != "" { print > out }' "$source/$page"

normal() { if [ "$how" = "any numbers" ]; then sed 's/[0-9][0-9]*/N/g' "$1" | sort; else sort "$1"; fi; }

while read -r name; do
    program=$scratch/${name%.c}
    if [ "${name%.mpi.c}" != "$name" ]; then
        case ${MPICC:-NOTFOUND} in
        *NOTFOUND) echo "$name: not compiled, there is no MPI here" ;;
        *) "$MPICC" -std=c11 -Wall -Wextra -Werror -O1 "$scratch/$name" -o "$program" ;;
        esac
        continue
    fi
    # shellcheck disable=SC2086
    $CC -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -O1 -g $flags \
        "-I$source/include" "$scratch/$name" "$build/lib/libferry.a" -pthread -o "$program"
    how=$(cat "$scratch/$name.how" 2>/dev/null || true)
    settings=$([ "$how" = "any numbers" ] || echo "$how")
    # shellcheck disable=SC2086
    env $settings "$build/bin/ferry" run $threads -n 4 "$program" >"$scratch/got" ||
        { echo "FAILED: $name exits with $?"; exit 1; }
    if [ -f "$scratch/$name.expected" ]; then
        normal "$scratch/$name.expected" >"$scratch/want"
        normal "$scratch/got" | diff "$scratch/want" - || { echo "FAILED: $name prints that"; exit 1; }
    fi
    if [ -f "$source/examples/$name" ] && [ "$page" = README.md ]; then
        diff "$source/examples/$name" "$scratch/$name" ||
            { echo "FAILED: examples/$name differs from $page"; exit 1; }
    fi
    echo "$name: ok"
done <"$scratch/list"
