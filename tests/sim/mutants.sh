#!/bin/sh
# Goal: tests find a safeguard that is switched off. Method: each mutant is a source with one line
# changed, which test programs are linked with before the library. One of the programs must fail.
# This script fails when a mutant survives, when its line is no longer there, or when a program
# fails with the unchanged sources. Three areas have a table each:
#
# - swarm (below "mutant port_order"): an unchanged `ferry swarm` runs the programs of this folder
#   with 200 seeds, or as many as the table says. Some mutants never end: a limit of virtual time
#   finds those, at no cost of waiting, and the unchanged sources keep to it.
# - loss (below "find=loss"): core/loss.c and its callers, which tell of deaths and other losses.
#   tests/core/loss_test.c and tests/core/crashing.sh must find them.
# - boards and turns (below "find=fibers"): what ranks tell each other in shared memory, and what
#   threads of a store share. The swarm finds the first too, and turns.sh the others, in programs that
#   are stopped between any two atomic operations (tests/interleave).
#
# The table of losses leaves out lines that another line makes up for. These are the look of collective_board.c
# and of fy_progress while a collective waits, and that of a quiescence at its start and later.
#
# `make test` runs the quick ones with the library that is built already; `make soak` all, with one
# that has assertions. `lines` only looks whether each mutant has its line.
#
#     mutants.sh FERRY SOURCE [MUTANT|quick|more|slow|loss|boards|turns|all|lines [LIBRARY]]
set -u
ferry=$1 source=$2 only=${3:-quick} library=${4:-}
seeds=200 deaths=
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# How mutants are found; for a swarm its program, its options, and how long that takes.
find=swarm program=workload options= sort=quick
limits='--time-limit 2s --limit 20'
flags="-std=c11 -w -D_GNU_SOURCE -I$source/include -I$source/src -I$source/tests/core"
flags="$flags -I$source/tests/programs"
libraries='-lpthread -ldl -lm'

# instrumented FILE: the objects of the files whose operations are interleaved, but not that of FILE
instrumented()
{
    for part in rest quiesce collective_board send request; do
        echo core/$part
    done >"$scratch/parts"
    [ $find = fibers ] || for part in port/shm/send port/shm/receive port/shm/news port/shm/wait \
        base/crew store/jobs store/room store/residence store/buffers store/leases; do
        echo $part
    done >>"$scratch/parts"
    while read -r part; do
        object=$scratch/$(echo "$part" | tr / _).o
        # shellcheck disable=SC2086
        [ -f "$object" ] || cc $flags -fsanitize=thread -c "$source/src/$part.c" -o "$object" || return 1
        [ "$1" = "src/$part.c" ] || printf '%s ' "$object"
    done <"$scratch/parts"
}

# schedule: its sources, as tests/interleave/CMakeLists.txt has them
schedule()
{
    for source_file in $(sed -n "s/^set(sources_$find \(.*\))/\1/p" \
        "$source/tests/interleave/CMakeLists.txt"); do
        echo "$source/tests/interleave/$source_file"
    done
}

# wraps: what the linker replaces, as tests/interleave/CMakeLists.txt has it
wraps()
{
    for name in $(tr '\n' ' ' <"$source/tests/interleave/CMakeLists.txt" |
        sed "s/.*set(wrapped_$find \([^)]*\)).*/\1/"); do
        echo "-Wl,--wrap=$name"
    done
}

# build [MUTANT.c FOLDER]: the programs, with what stands in a source of that folder instead
build()
{
    mutant=
    if [ $# -gt 0 ]; then
        mutant=$scratch/mutant.o
        case $find in fibers | turns) instrument=-fsanitize=thread ;; *) instrument= ;; esac
        # shellcheck disable=SC2086
        cc $flags $instrument -iquote "$2" -c "$1" -o "$mutant" || return 1
    fi
    # shellcheck disable=SC2086,SC2046
    case $find in
    swarm)
        cc $flags $mutant "$source/tests/sim/$program.c" "$scratch/libferry.a" $libraries \
            -o "$scratch/$program"
        ;;
    fibers | turns)
        others=$(instrumented "${file:-}") &&
            cc $flags $mutant $others "$source/tests/interleave/stores.c" \
                $(schedule) "$source/tests/$program.c" $(wraps) \
                "$scratch/libferry.a" $libraries -o "$scratch/${program##*/}"
        ;;
    loss)
        cc $flags $mutant "$source/tests/programs/crashing.c" "$scratch/libferry.a" $libraries \
            -o "$scratch/crashing" &&
            cc $flags $mutant "$source/tests/core/loss_test.c" "$source/tests/core/ranks.c" \
                "$scratch/libferry.a" -lcmocka $libraries -o "$scratch/loss_test"
        ;;
    esac
} >"$scratch/log" 2>&1

# Runs the programs of the losses until one fails, and names it in the last line.
find_loss()
{
    timeout 60 "$scratch/loss_test" || { echo "found by loss_test"; return; }
    CRASHING_CASES='none:main segv:handler kill:barrier exit3:quiesce return0:gather return0:main
        return0:allreduce return0:quiesce return3:quiesce return3:phase kill:close' \
        sh "$source/tests/core/crashing.sh" 4 10 "$ferry" sim -n 4 "$scratch/crashing" ||
        { echo "found by crashing.sh, simulated"; return; }
    FERRY_RANKS=4 CRASHING_CASES='none:main kill:allreduce return0:main return3:gather return3:main
        return0:gather exit3:close return3:gather return0:allreduce return3:quiesce kill:barrier
        return3:gather kill:main return3:phase kill:gather return3:gather' \
        sh "$source/tests/core/crashing.sh" 4 10 "$scratch/crashing" ||
        { echo "found by crashing.sh, processes"; return; }
    return 1
} 2>/dev/null

# find_mutant RANKS [ARGUMENT]...: whether a program fails; says which in the last line
find_mutant()
{
    ranks=$1
    shift
    case $find in
    loss) find_loss ;;
    turns)
        # shellcheck disable=SC2086
        ! env TESTS_WHOLE=1 $deaths sh "$source/tests/interleave/turns.sh" "$ranks" $seeds \
            "$scratch/${program##*/}" "$@" 2>&1
        ;;
    *)
        # shellcheck disable=SC2086
        ! "$ferry" swarm --no-shrink $options $limits -n "$ranks" --seeds 1..$seeds \
            "$scratch/${program##*/}" "$@" 2>&1
        ;;
    esac
}

# mutant NAME FILE OLD NEW [RANKS [ARGUMENT]...]: OLD is a fixed string of one line of FILE; the
# arguments are those of the swarm's program.
mutant()
{
    name=$1 file=$2 old=$3 new=$4
    shift 4
    case $only in
    all | lines | "$name" | "$sort") ;;
    *) return ;;
    esac
    failures=$((failures + 1))
    if [ "$(grep -cF -- "$old" "$source/$file")" -ne 1 ]; then
        echo "$name: $file has not one line with: $old"
        return
    elif [ "$only" = lines ]; then
        failures=$((failures - 1))
        return
    fi
    awk -v old="$old" -v new="$new" '{ at = index($0, old)
        if (at) $0 = substr($0, 1, at - 1) new substr($0, at + length(old)); print }' \
        "$source/$file" >"$scratch/$name.c"
    if ! build "$scratch/$name.c" "$source/${file%/*}"; then
        echo "$name: does not compile"
        tail -5 "$scratch/log"
    elif ! out=$(find_mutant "${@:-}"); then
        echo "$name: not found"
    else
        echo "$name: $(echo "$out" | tail -1)"
        failures=$((failures - 1))
    fi
}

objects='ferry_objects ferry_data_objects ferry_sim_objects ferry_nodes_objects ferry_bundle_objects ferry_steer_objects ferry_launch_objects ferry_report_objects ferry_why_objects ferry_waiting_objects'
# shellcheck disable=SC2086
if [ "$only" = lines ]; then
    build() { :; }
elif [ -n "$library" ]; then
    cp "$library" "$scratch/libferry.a"
else
    cmake -S "$source" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG= \
        -DFERRY_TESTS=OFF -DFERRY_EXAMPLES=OFF -DFERRY_BENCH=OFF &&
        cmake --build "$scratch/build" --target $objects --parallel 2 &&
        find "$scratch/build" -path '*_objects.dir/*.o' -exec ar rc "$scratch/libferry.a" {} +
fi >"$scratch/log" 2>&1 && build || { tail -20 "$scratch/log"; exit 1; }
[ "$only" = lines ] ||
    "$ferry" swarm $limits -n 5 --seeds 1..$([ "$only" = quick ] && echo 50 || echo $seeds) "$scratch/workload" ||
    { echo "the unchanged sources fail"; exit 1; }

mutant port_order src/port/sim/wire.c 'cargo->number > channel->expected' '0' 5
mutant credit_return src/port/sim/channel.c 'channel->ring_frames--;' ';' 5
mutant one_wave src/core/quiesce.c 'balanced && q->was_balanced && created == q->last_created' 'balanced' 7 \
    10 2 60
mutant object_order src/object/deliver.c 'queued->envelope.sequence - *expected' '0' 5
mutant object_moves src/object/location.c ' || (int32_t)(movement - entry->movement) <= 0' '' 5

program=workload options= sort=more
mutant port_doubles src/port/sim/wire.c 'cargo->number < channel->expected' '0' 5
mutant port_repair src/port/sim/wire.c 'fy_events_set(&world->events, &channel->timer, sent_ns' \
    '(void)(sent_ns' 5
mutant quiesce_counts src/core/quiesce.c 'bool balanced = created == finished;' 'bool balanced = true;' 5
mutant port_early src/port/sim/wire.c 'channel->early->number == channel->expected' '0' 5
mutant port_acknowledged src/port/sim/wire.c 'queue->first->number < number' \
    'queue->first->number <= number' 5
mutant backlog_passed src/core/send.c 'return waiting(f, kind, rank) != NULL;' 'return false;' 5
mutant work_unfinished src/object/forward.c 'fy_work_finished(f, 1);' ';' 5
mutant late_left src/object/migrate.c 'while (record->late.head != NULL) {' 'while (0) {' 5
mutant held_dropped src/object/install.c 'fy_record_admit(f, record, &held);' '(void)&held;' 5

program=flood options='--memory 6291456'
mutant answers_unbounded src/core/progress.c 'if (f->head.slow_lanes != 0 && fy_refuses(f, source, frame))' \
    'if (0)' 6 4000 1000 20

program=death options=--all sort=more
mutant death_unheard src/core/peer.c 'fy_ops_fail_peer(f, rank, died);' ';' 5

program=death options=--all sort=quick
mutant death_counted src/core/wave.c '(gone ? peer->work_sent : 0)' '0' 5

program=death sort=slow seeds=3000
mutant death_collective src/core/progress.c 'fy_collectives_fail_lost(f);' ';' 5

program=orphans seeds=200
mutant gap_left src/object/layer.c 'if (objects->gap_ns != 0)' 'if (0)' 4
mutant giver_unknown src/core/op_wire.c 'record->giver = giver;' 'record->giver = rank;' 4

# Credit for messages to objects, and what is held of them: any size, limits of a few bytes.
program=traffic options= sort=more seeds=200
mutant route_ignored src/object/send.c 'if (route != NULL) {' 'if (0) {' 4
mutant route_here src/object/send.c 'entry->record != NULL && route == NULL' \
    'entry->record != NULL' 4
mutant route_movement src/object/send.c 'movement = route->movement;' '' 4
mutant route_ended src/object/route.c '--route->count == 0' '--route->count != 0' 4
mutant tokens_kept src/object/held.c 'give && held_tell(f, h, -(int)h->tokens)' 'false' 4
mutant token_forgotten src/object/held.c 'fy_held_of(store, queued->envelope.origin)->tokens++;' ';' 4
mutant tokens_added src/object/credit.c 'fetch_add_explicit(&credit->tokens, tokens' \
    'fetch_add_explicit(&credit->tokens, 1' 4
mutant held_grows src/object/queued.c 'if (queued->counted)' 'if (0)' 4
mutant held_unheard src/object/queued.c 'held->tokens != 0 && held->bytes' '0 && held->bytes' 4
mutant carrier_waits src/object/pacing.c 'fy_objects_of(f)->carried == 0 && must_wait' \
    'must_wait' 4
mutant carrier_unknown src/object/uninstall.c 'fy_location_send(objects->f, entry->guess' \
    '(void)(objects->f, entry->guess' 4
mutant queue_unseen src/core/send.c 'f->head.slow_lanes += !filled;' ';' 4
mutant queue_unended src/core/send.c 'f->head.slow_lanes -= queue->head == NULL;' ';' 4
mutant number_again src/object/send.c 'entry->sequence++;' ';' 4
mutant turn_unasked src/object/deliver.c 'if (!fy_record_takes_turn(record, &queued->envelope))' \
    'if (fy_record_takes_turn(record, &queued->envelope), 0)' 4
mutant turn_skipped src/object/deliver.c 'if (*expected != envelope->sequence)' 'if (0)' 4
mutant forward_unaware src/object/forward.c 'next.movement = movement;' ';' 4
mutant early_stays src/object/migration_frame.c 'at = write_queued(&record->early, at);' ';' 4
mutant early_unheard src/object/deliver.c 'add_early(f, record, envelope->origin, expected);' ';' 4
mutant ready_unseen src/object/run.c 'fy_list_insert(&objects->ready, &record->link);' ';' 4
mutant left_unknown src/object/migrate.c 'entry->movement = record->movement + FY_MOVE_STEP;' \
    'entry->movement = record->movement;' 4
mutant refusal_endless src/core/refuse.c 'f->relieved = tells = refuser;' 'tells = refuser;' 4

find=loss sort=loss
case $only in
all | loss)
    if ! build || out=$(find_loss); then
        echo "the unchanged sources fail: $out"
        tail -5 "$scratch/log"
        exit 1
    fi
    ;;
esac
loss=src/core/loss.c
mutant note_untold $loss 'if (rank != f->head.rank && !fy_peer_is_gone(f, rank))' 'if (0)'
mutant death_expected $loss '(died || !expected)' '!expected'
mutant absence_expected $loss '(died || !expected)' 'died'
mutant closing_missed $loss 'f->closing == FY_CLOSING_LAST || ' ''
mutant leaving_missed $loss 'fy_peer_leaves(f, rank) || ' ''
mutant end_untold src/core/boot.c 'fy_loss_end(f, status);' ';'
mutant end_unread $loss 'i < POLLS_MAX && loss->error == 0' '0 && loss->error == 0'
mutant end_deaf $loss 'frame->kind == FY_KIND_LOSS ? fy_loss_deliver(context, source, frame) : FY_TAKEN' \
    'FY_TAKEN'
mutant end_unrepeated $loss '        tell_all(f);' '        ;'
mutant end_without_dead $loss 'else if (loss->dead != 0 && f->peers.fn == NULL)' 'else if (0)'
mutant end_of_dead $loss 'else if (loss->dead != 0 && f->peers.fn == NULL)' \
    'else if (loss->dead != 0)'
mutant end_unexplained $loss 'f->error_text[0] != ' '0 && '
mutant due_without_gone $loss 'f->peers.gone_count != 0 || ' ''
mutant due_without_error $loss 'f->loss.error != 0 ||' ''
mutant due_without_bad $loss 'atomic_load_explicit(&f->loss.has_bad' 'false && (&f->loss.has_bad'
mutant bad_unread $loss 'if (loss->error == 0 && atomic_load' 'if (0 && atomic_load'
mutant bad_unsaid $loss 'atomic_store_explicit(&loss->has_bad, true' \
    'atomic_store_explicit(&loss->has_bad, false'
mutant dead_unread $loss '    if (loss->dead != 0 && f->peers.fn == NULL)' '    if (0)'
mutant dead_always $loss '    if (loss->dead != 0 && f->peers.fn == NULL)' '    if (loss->dead != 0)'
mutant compare_never $loss 'if (f->loss.compared != compared' 'if (0'
mutant compare_quiesce $loss 'if (number == 0)' 'if (0)'
mutant compare_first $loss 'i < count && i < h->count && strncmp' 'i < count && i < h->count && !strncmp'
mutant close_untold src/core/rank.c 'fy_loss_end(f, EXIT_FAILURE);' ';'
mutant wave_handlers src/core/quiesce.c \
    'if (q->asker >= 0 && q->asker_handlers != fy_handlers_signature(f))' 'if (0)'
mutant quiesce_waits src/core/quiesce.c '        error = fy_loss_check(f, call);' ';'
mutant quiesce_elsewhere src/core/quiesce.c 'error = f->quiescence.error;' ';'
mutant collective_lost src/core/collective_lost.c 'c->error = fy_loss_check(f, fy_call_name(&c->call));' \
    'c->error = 0;'
mutant collective_told src/core/collective_lost.c 'c->told = c->error != 0; /*' 'c->told = false; /*'
mutant collective_begins src/core/collective_calls.c 'fy_collective_look_lost(f, c);' ';'
mutant bury_untold src/core/peer.c '    fy_loss_of_rank(f, rank, died);' ';'
mutant progress_looks src/core/progress.c 'if (f->collectives.first != NULL && fy_loss_is_due(f))' 'if (0)'

find=fibers sort=boards options='--net memory'
program=sim/rounds
rest=src/core/rest.c board=src/core/collective_board.c
mutant line_early $board 'kept->number, memory_order_release);' 'kept->number, memory_order_relaxed);' 4
mutant sleeper_unseen $board 'atomic_store(waiting, 1);' \
    'atomic_store_explicit(waiting, 1, memory_order_relaxed);' 4
mutant sleepers_left $board 'if (i != c->self && atomic_load(' 'if (0 && atomic_load(' 4
mutant state_early $rest 'state + REST_AT_REST, memory_order_release' \
    'state + REST_AT_REST, memory_order_relaxed' 4
mutant work_unread $rest 'return all && created == finished' 'return all' 4
mutant finished_late $rest 'finished = sum_finished(f);' 'finished = 0;' 4
program=sim/workload
mutant rest_unread $rest 'return all && created == finished' 'return created == finished' 4
program=sim/restless
quiesce=src/core/quiesce.c
mutant rounds_unlimited $quiesce '!f->quiescence.broken && --rounds > 0)' 'rounds)' 8
mutant sent_unlimited $quiesce '           --rounds > 0)' '           rounds)' 8
program=sim/lost seeds=600
mutant rest_deaf $quiesce '    (void)fy_progress(f, true);' '    ;' 4

find=turns sort=turns options= seeds=200
program=programs/pingpong
wait=src/port/shm/wait.c
mutant barrier_left $wait '(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED' \
    '(void)(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED' 2
mutant asleep_late $wait 'atomic_store(&p->self->app_asleep, 1);' \
    'atomic_store_explicit(&p->self->app_asleep, 1, memory_order_relaxed);' 2
mutant fence_unasked $wait 'atomic_fetch_or(&p->self->state, SHM_NEEDS_FENCE);' ';' 2
mutant turn_early src/port/shm/send.c 'atomic_store(&slot->turn, turn);' \
    'atomic_store_explicit(&slot->turn, turn, memory_order_relaxed);' 2
program=sim/rounds
mutant look_left $wait '!app_ready(p) && !lookout_ends(lookout, true)' '!app_ready(p)' 4
mutant look_unseen $board 'atomic_store(waiting, 1);' \
    'atomic_store_explicit(waiting, 1, memory_order_relaxed);' 4
mutant look_late $board 'if (all_have_come(m) || m->c->error != 0)' \
    'if (!sleeps && (all_have_come(m) || m->c->error != 0))' 4
mutant rest_unseen $rest 'atomic_store_explicit(&own_line(f)->awaits, 1, memory_order_relaxed);' ';' 4
program=sim/lost deaths='TURNS_DEATHS=2 TURNS_ENDS=1'
mutant death_untold $wait 'fy_rouse(&peer->app_asleep);' ';' 3
mutant death_unseen $wait 'atomic_fetch_add(&peer->events, 1)' 'atomic_load(&peer->events)' 3
# Threads that share work: a signal is missing, goes to one thread in place of all, to the wrong
# ones, or comes without the lock.
program=interleave/crew deaths=
crew=src/base/crew.c jobs=src/store/jobs.c
mutant work_untold $crew '(void)pthread_cond_signal(&crew->more);' ';' 1
mutant crew_end_untold $crew '(void)pthread_cond_broadcast(&crew->more);' ';' 1
mutant crew_end_unlocked $crew 'fy_crew_lock(crew);' \
    'crew->stop = true; (void)pthread_cond_broadcast(&crew->more);
    for (int i = 0; i < crew->count; i++) (void)pthread_join(crew->threads[i], NULL);
    if (1) return;' 1
mutant job_end_untold $crew '(void)pthread_cond_broadcast(&crew->done);' ';' 1
mutant job_end_told_once $crew '(void)pthread_cond_broadcast(&crew->done);' \
    '(void)pthread_cond_signal(&crew->done);' 1
mutant job_end_told_others $crew '(void)pthread_cond_wait(&crew->done, &crew->lock);' \
    '(void)pthread_cond_wait(&crew->more, &crew->lock);' 1
# Threads of a store: a wait is not repeated; a lock is missing; one thread uses what another has.
program=store/random
mutant work_believed $jobs 'fy_crew_await_work(&disk->crew);' 'fy_crew_await_work(&disk->crew);
            link = fy_list_pop(&disk->reads);
            serve_one(disk, item_of(link != NULL ? link : fy_list_pop(&disk->writes)));' 2
mutant read_believed $jobs 'while (whole && !job->valid) {' \
    'for (int i = 0; i < 1 && whole && !job->valid; i++) {' 2
mutant read_early $jobs 'job->work = FY_WORK_QUEUED;' \
    'job->work = FY_WORK_QUEUED; job->valid = true;' 2
mutant jobs_unlocked $jobs '    fy_crew_lock(&s->disk.crew);' '    ;' 2
mutant busy_unmarked $jobs 'item->job.work = FY_WORK_BUSY;' ';' 2
mutant busy_freed $jobs 'job->work != FY_WORK_BUSY && !(spare' '!(spare' 2
exit "$failures"
