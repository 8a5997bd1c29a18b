#!/bin/sh
# Goal: the swarm is a test: with one safeguard switched off it finds a seed that fails. Method:
# each mutant is a source with one line changed, which the workload is linked with before the
# library; an unchanged `ferry swarm` runs it. Fails when a mutant survives its seeds, or when its
# line is no longer there. Some mutants never end: a limit of virtual time finds those, at no cost of
# waiting, and the unchanged sources keep to it.
#
# `make test` runs the quick ones; `make soak` all.
#
#     mutants.sh FERRY SOURCE [MUTANT|quick|more|slow|all]
set -u
ferry=$1 source=$2 only=${3:-}
seeds=200
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# The program that must find them, the swarm's options for it, and how long that takes.
program=workload options= sort=quick
limits='--time-limit 2s --limit 20'

# build [MUTANT.c FOLDER]: the program, with what stands in a source of that folder instead
build()
{
    # shellcheck disable=SC2086
    cc -std=c11 -w -D_GNU_SOURCE -I"$source/include" -I"$source/src" ${2:+-iquote "$2"} ${1:-} \
        "$source/tests/sim/$program.c" "$scratch/libferry.a" -lpthread -ldl -o "$scratch/$program" \
        >"$scratch/log" 2>&1
}

# mutant NAME FILE OLD NEW RANKS [ARGUMENT]...: OLD is a fixed string of one line of FILE; the
# arguments are the program's.
mutant()
{
    name=$1 file=$2 old=$3 new=$4 ranks=$5
    shift 5
    case ${only:-quick} in
    all | "$name" | "$sort") ;;
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
    elif out=$("$ferry" swarm --no-shrink $options $limits -n "$ranks" --seeds 1..$seeds "$scratch/$program" \
        "$@" 2>&1); then
        echo "$name: not found within $seeds seeds"
        failures=$((failures + 1))
    else
        echo "$name: $(echo "$out" | tail -1)"
    fi
}

objects='ferry_objects ferry_sim_objects ferry_mpi_objects ferry_bundle_objects ferry_launch_objects ferry_report_objects'
# shellcheck disable=SC2086
{ cmake -S "$source" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG= \
    -DFERRY_TESTS=OFF -DFERRY_EXAMPLES=OFF -DFERRY_BENCH=OFF &&
    cmake --build "$scratch/build" --target $objects --parallel 2 &&
    find "$scratch/build" -path '*_objects.dir/*.o' -exec ar rc "$scratch/libferry.a" {} +
} >"$scratch/log" 2>&1 && build || { tail -20 "$scratch/log"; exit 1; }
"$ferry" swarm $limits -n 5 --seeds 1..$seeds "$scratch/workload" ||
    { echo "the unchanged sources fail"; exit 1; }

mutant port_order src/port/sim/wire.c 'cargo->number > channel->expected' '0' 5
mutant credit_return src/port/sim/channel.c 'channel->ring_frames--;' ';' 5
mutant one_wave src/core/quiesce.c 'balanced && q->was_balanced && created == q->last_created' 'balanced' 7 \
    10 2 60
mutant object_order src/object/deliver.c 'queued->envelope.sequence - *expected' '0' 5
mutant object_moves src/object/directory.c ' || (int32_t)(movement - entry->movement) <= 0' '' 5

program=workload options= sort=more
mutant port_doubles src/port/sim/wire.c 'cargo->number < channel->expected' '0' 5
mutant port_repair src/port/sim/wire.c 'fy_events_set(&world->events, &channel->timer, sent_ns' \
    '(void)(sent_ns' 5
mutant quiesce_counts src/core/quiesce.c 'bool balanced = created == finished;' 'bool balanced = true;' 5
mutant port_early src/port/sim/wire.c 'channel->early->number == channel->expected' '0' 5
mutant port_acknowledged src/port/sim/wire.c 'queue->first->number < number' \
    'queue->first->number <= number' 5
mutant backlog_passed src/core/send.c 'return waiting(f, (int)lane, rank) != NULL;' 'return false;' 5
mutant work_unfinished src/object/deliver.c 'fy_work_finished(f, 1);' ';' 5
mutant late_left src/object/migrate.c 'while (record->late.head != NULL) {' 'while (0) {' 5
mutant held_dropped src/object/install.c 'fy_record_admit(f, record, &held);' '(void)&held;' 5

program=flood options='--memory 6291456'
mutant answers_unbounded src/core/progress.c 'if (f->slow_lanes != 0 && refuses(f, source, frame))' \
    'if (0)' 6 4000 1000 20

program=death options=--all sort=more
mutant death_unheard src/core/peer.c 'fy_ops_fail_peer(f, rank, died);' ';' 5

program=death options=--all sort=quick
mutant death_counted src/core/quiesce.c '(gone ? peer->work_sent : 0)' '0' 5

program=death sort=slow seeds=3000
mutant death_collective src/core/progress.c 'fy_collectives_fail_dead(f);' ';' 5

program=orphans seeds=200
mutant gap_left src/object/layer.c 'if (objects->gap_ns != 0)' 'if (0)' 4
mutant giver_unknown src/core/op.c 'record->giver = giver;' 'record->giver = rank;' 4

# Credit for messages to objects, and what is held of them: any size, limits of a few bytes.
program=traffic options= sort=more seeds=200
mutant route_ignored src/core/send.c 'if (route != NULL) {' 'if (0) {' 4
mutant route_here src/object/send.c 'bool follows = fy_message_follows(f, entry->object);' \
    'bool follows = false;' 4
mutant route_movement src/core/send.c '>> 32 << 32 | route->movement' '' 4
mutant route_ended src/core/route.c '--route->count == 0' '--route->count != 0' 4
mutant tokens_kept src/object/held.c 'give && tell(f, h, -(int)h->tokens)' 'false' 4
mutant token_forgotten src/object/held.c 'fy_held_of(box, queued->envelope.origin)->tokens++;' ';' 4
mutant tokens_added src/core/credit.c 'tokens, tokens, memory' 'tokens, 1, memory' 4
mutant held_grows src/object/queued.c 'if (queued->counted)' 'if (0)' 4
mutant held_unheard src/object/queued.c 'held->tokens != 0 && held->bytes' '0 && held->bytes' 4
mutant carrier_waits src/core/send.c 'f->carried == 0 && must_wait' 'must_wait' 4
mutant carrier_unknown src/object/carry.c 'fy_location_send(f, rank, object, FY_PLACE_CARRIED' \
    '(void)(f, rank, object, FY_PLACE_CARRIED' 4
mutant queue_unseen src/core/send.c 'f->slow_lanes += !filled;' ';' 4
mutant queue_unended src/core/send.c 'f->slow_lanes -= queue->head == NULL;' ';' 4
mutant number_again src/object/send.c 'entry->sequence++;' ';' 4
mutant turn_unasked src/object/deliver.c 'expected == NULL || *expected != envelope->sequence' \
    'expected == NULL' 4
mutant turn_skipped src/object/deliver.c 'if (*expected != envelope->sequence)' 'if (0)' 4
mutant forward_unaware src/object/deliver.c 'next.movement = movement;' ';' 4
mutant early_stays src/object/migration.c 'at = write_queued(&record->early, at);' ';' 4
mutant early_unheard src/object/deliver.c 'add_early(f, record, envelope->origin, expected);' ';' 4
mutant ready_unseen src/object/run.c 'fy_list_insert(&objects->ready, &record->link);' ';' 4
mutant left_unknown src/object/migrate.c 'entry->movement = record->movement + 1;' \
    'entry->movement = record->movement;' 4
mutant refusal_endless src/core/progress.c 'f->relieved = refuser;' ';' 4
exit "$failures"
