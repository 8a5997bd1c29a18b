#!/bin/sh
# only.sh BUILD FOLDER: the option of ctest that leaves out what make soak alone runs of BUILD
# (release, asan or tsan), which is in FOLDER; nothing if TESTS_WHOLE is set. Fails if an expression
# of only.list names no test, unless a package is missing, and its tests with it.
set -eu
[ -z "${TESTS_WHOLE:-}" ] || exit 0
missing=0
[ ! -s "$2/obj/absent" ] || missing=1
ctest --test-dir "$2" -N | sed -n 's/^ *Test *#[0-9]*: //p' |
    awk -v build="$1" -v missing=$missing '
    NR == FNR {
        if ($1 == build || ($1 == "asan" && build == "tsan")) names[$2] = ""
        own[$2] = $1 == build
        next
    }
    {
        left_out = 0
        for (e in names) if ($0 ~ e) { names[e] = $0; left_out = 1 }
        if (left_out) all = all "|" $0
    }
    END {
        for (e in names) if (names[e] == "" && own[e] && !missing) {
            print "only.list: no test of the build " build " is named " e >"/dev/stderr"
            bad = 1
        }
        if (all != "") print "--exclude-regex ^(" substr(all, 2) ")$"
        exit bad
    }' "$(dirname "$0")/only.list" -
