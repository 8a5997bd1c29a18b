#!/bin/sh
# format.sh notices a benchmark that breaks the rules: one that does not is made, then each of its
# sins in turn.
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A benchmark of one case; $1 is what it prints with --json.
make_benchmark()
{
    cat >"$scratch/fake" <<END
#!/bin/sh
case "\$*" in
--help) echo "--json" ;;
--list) echo one-8B ;;
"--smoke --json") cat "$scratch/json" ;;
*) echo "fake: no" >&2; exit 2 ;;
esac
END
    chmod +x "$scratch/fake"
    echo "$1" >"$scratch/json"
}

expect()
{
    wanted=$1
    make_benchmark "$2"
    sh "$here/format.sh" "$scratch/fake" >"$scratch/said" 2>&1
    [ $? -eq "$wanted" ] && return
    echo "status is not $wanted for: $2"
    cat "$scratch/said"
    exit 1
}

head='{"bench":"fake","case":"one-8B","ours":'
expect 0 "${head}1.5,\"theirs\":3,\"peer\":\"reference\",\"unit\":\"us\",\"ratio\":0.5,\"runs\":3}"
expect 0 "${head}1.5,\"theirs\":null,\"peer\":\"ucx\",\"unit\":\"us\",\"ratio\":null,\"runs\":0}"
expect 1 "${head}1.5,\"theirs\":3,\"peer\":\"reference\",\"unit\":\"us\",\"ratio\":2,\"runs\":3}"
expect 1 "${head}nan,\"theirs\":3,\"peer\":\"reference\",\"unit\":\"us\",\"ratio\":0.5,\"runs\":3}"
expect 1 "${head}null,\"theirs\":3,\"peer\":\"reference\",\"unit\":\"us\",\"ratio\":null,\"runs\":3}"
expect 1 "${head}1.5,\"peer\":\"reference\",\"unit\":\"us\",\"ratio\":0.5,\"runs\":3}"
expect 1 "{\"bench\":\"fake\",\"case\":\"two\",\"ours\":1,\"theirs\":1,\"peer\":\"reference\",\"unit\":\"us\",\"ratio\":1,\"runs\":3}"
