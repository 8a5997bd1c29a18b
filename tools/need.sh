#!/bin/sh
# Makes sure that what a make target needs is installed: need.sh GOAL, where GOAL is build, install,
# test, bench, verify or format.
#
# Asks for commands and files, not for packages, so that anything that provides them will do and a
# second call costs nothing. As root it installs what is missing; otherwise it prints the one line
# to run and fails.
set -u
goal=$1
missing=

have() { command -v "$1" >/dev/null 2>&1; }
want() { missing="$missing $1"; }
compiles() { echo "#include <$1>" | ${CC:-cc} -E -x c - >/dev/null 2>&1; }

# The thread sanitizer's runtime is a file that only clang can find. On some systems it is part of
# clang's own dependencies, on others a package named after clang's version.
clang_runtime()
{
    echo 'int main(void) { return 0; }' >"$scratch/t.c"
    clang -fsanitize=thread "$scratch/t.c" -o "$scratch/t" 2>/dev/null
}

clang_runtime_package()
{
    version=$(clang -dumpversion 2>/dev/null || apt-cache depends clang 2>/dev/null |
        sed -n 's/.*Depends: clang-\([0-9][0-9]*\)$/\1/p')
    version=${version%%.*}
    if [ -n "$version" ] && apt-cache show "libclang-rt-$version-dev" >/dev/null 2>&1; then
        echo "libclang-rt-$version-dev"
    elif [ -n "$version" ] && apt-cache show "libclang-common-$version-dev" >/dev/null 2>&1; then
        echo "libclang-common-$version-dev"
    else
        echo libclang-rt-dev
    fi
}

look()
{
    missing=
    have cc || want gcc
    compiles stdio.h || want libc6-dev
    case $goal in
    build | install | test)
        have cmake || want cmake
        have ninja || want ninja-build
        ;;
    esac
    case $goal in
    build | test)
        compiles metis.h || want libmetis-dev
        compiles_cmocka || want libcmocka-dev
        ;;
    esac
    case $goal in
    test)
        have pkg-config || want pkg-config
        have c++ || want g++
        have h5cc || want libhdf5-dev # how CMake finds the library
        have mpicc.openmpi && have mpirun.openmpi || want "openmpi-bin libopenmpi-dev"
        have mpicc.mpich && have mpirun.mpich || want "mpich libmpich-dev"
        compiles nettle/sha1.h || want nettle-dev
        compiles netgen/nglib.h || want libnglib-dev # the mesher of apps/front
        have valgrind && compiles valgrind/callgrind.h || want valgrind
        if ! have clang; then
            want clang
            want "$(clang_runtime_package)"
        elif ! clang_runtime; then
            want "$(clang_runtime_package)"
        fi
        # The fastest linker, where anything is installed at all and there is a package of it.
        [ -z "$missing" ] || have mold || ! apt-cache show mold >/dev/null 2>&1 || want mold
        ;;
    bench) # what Ferry is compared with; each can be absent
        have pkg-config || want pkg-config
        have mpicc.openmpi || want libopenmpi-dev
        have mpirun.openmpi || want openmpi-bin
        have mpicc.mpich || want libmpich-dev
        have mpiexec.mpich || want mpich
        compiles ucp/api/ucp.h || want libucx-dev
        compiles cblas.h || want libopenblas-dev
        compiles liburing.h || want liburing-dev
        have iox-roudi || want iceoryx
        ls /usr/include/iceoryx/*/iceoryx_binding_c >/dev/null 2>&1 || want libiceoryx-binding-c-dev
        compiles nettle/sha1.h || want nettle-dev
        have valgrind && compiles valgrind/callgrind.h || want valgrind
        ;;
    verify) have spin || want spin ;;
    format) have clang-format-14 || want clang-format-14 ;;
    esac
}

# cmocka's header wants others before it.
compiles_cmocka()
{
    printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h cmocka.h |
        ${CC:-cc} -E -x c - >/dev/null 2>&1
}

check_cmake()
{
    case $goal in build | install | test) ;; *) return 0 ;; esac
    found=$(cmake --version | sed -n '1s/.* //p')
    minor=${found#*.}
    [ "${found%%.*}" -gt 3 ] || [ "${minor%%.*}" -ge 25 ] && return 0
    echo "ferry: CMake 3.25 or newer is needed and $found is here; see https://cmake.org/download" >&2
    return 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
look
if [ -z "$missing" ]; then
    check_cmake
    exit
fi

if ! have apt-get; then
    echo "ferry: missing here, by their Debian names:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "ferry: some packages are missing; run this, then make $goal again:" >&2
    echo "sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi
echo "ferry: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || exit 1
look
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    exit 1
}
look
if [ -n "$missing" ]; then
    echo "ferry: still missing after installation:$missing" >&2
    exit 1
fi
check_cmake
