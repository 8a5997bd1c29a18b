#!/bin/sh
# Goal: the application laplace refuses files that are no mesh, and says why, once. Method: the mesh that
# the other tests read, cut or with one number changed.
#
#     laplace_refuse.sh LAPLACE MESH
set -u
laplace=$1 mesh=$2
broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
failures=0
export FERRY_RANKS=3

# refuses WORDS: the file `broken` ends the program with status 1 and a line that has them
refuses()
{
    out=$("$laplace" "$broken" 2>&1)
    status=$?
    times=$(printf '%s\n' "$out" | grep -c -e "laplace: .*$1")
    case $status:$times in
    1:1) ;;
    *)
        echo "expected status 1 and \"$1\" once; got $status: $out"
        failures=$((failures + 1))
        ;;
    esac
}

head -c $(($(wc -c <"$mesh") / 2)) "$mesh" >"$broken"
refuses 'an array '
LC_ALL=C sed 's/offset="[1-9][0-9]*"/offset="999999999"/' "$mesh" >"$broken"
refuses 'an array begins outside of the file'
LC_ALL=C sed 's/NumberOfPoints="[0-9]*"/NumberOfPoints="7"/' "$mesh" >"$broken"
refuses 'an array is not as long'
LC_ALL=C sed 's/NumberOfCells="[0-9]*"/NumberOfCells="9999999999"/' "$mesh" >"$broken"
refuses 'expected a .vtu file of the mesh application'
LC_ALL=C sed 's/Name="subdomain"/Name="elsewhere"/' "$mesh" >"$broken"
refuses 'has no array'
rm "$broken"
refuses 'No such file or directory'
exit "$failures"
