#!/bin/sh
# Goal: the programs in page $3 of the sources in $1 are right. Method: extracts each block that
# begins with "```c NAME.c", compiles it with strict warnings against the build in $2, runs it on 4
# ranks, and compares its lines, in any order, with the block "```text NAME.c" when there is one.
# The words after the name there say how: settings of the environment; first "processes" when ranks
# must not be threads; "sim OPTIONS" for the simulator; last "any numbers" to compare with all
# numbers made equal. CC, SANITIZE and LINKER are those of the build; under the thread sanitizer
# ranks are threads. A program NAME.mpi.c calls MPI: it is compiled with MPICC and run by its mpirun,
# if there is one. The line above a program names its file. A program of README.md or a guide that
# examples/ has too must be the same there.
set -eu
source=$1 build=$2 page=$3
case ${SANITIZE-} in
address) flags="-O0 -fsanitize=address,undefined -fno-sanitize-recover=all" ;;
thread) flags="-O0 -fsanitize=thread" ;;
*) flags=-O1 ;;
esac
threads=$([ "${SANITIZE-}" != thread ] || echo --threads)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

awk -v dir="$scratch/" '
    /^```$/ { out = ""; next }
    /^```c [a-z]+([.]mpi)?[.]c$/ {
        out = dir $2
        print $2 > (dir "list")
        short = $2
        sub(/[.]mpi/, "", short)
        if (index(above, "`" $2 "`") == 0 && index(above, "`" short "`") == 0)
            print $2 > (dir "unnamed")
        next
    }
    out == "" && NF > 0 { above = $0 }
    /^```text [a-z]+([.]mpi)?[.]c/ {
        out = dir $2 ".expected"
        how = $0
        sub(/^```text [^ ]* */, "", how)
        print how > (dir $2 ".how")
        next
    }
    out != "" { print > out }' "$source/$page"

fail()
{
    echo "FAILED: $1"
    exit 1
}

normal() { if [ -n "$numbers" ]; then sed 's/[0-9][0-9]*/N/g' "$1" | sort; else sort "$1"; fi; }

# Compiles and runs a program that calls MPI; its output goes to $scratch/got.
with_mpi()
{
    case ${MPICC:-NOTFOUND}${SANITIZE-} in
    *NOTFOUND* | *address | *thread) echo "$name: not run: no MPI, or a sanitizer"; return 1 ;;
    esac
    "$MPICC" -std=c11 -Wall -Wextra -Werror -O1 "-I$source/include" "$scratch/$name" \
        "$build/lib/libferry.a" -pthread -o "$program" || fail "$name does not compile"
    FERRY_PLUGIN_PATH=$build/lib/ferry "$source/tests/mpi/mpirun.sh" \
        "${MPICC%/*}/mpirun${MPICC##*/mpicc}" 4 "$program" >"$scratch/got" ||
        fail "$name exits with $?"
}

# The same for one of Ferry alone, as $how says.
with_ferry()
{
    case $how in
    processes* | sim*) [ -z "$threads" ] || { echo "$name: not run: ranks are threads"; return 1; } ;;
    esac
    armci=
    ! grep -q '<armci.h>' "$scratch/$name" ||
        armci="-I$source/compat $build/lib/libferry_armci.a"
    # shellcheck disable=SC2086
    $CC -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -g1 $flags ${LINKER-} \
        "-I$source/include" "$scratch/$name" $armci "$build/lib/libferry.a" -pthread -o "$program" ||
        fail "$name does not compile"
    case $how in
    sim*) set -- "$build/bin/ferry" $how "$program" ;;
    *) set -- env ${how#processes} "$build/bin/ferry" run $threads -n 4 "$program" ;;
    esac
    "$@" >"$scratch/got" || fail "$name exits with $?"
}

# A page as a browser shows it has no words of a fence.
[ ! -f "$scratch/unnamed" ] || fail "the line above $(head -n 1 "$scratch/unnamed") does not name it"
while read -r name; do
    program=$scratch/${name%.c}
    how=$(cat "$scratch/$name.how" 2>/dev/null || true) numbers=
    case $how in *"any numbers") numbers=any how=${how%any numbers} ;; esac
    if [ "${name%.mpi.c}" != "$name" ]; then
        with_mpi || continue
    else
        with_ferry || continue
    fi
    if [ -f "$scratch/$name.expected" ]; then
        normal "$scratch/$name.expected" >"$scratch/want"
        normal "$scratch/got" | diff "$scratch/want" - || fail "$name prints that"
    fi
    case $page in README.md | docs/guide/*)
        [ ! -f "$source/examples/$name" ] || diff "$source/examples/$name" "$scratch/$name" ||
            fail "examples/$name differs from $page: tools/page-programs copies it"
        ;;
    esac
    echo "$name: ok"
done <"$scratch/list"
