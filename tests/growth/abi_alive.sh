#!/bin/sh
# Goal: abi.sh notices each way to break older programs. Method: breaks copies of the headers of $1
# or of the libraries of $2 on purpose, one way at a time. abi.sh must fail and name what broke.
set -eu
source=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

again()
{
    rm -rf "$scratch/include" "$scratch/lib"
    mkdir -p "$scratch/lib"
    cp -r "$source/include" "$scratch/include"
    cp "$build/lib/libferry.so" "$build/lib/libferry_data.so" "$scratch/lib"
}

noticed() # a fixed text that abi.sh must print
{
    if sh "$source/tests/growth/abi.sh" "$scratch/include" "$scratch/lib" \
        "$source/tests/growth/abi.list" check >"$scratch/out" 2>&1; then
        echo "FAILED: not noticed: $1"
        exit 1
    fi
    grep -qF "$1" "$scratch/out" || { cat "$scratch/out"; echo "FAILED: no \"$1\""; exit 1; }
    echo "noticed: $1"
    again
}

added() # a fixed text that abi.sh must print as new, and it must print no break
{
    if sh "$source/tests/growth/abi.sh" "$scratch/include" "$scratch/lib" \
        "$source/tests/growth/abi.list" check >"$scratch/out" 2>&1; then
        echo "FAILED: not noticed: $1"
        exit 1
    fi
    if ! grep -qF "$1" "$scratch/out" || grep -q BREAK "$scratch/out"; then
        cat "$scratch/out"
        echo "FAILED: no \"$1\", or a break"
        exit 1
    fi
    echo "no break: $1"
    again
}

edit() { sed -i "$2" "$scratch/include/ferry/$1"; }

again
edit core.h '/^    int32_t tag;  /i\    int added;'
noticed 'BREAK, gone or changed: ferry_message.words at 8,'
# A struct that never grows, one that begins with its size, and one that the library alone makes.
edit core.h '/^} ferry_message;/i\    int added;'
noticed 'BREAK, gone or changed: ferry_message: 56 bytes'
edit core.h '/^} ferry_options;/i\    int added;'
added 'new: ferry_options.added at '
edit core.h '/^} ferry_receipt;/i\    int added;'
added 'new: ferry_receipt.added at '
edit core.h '/^    FERRY_COMPLETED,/i\    FERRY_ADDED,'
noticed 'BREAK, gone or changed: ferry_event FERRY_COMPLETED = 1'
edit group.h '/ferry_group_count/d'
noticed 'BREAK, gone or changed: function int ferry_group_count('
edit group.h '/ferry_group_rank(/s/int place/uint64_t place/'
noticed 'BREAK, gone or changed: function int ferry_group_rank('
edit group.h '/define FERRY_NO_COLOUR/s/-1/-2/'
noticed 'BREAK, gone or changed: define FERRY_NO_COLOUR (-1)'
edit core.h '/^typedef void ferry_request_fn(/s/int source/long source/'
noticed 'BREAK, gone or changed: typedef void ferry_request_fn('
sed -i 's/ferry_group_place/ferry_group_plac_/g' "$scratch/lib/libferry.so"
noticed 'BREAK, gone or changed: symbol ferry_group_place in libferry.so'
edit group.h '/^FERRY_API int ferry_group_count/i\FERRY_API int ferry_group_added(ferry *f);'
noticed 'new: function int ferry_group_added('
