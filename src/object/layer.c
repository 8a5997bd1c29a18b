#include <stdlib.h>

#include "base/alloc.h"
#include "base/env.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/loss.h"
#include "core/membership.h"
#include "core/outgoing.h"
#include "object/cost.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/execution.h"
#include "object/foreign.h"
#include "object/kinds.h"
#include "object/moves.h"
#include "object/pacing.h"
#include "object/protocol.h"
#include "object/store_calls.h"

static const fy_object_calls calls = {
    .state = fy_record_state,
    .unlink = fy_record_unlink,
    .rest = fy_record_rest,
    .set_down = fy_record_set_down,
    .note_loss = fy_loss_note,
    .locate = fy_location_send,
    .lock = fy_control_lock,
    .unlock = fy_control_unlock,
};

static __attribute__((cold)) int open_layer(ferry *f, const ferry_options *options)
{
    static const char no_memory[] = "open: no memory for the object layer";
    fy_objects *objects = fy_calloc(1, sizeof *objects);
    if (objects == NULL)
        return fy_fail(f, FERRY_ENOMEM, "%s", no_memory);
    const char *name = fy_env_get("FERRY_DIRECTORY");
    int error = fy_protocol_find(f, name != NULL ? name : options->directory, &objects->protocol,
                                 &objects->protocol_handle);
    if (error != 0) {
        free(objects);
        return error;
    }
    /* Its pages are touched as types are registered. */
    objects->types = fy_malloc(FY_TYPES_MAX * sizeof *objects->types);
    if (objects->types == NULL || fy_table_init(&objects->directory, sizeof(fy_entry)) != 0)
        goto free_objects;
    if (fy_message_store_init(&objects->messages, options->backlog_bytes,
                              options->waiting_bytes / 2, fy_kept_bytes(f)) != 0)
        goto free_directory;
    objects->f = f;
    objects->keeper.handler = UINT16_MAX;
    objects->calls = &calls;
    objects->rank = ferry_rank(f);
    objects->ranks = ferry_ranks(f);
    objects->port = fy_port_of(f);
    objects->port->ops->transport.query(objects->port, &objects->info);
    fy_names_init(&objects->names, objects->rank);
    fy_list_init(&objects->ready);
    fy_list_init(&objects->round);
    fy_list_init(&objects->pinned);
    fy_list_init(&objects->done);
    fy_list_init(&objects->spares);
    fy_layer_state_set(f, FY_LAYER_OBJECT, objects);
    ((fy_head *)(void *)f)->pacing = &fy_message_pacing;
    if (fy_costs_init(f) != 0)
        goto free_queued;
    if (objects->costs != NULL)
        fy_kind_set(f, FY_KIND_MESSAGE, fy_message_frame_counted);
    return 0;
free_queued:
    fy_layer_state_set(f, FY_LAYER_OBJECT, NULL);
    fy_costs_fini(objects);
    fy_message_store_fini(&objects->messages);
free_directory:
    fy_table_fini(&objects->directory);
free_objects:
    fy_foreign_close(objects->protocol_handle);
    free(objects->types);
    free(objects);
    return fy_fail(f, FERRY_ENOMEM, "%s", no_memory);
}

/* Closes an object that is here, leaving or awaited. */
static void end_record(ferry *f, fy_record *record)
{
    fy_objects *objects = fy_objects_of(f);
    objects->unhandled += record->pending.count + record->early.count + record->late.count;
    if (record->data != NULL)
        record->type->ops.destroy(f, record->data);
    fy_record_destroy(objects, record);
}

static __attribute__((cold)) void close_layer(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    fy_arrivals_end(f);
    size_t index = 0;
    for (fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;)
        if (entry->record != NULL)
            end_record(f, entry->record);
    if (objects->store != NULL)
        objects->store->end(f);
    for (fy_queued_message *queued; (queued = fy_queued_list_pop(&objects->failed)) != NULL;) {
        objects->unhandled++;
        fy_queued_destroy(&objects->messages, queued);
    }
    if (objects->unhandled != 0)
        fy_log(f, "closed before %llu messages to objects were handled",
               (unsigned long long)objects->unhandled);
    fy_costs_fini(objects);
    fy_table_fini(&objects->directory);
    fy_table_fini(&objects->routes);
    fy_names_fini(&objects->names);
    fy_message_store_fini(&objects->messages);
    for (fy_link *link; (link = fy_list_pop(&objects->spares)) != NULL;)
        free(link);
    fy_foreign_close(objects->protocol_handle);
    free(objects->types);
    free(objects);
    fy_layer_state_set(f, FY_LAYER_OBJECT, NULL);
}

/* Completes the moves of objects that have left, because frames about these objects wait for that.
 * Then installs the objects that have arrived, because messages that other ranks hold wait for
 * that. */
static int objects_settle(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    /* acquire: pairs with the release of whoever put something on `done` or `arrivals`. */
    if (!atomic_load_explicit(&objects->mail, memory_order_acquire))
        return 0;
    atomic_store_explicit(&objects->mail, false, memory_order_relaxed);
    int count = fy_done_drain(f);
    return count + fy_arrivals_install(f);
}

static int objects_progress(ferry *f)
{
    fy_objects *objects = fy_objects_of(f);
    int count = objects->installed + objects_settle(f);
    objects->installed = 0;
    if (objects->gap_ns != 0)
        count += fy_gaps_close(f);
    if (objects->failed.head != NULL)
        count += fy_failed_tell(f);
    if (!fy_list_empty(&objects->pinned))
        count += fy_pins_drop(f);
    if (!fy_list_empty(&objects->ready))
        count += fy_ready_run(f);
    if (objects->messages.unsettled ||
        (objects->messages.tokens != 0 && objects->messages.epoch != fy_peer_shifts(f)))
        fy_held_settle(f, true);
    if (objects->store != NULL)
        objects->store->progress(f);
    /* relaxed: only this thread writes it, unless there is a helper; then no layer rests at all */
    bool mail = atomic_load_explicit(&objects->mail, memory_order_relaxed);
    if (count == 0 && !mail && objects->gap_ns == 0 && objects->failed.head == NULL &&
        fy_list_empty(&objects->pinned) && fy_list_empty(&objects->ready) &&
        !objects->messages.unsettled && objects->messages.tokens == 0 && objects->store == NULL)
        fy_layer_rest(f, FY_LAYER_OBJECT);
    return count;
}

static bool objects_busy(ferry *f)
{
    const fy_objects *objects = fy_objects_of(f);
    /* acquire: as in objects_progress. */
    return atomic_load_explicit(&objects->mail, memory_order_acquire) ||
           !fy_list_empty(&objects->pinned) || !fy_list_empty(&objects->ready) ||
           objects->failed.head != NULL;
}

static uint64_t deadline(ferry *f)
{
    enum { PAUSE_NS = 500 * 1000 };
    const fy_objects *objects = fy_objects_of(f);
    uint64_t at = objects->gap_ns != 0 ? objects->gap_ns : UINT64_MAX;
    if (!objects->messages.unsettled)
        return at;
    /* No event tells when there is memory for a notice of tokens, or room for forwarded messages.
     */
    uint64_t look_ns = objects->port->ops->host.now(objects->port) + PAUSE_NS;
    return look_ns < at ? look_ns : at;
}

static void objects_peer_gone(ferry *f, int rank)
{
    fy_port *port = fy_objects_of(f)->port;
    bool died = port->ops->members.peer(port, rank) == FY_PEER_DEAD;
    fy_directory_peer_gone(f, rank, died);
    if (died)
        fy_gaps_rank_died(f);
}

static const fy_kind_info kinds[] = {
    [FY_KIND_MESSAGE - FY_KINDS_OF_OBJECT] = {fy_message_frame, fy_message_hold, "message",
                                              FY_FRAME_ASKS | FY_FRAME_TAGGED | FY_FRAME_LENDABLE},
    [FY_KIND_LOCATION - FY_KINDS_OF_OBJECT] = {fy_location_frame, NULL, "location", 0},
    [FY_KIND_ARRIVAL - FY_KINDS_OF_OBJECT] = {fy_arrival_frame, NULL, "arrival", 0},
    [FY_KIND_PIGGYBACK - FY_KINDS_OF_OBJECT] = {fy_piggyback_frame, NULL, "piggybacked object",
                                                FY_FRAME_ASKS | FY_FRAME_TAGGED},
    [FY_KIND_HANDOVER - FY_KINDS_OF_OBJECT] = {fy_handover_frame, NULL, "handover", 0},
    [FY_KIND_CREDIT - FY_KINDS_OF_OBJECT] = {fy_credit_frame, NULL, "credit", 0},
};

const fy_layer_ops fy_object_layer = {
    .layer = FY_LAYER_OBJECT,
    .name = "object",
    .kinds = kinds,
    .kind_count = sizeof(kinds) / sizeof(kinds[0]),
    .open = open_layer,
    .close = close_layer,
    .drain = fy_unregistered_retry,
    .progress = objects_progress,
    .settle = objects_settle,
    .busy = objects_busy,
    .deadline = deadline,
    .peer_gone = objects_peer_gone,
    .trace = fy_costs_write,
    .why = fy_objects_why,
    .settled = fy_objects_settled,
    .leave = fy_objects_leave,
};
