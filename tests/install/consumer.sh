#!/bin/sh
# Goal: make install gives all that users need. Method: install the build in $2 of the sources in $1
# under a temporary prefix. Build a program against it with CMake and with pkg-config (shared and
# static) outside the source tree, and run it. Look for the command and the man pages.
set -eu
source=$1 build=$2 libdir=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
here=$source/tests/install

fail()
{
    echo "FAILED: $1"
    exit 1
}
expect()
{
    got=$("$@") || fail "$* exits with $?"
    [ "$got" = "hello from rank 0 of 1, Ferry $version" ] || fail "$* says: $got"
}

cmake --install "$build" --prefix "$prefix" >"$scratch/log"
version=$(sed -n 's/^#define FERRY_VERSION "\(.*\)"/\1/p' "$source/include/ferry/export.h")
grep -q "VERSION $version " "$source/CMakeLists.txt" ||
    fail "CMakeLists.txt and include/ferry/export.h disagree on the version"
grep -q "^## \[$version\]\|^## \[Unreleased\]" "$source/CHANGELOG.md" ||
    fail "CHANGELOG.md does not know version $version"

# Each example is copied out alone and built by the command on its top, without a warning.
export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
for example in "$source"/examples/*.c; do
    name=$(basename "$example" .c)
    mkdir "$scratch/$name"
    cp "$example" "$scratch/$name"
    command=$(sed -n 's/^ [*] *\(cc .*\)/\1/p' "$example" | head -n 1)
    (cd "$scratch/$name" && eval "$command -Wall -Wextra -Wpedantic -Werror" >"$scratch/log" 2>&1) ||
        { cat "$scratch/log"; fail "examples/$name.c: $command"; }
    [ -e "$scratch/$name/$name" ] || [ -e "$scratch/$name/$name.so" ] ||
        fail "examples/$name.c: \"$command\" makes no $name"
done

cp "$here"/consumer*.c "$here/consumer.cmake" "$scratch"
mv "$scratch/consumer.cmake" "$scratch/CMakeLists.txt"
cmake -S "$scratch" -B "$scratch/build" "-DCMAKE_PREFIX_PATH=$prefix" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "configuring with find_package(Ferry)"; }
cmake --build "$scratch/build" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "building with find_package(Ferry)"; }
sed 's/Ferry 0.1 REQUIRED/Ferry COMPONENTS data REQUIRED/' "$here/consumer.cmake" \
    >"$scratch/CMakeLists.txt"
cmake -S "$scratch" -B "$scratch/parts" "-DCMAKE_PREFIX_PATH=$prefix" >"$scratch/log" 2>&1 &&
    fail "find_package(Ferry COMPONENTS data) is accepted"
grep -q 'no component data; expected' "$scratch/log" ||
    { cat "$scratch/log"; fail "a component is refused without a reason"; }
expect "$scratch/build/consumer_shared"
expect "$scratch/build/consumer_static"
expect "$scratch/build/consumer_data"
expect "$scratch/build/consumer_shmem"
expect "$scratch/build/consumer_shmem_static"
expect "$scratch/build/consumer_armci"

[ "$(pkg-config --modversion ferry)" = "$version" ] || fail "ferry.pc has another version"
# shellcheck disable=SC2046
cc -std=c11 "$scratch/consumer.c" -o "$scratch/consumer_pc" $(pkg-config --cflags --libs ferry)
# shellcheck disable=SC2046
cc -std=c11 "$scratch/consumer_data.c" -o "$scratch/data_pc" $(pkg-config --cflags --libs ferry-data)
# shellcheck disable=SC2046
cc -std=c11 "$scratch/consumer_shmem.c" -o "$scratch/shmem_pc" $(pkg-config --cflags --libs ferry-shmem)
# shellcheck disable=SC2046
cc -std=c11 "$scratch/consumer_armci.c" -o "$scratch/armci_pc" \
    $(pkg-config --cflags --libs ferry-armci)
if command -v c++ >"$scratch/log"; then
    # shellcheck disable=SC2046
    c++ -x c++ "$scratch/consumer_shmem.c" -o "$scratch/shmem_cxx" \
        $(pkg-config --cflags --libs ferry-shmem)
fi
export LD_LIBRARY_PATH="$prefix/$libdir"
expect "$scratch/consumer_pc"
expect "$scratch/data_pc"
expect "$scratch/shmem_pc"
expect "$scratch/armci_pc"
[ ! -f "$scratch/shmem_cxx" ] || expect "$scratch/shmem_cxx"
unset LD_LIBRARY_PATH

for header in "$source"/include/ferry/*.h; do
    [ -f "$prefix/include/ferry/${header##*/}" ] || fail "${header##*/} is not installed"
done
# A man page, with what it is about, for every function that a header declares or defines.
man3=$prefix/share/man/man3
cat "$source"/include/ferry/*.h | awk '/^FERRY_API|^static inline/ { open = 1; text = "" }
    open { text = text " " $0 }
    open && /[;)]$/ { open = 0; sub(/\(.*/, "", text); n = split(text, w, /[ *]+/); print w[n] }' \
    >"$scratch/functions"
awk -v man="$prefix/share/man" -v list="$scratch/functions" '
    # Reads a page: the page that it refers to, if any, and whether a line tells what the name does.
    function read_page(path, name,    line) {
        exists = tells = 0; target = ""
        while ((getline line <path) > 0) {
            exists = 1
            if (line ~ /^[.]so /) target = substr(line, 5)
            if (line ~ (name ".* .- [^ ]")) tells = 1
        }
        close(path)
    }
    BEGIN {
        while ((getline name <list) > 0) {
            read_page(man "/man3/" name ".3", name)
            if (!exists) { print "no man page for " name; continue }
            if (target != "") read_page(man "/" target, name)
            if (!tells) print "the man page of " name " does not say what it does"
        }
    }' >"$scratch/log"
[ ! -s "$scratch/log" ] || fail "$(head -n 1 "$scratch/log")"
[ "$(wc -l <"$scratch/functions")" -gt 100 ] || fail "the headers declare too few functions"
for name in ferry_cell_enqueue ferry_mover_bind; do
    grep -q 'lferry_data .*lferry' "$prefix/share/man/man3/$name.3" ||
        fail "the man page of $name does not say which library it needs"
done
[ -f "$prefix/share/man/man3/ferry_track.3" ] || fail "no man page for the type ferry_track"
[ -f "$prefix/share/man/man1/ferry.1" ] || fail "no man page for the command"
[ -f "$prefix/share/man/man7/ferry.7" ] || fail "no man page that gives an overview"
# If a header says something of all functions of a section, the page of each says it.
for words in 'says how long to wait' FERRY_EAGAIN FERRY_ESTATE FERRY_EPEER 'RETURN VALUE'; do
    grep -q "$words" "$man3/ferry_cell_dequeue.3" || fail "\"$words\" is not in ferry_cell_dequeue(3)"
done
# Each error has an entry of its own.
awk 'function end() {
        if (returns && !valued) print page " does not say what the function returns"
        if (typed && contract && !called) print page " describes a function instead of the type"
    }
    FNR == 1 {
        end(); page = FILENAME; sub(/.*[/]/, "", page)
        returns = valued = typed = contract = called = errors = 0
    }
    /[a-z][.]txt/ { print page " cites a file that no user has" }
    /^int [a-z_]*[(]/ { returns = 1 }
    /^[.]SH/ { errors = /^[.]SH ERRORS/ }
    /^[.]SH RETURN VALUE/ { valued = 1 }
    /^[.]SH CONTRACT/ { contract = 1 }
    /^typedef/ { typed = 1 }
    /^typedef.*[(]/ { called = 1 }
    errors && !/^[.]B/ && /; *FERRY_E[A-Z]*:/ { print "errors run together in " page }
    END { end() }' "$man3"/*.3 >"$scratch/log"
[ ! -s "$scratch/log" ] || fail "$(head -n 1 "$scratch/log")"
for name in FERRY_EINVAL FERRY_ELAUNCH; do
    grep -q "BR $name " "$man3/ferry_errors.3" || fail "$name is not in ferry_errors(3)"
done
[ -f "$man3/FERRY_TRACK_DEFAULTS.3" ] || fail "no man page for an initialiser"
# Each page that an installed header or man page names is installed, each man page too, and each paper
# that a header cites is listed in a page.
cited=$(cat "$prefix"/include/ferry/*.h "$prefix"/share/man/man*/* | sed 's/\\-/-/g')
for page in $(echo "$cited" | grep -oE '(README|CHANGELOG|docs/[A-Za-z0-9/_-]+)\.(md|svg)' | sort -u); do
    [ -f "$prefix/share/doc/ferry/$page" ] || fail "$page is named and not installed"
done
sh "$source/tests/docs/links.sh" "$prefix/share/doc/ferry" >"$scratch/log" ||
    fail "installed pages: $(cat "$scratch/log")"
for paper in $(cat "$prefix"/include/ferry/*.h | grep -oE '[a-z-]+\.txt' | sort -u); do
    grep -q "\`$paper\`" "$prefix/share/doc/ferry/docs/coverage.md" ||
        fail "headers cite $paper, which docs/coverage.md does not list"
done
for page in $(echo "$cited" | sed -n 's/^\.BR \(ferry[a-z_]*\) (\([0-9]\)).*/man\2\/\1.\2/p' | sort -u); do
    [ -f "$prefix/share/man/$page" ] || fail "$page is named and not installed"
done
grep -q 'share/doc/ferry' "$prefix/share/man/man7/ferry.7" || fail "ferry(7) does not say where pages are"
"$prefix/bin/ferry" info | grep -q "$version" || fail "the installed command does not say its version"
expect "$prefix/bin/ferry" run -n 1 "$scratch/build/consumer_shared"
for linked in shared static; do
    expect "$prefix/bin/ferry" sim -n 1 "$scratch/build/consumer_$linked"
    expect env FERRY_SCHEDULER=diffusion "$prefix/bin/ferry" sim -n 1 "$scratch/build/consumer_$linked"
    expect env FERRY_SCHEDULER=master "$scratch/build/consumer_$linked"
done

# Schedulers of a plug-in that is gone are missed by the shared library alone.
rm "$prefix/$libdir/ferry/ferry-schedulers.so"
expect env FERRY_SCHEDULER=master "$scratch/build/consumer_static"
expect env FERRY_SCHEDULER=ferry "$scratch/build/consumer_shared"
got=$(env FERRY_SCHEDULER=master "$scratch/build/consumer_shared" 2>&1) &&
    fail "runs a scheduler whose plug-in is missing"
case $got in
*"scheduler \"master\" is none of ferry,"*"ferry-schedulers.so is missing"*) ;;
*) fail "without its plug-in the scheduler is missed so: $got" ;;
esac

# The launcher is a plug-in of the shared library too. Only programs that start ranks need it.
two=$(env FERRY_RANKS=2 "$scratch/build/consumer_shared") || fail "FERRY_RANKS=2 exits with $?"
[ "$(echo "$two" | grep -c 'of 2, Ferry')" = 2 ] || fail "FERRY_RANKS=2 says: $two"
rm "$prefix/$libdir/ferry/ferry-launch.so"
expect "$prefix/bin/ferry" run -n 1 "$scratch/build/consumer_shared"
env FERRY_RANKS=2 "$scratch/build/consumer_static" >/dev/null || fail "static: FERRY_RANKS=2"
got=$(env FERRY_RANKS=2 "$scratch/build/consumer_shared" 2>&1) &&
    fail "starts ranks without a launcher"
case $got in
*"ferry-launch.so is missing"*) ;;
*) fail "without its plug-in the launcher is missed so: $got" ;;
esac

# A job of a launcher's needs port nodes, which is a plug-in of the shared library, and one of an
# MPI's.
refuse()
{
    text=$1
    shift
    got=$("$@" 2>&1) && fail "$* runs, expected: $text"
    case $got in
    *"one of 2 ranks, but the others cannot be reached: $text"*) ;;
    *) fail "$* says: $got" ;;
    esac
}
export OMPI_COMM_WORLD_SIZE=2
none='FERRY_MPI is "none"; expected openmpi or mpich: ferry-port-none.so is missing'
refuse "$none" env FERRY_MPI=none "$scratch/build/consumer_shared"
refuse "$none" env FERRY_MPI=none "$scratch/build/consumer_static"
rm "$prefix/$libdir/ferry/ferry-port-nodes.so"
refuse "" env FERRY_MPI=none "$scratch/build/consumer_shared"
unset OMPI_COMM_WORLD_SIZE
echo "installed, built with CMake and pkg-config, run: ok"
