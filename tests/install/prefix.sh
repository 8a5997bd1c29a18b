#!/bin/sh
# Goal: make install builds what it installs and no more, and programs that are linked to its static
# libraries find the plug-ins under its PREFIX, wherever the programs are. Method: make install from
# the sources in $1 into a new build and a new prefix; what the build in $2 has compiled by the same
# commands is not compiled again. Link a program by pkg-config, also with -static, and have it look
# for a port that is not there.
set -eu
source=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

fail()
{
    echo "FAILED: $1"
    exit 1
}

env -u MAKEFLAGS -u MAKELEVEL make -C "$source" install "BUILD=$scratch/build" "PREFIX=$prefix" \
    CMAKE_OPTIONS="'-DCMAKE_C_COMPILER_LAUNCHER=sh;$source/tests/install/reuse.sh;$2'" \
    >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "make install"; }
for folder in tests examples apps bench; do
    [ ! -e "$scratch/build/$folder" ] || fail "make install builds $folder/ too"
done

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name ferry.pc)")
export PKG_CONFIG_PATH
hello="hello from rank 0 of 1, Ferry $(pkg-config --modversion ferry)"
for how in "" -static; do
    # shellcheck disable=SC2046,SC2086
    cc -std=c11 $how "$source/tests/install/consumer_data.c" -o "$scratch/data" \
        $(pkg-config --cflags --static --libs ferry-data) 2>"$scratch/log" ||
        { cat "$scratch/log"; fail "linking by pkg-config --static with \"$how\""; }
    got=$(LD_LIBRARY_PATH=${PKG_CONFIG_PATH%/pkgconfig} "$scratch/data") || fail "\"$how\" fails"
    [ "$got" = "$hello" ] || fail "\"$how\" says: $got"
done

cc -std=c11 -I"$prefix/include" "$source/tests/install/consumer.c" -o "$scratch/moved" \
    "${PKG_CONFIG_PATH%/pkgconfig}/libferry.a" -pthread
got=$(OMPI_COMM_WORLD_SIZE=2 FERRY_MPI=none "$scratch/moved" 2>&1) && fail "joins a job of nobody"
case $got in
*" nor in $(dirname "$(find "$prefix" -name ferry-schedulers.so)")"*) ;;
*) fail "a static program looks for plug-ins elsewhere: $got" ;;
esac
echo "make install PREFIX=...: ok"
