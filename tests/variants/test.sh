#!/bin/sh
# Runs the tests of preset $1, built in directory $2.
#
# The thread sanitizer maps its shadow at fixed places, and kernels that randomise addresses widely
# leave those to chance: there the tests run without randomisation.
set -eu
preset=$1 directory=$2
run=
# Memory that was freed is kept from use, and each page of it costs: 16 MiB are kept, of 256. Stacks
# that have returned are watched in make soak alone: that takes a sixth of the time of all tests.
export ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1"
if [ -n "${TESTS_WHOLE:-}" ]; then
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_stack_use_after_return=1
else
    ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=16:malloc_context_size=6
fi
export UBSAN_OPTIONS="print_stacktrace=1"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
if [ "$preset" = tsan ] && [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ]; then
    setarch -R true 2>/dev/null && run="setarch -R"
fi
options=$(sh tests/soak/only.sh "$preset" "$directory")
# Many tests wait more than they compute; those of other builds run beside them.
# shellcheck disable=SC2086
exec $run ctest --test-dir "$directory" --output-on-failure --parallel "$((1 + $(nproc)))" $options
