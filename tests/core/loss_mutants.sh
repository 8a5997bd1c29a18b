#!/bin/sh
# Goal: the code that tells of deaths and other losses (core/loss.c and its callers) is tested line
# by line. Method: each mutant is a source with one line changed, which the programs below are linked
# with before the library; one of them must fail. Fails when a mutant survives, when its line is no
# longer there, or when a program fails with the unchanged sources.
#
# Not here are lines whose loss another one makes up for: the look of meet.c and of fy_progress while
# a collective waits, and that of a quiescence at its start and later.
#
#     loss_mutants.sh FERRY SOURCE ["MUTANT..."]
set -u
ferry=$1 source=$2 only=${3:-all}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# build [MUTANT.c FOLDER]: the programs, with what stands in a source of that folder instead
build()
{
    flags="-std=c11 -w -D_GNU_SOURCE -I$source/include -I$source/src -I$source/tests/core"
    flags="$flags -I$source/tests/programs"
    # shellcheck disable=SC2086
    if [ $# -gt 0 ]; then
        cc $flags -iquote "$2" -c "$1" -o "$scratch/mutant.o" || return 1
    else
        : >"$scratch/none.c"
        cc -c "$scratch/none.c" -o "$scratch/mutant.o" || return 1
    fi
    for program in programs/doomed core/loss_test; do
        [ -f "$scratch/${program##*/}.o" ] ||
            cc $flags -c "$source/tests/$program.c" -o "$scratch/${program##*/}.o" || return 1
        ranks= cmocka=
        [ $program = core/loss_test ] && ranks=$scratch/ranks.o cmocka=-lcmocka
        [ -z "$ranks" ] || [ -f "$ranks" ] ||
            cc $flags -c "$source/tests/core/ranks.c" -o "$ranks" || return 1
        # shellcheck disable=SC2086
        cc "$scratch/mutant.o" "$scratch/${program##*/}.o" $ranks "$scratch/libferry.a" $cmocka \
            -lpthread -ldl -lm -o "$scratch/${program##*/}" || return 1
    done
} >"$scratch/log" 2>&1

# The first program that fails, or nothing.
find_failure()
{
    timeout 60 "$scratch/loss_test" || { echo loss_test; return; }
    DOOMED_CASES='none:main segv:handler kill:barrier exit3:quiesce return0:gather return0:main
        return0:allreduce return0:quiesce return3:quiesce return3:phase kill:close' \
        sh "$source/tests/core/doomed.sh" 4 10 "$ferry" sim -n 4 "$scratch/doomed" ||
        { echo doomed; return; }
    FERRY_RANKS=4 DOOMED_CASES='none:main kill:allreduce return0:main return3:main return0:gather
        exit3:close return0:allreduce return3:quiesce kill:barrier' \
        sh "$source/tests/core/doomed.sh" 4 10 "$scratch/doomed" || { echo processes; return; }
} 2>/dev/null

# mutant NAME FILE OLD NEW: OLD is a fixed string of one line of FILE.
mutant()
{
    name=$1 file=$2 old=$3 new=$4
    case " $only " in
    *" all "* | *" $name "*) ;;
    *) return ;;
    esac
    if [ "$(grep -cF -- "$old" "$source/$file")" -ne 1 ]; then
        echo "$name: $file has not one line with: $old"
        failures=$((failures + 1))
        return
    fi
    awk -v old="$old" -v new="$new" '{ at = index($0, old)
        if (at) $0 = substr($0, 1, at - 1) new substr($0, at + length(old)); print }' \
        "$source/$file" >"$scratch/$name.c"
    if ! build "$scratch/$name.c" "$source/${file%/*}"; then
        echo "$name: does not compile"
        tail -5 "$scratch/log"
        failures=$((failures + 1))
        return
    fi
    by=$(find_failure | tail -1)
    case $by in
    loss_test | doomed | processes) echo "$name: found by $by" ;;
    *)
        echo "$name: not found"
        failures=$((failures + 1))
        ;;
    esac
}

objects='ferry_objects ferry_sim_objects ferry_mpi_objects ferry_bundle_objects ferry_launch_objects'
# shellcheck disable=SC2086
{ cmake -S "$source" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG= \
    -DFERRY_TESTS=OFF -DFERRY_EXAMPLES=OFF -DFERRY_BENCH=OFF &&
    cmake --build "$scratch/build" --target $objects --parallel 2 &&
    find "$scratch/build" -path '*_objects.dir/*.o' -exec ar rc "$scratch/libferry.a" {} +
} >"$scratch/log" 2>&1 && build || { tail -20 "$scratch/log"; exit 1; }
by=$(find_failure | tail -1)
case $by in
loss_test | doomed | processes)
    echo "the unchanged sources fail: $by"
    exit 1
    ;;
esac

loss=src/core/loss.c
mutant note_untold $loss 'if (rank != f->rank && !fy_peer_is_gone(f, rank))' 'if (0)'
mutant death_expected $loss '(died || !expected)' '!expected'
mutant absence_expected $loss '(died || !expected)' 'died'
mutant closing_missed $loss 'f->closing == FY_CLOSING_LAST || ' ''
mutant leaving_missed $loss 'fy_peer_leaves(f, rank) || ' ''
mutant end_untold $loss 'if (f->loss.dead == 0)' 'if (0)'
mutant due_without_gone $loss 'f->peers.gone_count != 0 || ' ''
mutant due_without_error $loss 'f->loss.error != 0 ||' ''
mutant due_without_bad $loss 'atomic_load_explicit(&f->loss.has_bad' 'false && (&f->loss.has_bad'
mutant bad_unread $loss 'if (loss->error == 0 && atomic_load' 'if (0 && atomic_load'
mutant bad_unsaid $loss 'atomic_store_explicit(&loss->has_bad, true' \
    'atomic_store_explicit(&loss->has_bad, false'
mutant dead_unread $loss 'if (loss->dead != 0 && f->peers.fn == NULL)' 'if (0)'
mutant dead_always $loss 'if (loss->dead != 0 && f->peers.fn == NULL)' 'if (loss->dead != 0)'
mutant compare_never $loss 'if (f->loss.compared != compared' 'if (0'
mutant compare_quiesce $loss 'if (number == 0)' 'if (0)'
mutant compare_first $loss 'i < count && i < h->count && strncmp' 'i < count && i < h->count && !strncmp'
mutant status_untold src/core/boot.c 'fy_loss_end(f, status);' ';'
mutant wave_handlers src/core/quiesce.c \
    'if (q->asker >= 0 && q->asker_handlers != fy_handlers_signature(f))' 'if (0)'
mutant quiesce_waits src/core/quiesce.c '        error = fy_loss_check(f, call);' ';'
mutant quiesce_elsewhere src/core/quiesce.c 'error = f->quiescence.error;' ';'
mutant collective_lost src/core/collective.c 'c->error = fy_loss_check(f, name_of(&c->call));' \
    'c->error = 0;'
mutant collective_told src/core/collective.c 'c->told = c->error != 0; /*' 'c->told = false; /*'
mutant collective_begins src/core/collectives.c 'fy_collective_look_lost(f, c);' ';'
mutant bury_untold src/core/peer.c '    fy_loss_of_rank(f, rank, died);' ';'
mutant progress_looks src/core/progress.c 'if (f->collectives.first != NULL && fy_loss_is_due(f))' 'if (0)'
exit "$failures"
