#!/bin/sh
# Goal: packages that are installed after the first configuration count. Method: configure the
# sources in $1 twice by `make configure`, first with MPI, HDF5, Nettle and Netgen hidden from CMake,
# then with them visible. The tests of both MPI libraries, of HDF5 and of Netgen must appear, and the
# house rules that look at what is configured must hold both times.
set -eu
source=$1
for command in mpicc.openmpi mpicc.mpich h5cc pkg-config; do
    command -v "$command" >/dev/null || { echo "skipped: $command is not installed"; exit 77; }
done
[ -e /usr/include/netgen/nglib.h ] || { echo "skipped: nglib is not installed"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
build=$scratch/build

fail()
{
    echo "FAILED: $1"
    exit 1
}
configure()
{
    env -u MAKEFLAGS -u MAKELEVEL make -s -C "$source" configure "BUILD=$build" "$@" \
        >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "make configure $*"; }
}
house()
{
    for rule in dead coverage; do
        sh "$source/tests/house/house.sh" "$rule" "$source" "$build" >"$scratch/log" ||
            { cat "$scratch/log"; fail "house rule $rule $1"; }
    done
}
tests() { ctest --test-dir "$build" -N | grep -c ": $1" || true; }

# All commands but these are in another folder than those that CMake is told to pass over.
mkdir "$scratch/bin"
ln -s /usr/bin/* "$scratch/bin/"
rm "$scratch/bin"/mpi* "$scratch/bin"/h5* "$scratch/bin"/pkg-config "$scratch/bin"/pkgconf
library=$(cc -print-multiarch)
hidden="/usr/bin;/bin;/usr/include/netgen;/usr/include/hdf5/serial;/usr/lib/$library/hdf5/serial"
(
    PATH=$scratch/bin
    configure "CMAKE_OPTIONS='-DCMAKE_IGNORE_PATH=$hidden'"
)
for name in mpi_ mover_dataset_write uts_ front_netgen_; do
    [ "$(tests "$name")" -eq 0 ] || fail "tests $name* exist without what they need"
done
house "with MPI, HDF5, Nettle and Netgen missing"

configure CMAKE_OPTIONS=-UCMAKE_IGNORE_PATH
for name in mpi_conformance_openmpi mpi_conformance_mpich mpi_two_hosts mover_dataset_write uts_ \
    front_netgen_; do
    [ "$(tests "$name")" -gt 0 ] || fail "tests $name* do not appear after an installation"
done
house "after an installation"
echo "what was installed after the first configuration is found: ok"
