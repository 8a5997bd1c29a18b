/* How objects end: how all ranks that have dealt with an object learn that it will not be found
 * again, and forget it.
 *
 * The `sources` of an object move with it. They name the ranks that it visited and the ranks that
 * have sent to it, except those whose messages are all still in flight. When the object ends:
 *   1. The rank where it ends keeps a tombstone and sends the creator the ranks of `sources`.
 *   2. The creator ends the name, forgets the entry and tells these ranks and their successors;
 *      with `everyone` it tells all ranks.
 *   3. The ranks that are told, and the rank of the tombstone, forget the object.
 * A message in flight bounces off the tombstone or off the creator, and its sender forgets the
 * object. A sender that has had the object keeps a tombstone until the creator tells it.
 *
 * Why that is safe: a rank that has had the object forgets it only after the creator knows of the
 * end. A message for the object may come even later. The rank takes it for one that overtook the
 * object: it keeps the message and asks the creator, which answers that the object has ended. If
 * the creator does not answer, the object was alive when the request came. Then this rank cannot
 * have forgotten it, so the object is still to come. The creator needs no tombstone of its own: the
 * name (names.h) is never given again.
 *
 * If a creator has left in order, its successor stands for it (leave.c). So "creator" here means
 * the home: the creator, or the rank that inherited from it. An inherited name is alive as long as
 * the successor has an entry that was handed over, or of an object that has been there.
 *
 * If that rank dies, each rank tells another one, the new home, of objects that have been here. It
 * does not know which objects have ended: those without an entry have ended, or were lost. Messages
 * to them fail with FERRY_EPEER. Nor does it say that an object has ended, so a rank that keeps
 * messages for it gives them up after a while (fy_entry_doubt). It keeps tombstones of objects that
 * end later. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "object/delivery.h"
#include "object/ends.h"
#include "object/entry.h"
#include "object/kinds.h"
#include "object/moves.h"

enum { FEW_RANKS = 64 };

int fy_object_home(const fy_objects *objects, ferry_object object)
{
    const ferry *f = objects->f;
    int count = objects->info.starting != 0 ? objects->info.starting : objects->ranks;
    int creator = fy_object_creator(object), home = fy_peer_successor(f, creator);
    for (int i = 1; i <= count && fy_peer_is_gone(f, home); i++)
        home = fy_peer_successor(f, (creator + i) % count);
    return home;
}

int fy_object_place(const fy_objects *objects, ferry_object object, const fy_entry *entry)
{
    if (entry == NULL) {
        int home = fy_object_home(objects, object);
        return home == objects->rank ? -1 : home;
    }
    if (entry->record != NULL)
        return objects->rank;
    return entry->dead ? -1 : fy_entry_route(objects, entry);
}

/* On the home. One that has inherited the name may also have an entry because it has sent to the
 * object. Old notices of places may have told that entry of movements. */
static bool is_alive(const fy_objects *objects, ferry_object object)
{
    if (fy_object_creator(object) == objects->rank)
        return fy_names_alive(&objects->names, object);
    const fy_entry *entry = fy_entry_find(objects, object);
    return entry != NULL && !entry->dead && fy_entry_counts(entry);
}

static fy_source source_at(const void *ranks, uint32_t i)
{
    fy_source source;
    memcpy(&source, (const unsigned char *)ranks + i * sizeof source, sizeof source);
    return source;
}

/* On the creator: the object has ended. The rank where it ended reports that, with the `ranks` to
 * tell, fy_sources at any address. A rank off which a message bounced reports it too, without them,
 * and maybe earlier. So a second report still tells its `ranks`.
 *
 * While another rank leaves, one that has inherited the name tells all. The rank that leaves may
 * have handed the name over, and do that again to another successor. Or ranks have heard of the end
 * from it, and have asked this one too early (ends_answer). */
static void end_name(ferry *f, ferry_object object, uint32_t movement, const void *ranks,
                     uint32_t count)
{
    fy_objects *objects = fy_objects_of(f);
    bool first = is_alive(objects, object), own = fy_object_creator(object) == objects->rank;
    bool everyone = first && (objects->protocol.everyone || (!own && fy_others_leave(f)));
    if (objects->told_successor != 0)
        fy_location_send(f, objects->told_successor - 1, object, FY_PLACE_NONE, movement);
    fy_entry *entry = fy_entry_find(objects, object);
    if (first && own)
        fy_names_end(&objects->names, object);
    if (entry != NULL && !entry->dead) {
        fy_entry_seen(objects, entry);
        if (fy_object_is_ours(objects, object))
            fy_table_remove(&objects->directory, entry);
        else
            entry->dead = 1; /* nothing else says that the name has ended */
    }
    for (int rank = 0; everyone && rank < objects->ranks; rank++)
        if (rank != objects->rank)
            fy_location_send(f, rank, object, FY_PLACE_NONE, movement);
    for (uint32_t i = 0; !everyone && i < count; i++) {
        int rank, next = (int)source_at(ranks, i).rank_plus_1 - 1;
        do {
            rank = next;
            if (rank != objects->rank)
                fy_location_send(f, rank, object, FY_PLACE_NONE, movement);
            next = fy_peer_successor(f, rank);
        } while (next != rank);
    }
}

void fy_object_bury(ferry *f, fy_entry *entry, const fy_record *record)
{
    int creator = fy_object_home(fy_objects_of(f), record->object);
    uint32_t count = record->sources.count;
    fy_source few[FEW_RANKS];
    fy_source *ranks = count <= FEW_RANKS ? few : fy_malloc(count * sizeof *ranks);
    if (ranks != NULL)
        fy_sources_copy(&record->sources, ranks);
    else
        count = 0; /* these ranks learn of the end when they send or ask */
    entry->record = NULL;
    if (creator == fy_objects_of(f)->rank) {
        end_name(f, record->object, record->movement, ranks, count);
    } else {
        entry->dead = 1;
        fy_end_send(f, creator, record->object, record->movement, ranks, count);
    }
    if (ranks != few)
        free(ranks);
}

bool fy_entry_leaves(ferry *f, const fy_entry *entry)
{
    fy_object_state state = fy_record_state(f, entry->record);
    return state == FY_MIGRATING || state == FY_DEPARTED;
}

/* The object of `entry` will not come. Fails the messages that wait for it, and frees its record.
 */
static void give_up(ferry *f, fy_entry *entry, int error)
{
    fy_objects *objects = fy_objects_of(f);
    fy_record *record = entry->record;
    entry->record = NULL;
    fy_objects_of(f)->carried -= record->due;
    fy_queued_list_fail(f, &record->late, error);
    fy_record_destroy(objects, record);
}

bool fy_entry_doubt(ferry *f, fy_entry *entry)
{
    enum { LOOKS = 50 };
    fy_record *record = entry->record;
    int knows =
        record->due ? record->from : fy_peer_successor(f, fy_object_creator(record->object));
    if (fy_record_state(f, record) != FY_AWAITED || record->late.count == 0 ||
        !fy_peer_is_gone(f, knows) || fy_arrival_waits(f, record->object))
        return false;
    if (++record->doubts > LOOKS)
        give_up(f, entry, FERRY_EPEER);
    return entry->record != NULL;
}

/* On the creator: a rank reports that the object of the frame has ended. */
static fy_verdict hear_of_own_end(ferry *f, const fy_frame *frame)
{
    const fy_objects *objects = fy_objects_of(f);
    ferry_object object = {frame->words[0]};
    uint32_t count = (uint32_t)(frame->size_bytes / sizeof(fy_source));
    const fy_entry *entry = fy_entry_find(objects, object);
    if (entry != NULL && entry->record != NULL)
        return fy_entry_leaves(f, entry) ? FY_LEAVE : FY_TAKEN;
    for (uint32_t i = 0; i < count; i++)
        if (source_at(frame->data, i).rank_plus_1 - 1 >= (uint32_t)objects->ranks)
            return FY_TAKEN;
    end_name(f, object, (uint32_t)frame->words[1], frame->data, count);
    return FY_TAKEN;
}

/* On a rank that is not the creator: `source` reports that the object has ended. If `source` is the
 * creator, the report is final, and the successor to which this rank handed its entries must get it
 * too. Otherwise a message has bounced off `source`. */
static fy_verdict hear_of_end(ferry *f, int source, fy_entry *entry)
{
    fy_objects *objects = fy_objects_of(f);
    const ferry_object object = {entry->object};
    bool final = source == fy_object_creator(object) || source == fy_object_home(objects, object);
    if (entry->record != NULL && fy_entry_leaves(f, entry))
        return FY_LEAVE;
    if (entry->record != NULL && !(final && fy_record_state(f, entry->record) == FY_AWAITED))
        return FY_TAKEN;
    if (entry->record != NULL)
        give_up(f, entry, FERRY_ENOENT);
    fy_entry_seen(objects, entry);
    if (final && objects->told_successor != 0)
        fy_location_send(f, objects->told_successor - 1, object, FY_PLACE_NONE, entry->movement);
    if (final || !entry->hosted)
        fy_table_remove(&objects->directory, entry);
    else
        entry->dead = 1;
    return FY_TAKEN;
}

/* On the creator: `source` keeps messages for an object and asks whether the object can still come,
 * or knows it at a rank that is gone. The answer is that it has ended, or a newer place. */
static void ends_answer(ferry *f, int source, ferry_object object, uint32_t movement)
{
    const fy_objects *objects = fy_objects_of(f);
    const fy_entry *entry = fy_entry_find(objects, object);
    bool ended = entry != NULL && entry->dead;
    if (ended || (fy_object_is_ours(objects, object) && !is_alive(objects, object)))
        fy_location_send(f, source, object, FY_PLACE_NONE, movement);
    else if (entry != NULL && entry->guess != source && (int32_t)(entry->movement - movement) > 0)
        fy_location_send(f, source, object, entry->guess, entry->movement);
}

void fy_home_ask(ferry *f, ferry_object object, uint32_t movement)
{
    int home = fy_object_home(fy_objects_of(f), object);
    if (home != ferry_rank(f))
        fy_location_send(f, home, object, FY_PLACE_ASK, movement);
}

/* The program will install here an object that `source` uninstalled, and messages may wait for it.
 * Until then the main program of this rank does not wait for credit. If the object has been here
 * already, `source` learns that. It does not learn a newer place, which the object may not have
 * reached. */
static fy_verdict hear_of_carried(ferry *f, int source, ferry_object object, uint32_t movement)
{
    fy_objects *objects = fy_objects_of(f);
    fy_entry *entry = fy_entry_find(objects, object);
    if (entry != NULL && entry->record != NULL && fy_entry_leaves(f, entry))
        return FY_LEAVE;
    bool ended = entry != NULL ? entry->dead : fy_object_is_ours(objects, object);
    if (ended || (entry != NULL && (int32_t)(movement - entry->movement) <= 0)) {
        fy_location_send(f, source, object, ended ? FY_PLACE_NONE : objects->rank, movement);
        return FY_TAKEN;
    }
    if (fy_entry_make(objects, object, &entry) != 0)
        return FY_LEAVE;
    if (entry->record == NULL)
        entry->record = fy_record_create(objects, object);
    if (entry->record == NULL)
        return FY_LEAVE;
    if (fy_record_state(f, entry->record) != FY_AWAITED)
        return FY_TAKEN;
    entry->record->from = source;
    fy_objects_of(f)->carried += !entry->record->due;
    entry->record->due = true;
    fy_home_ask(f, object, movement);
    return FY_TAKEN;
}

fy_verdict fy_end_frame(ferry *f, int source, const fy_frame *frame)
{
    fy_objects *objects = fy_objects_of(f);
    ferry_object object = {frame->words[0]};
    int32_t place = (int32_t)(uint32_t)(frame->words[1] >> 32);
    if (place == FY_PLACE_ASK) {
        ends_answer(f, source, object, (uint32_t)frame->words[1]);
        return FY_TAKEN;
    }
    if (place == FY_PLACE_CARRIED)
        return hear_of_carried(f, source, object, (uint32_t)frame->words[1]);
    fy_entry *entry = fy_entry_find(objects, object);
    fy_verdict verdict = FY_TAKEN;
    bool home = fy_object_home(objects, object) == objects->rank;
    /* `source` was to send the object here, and will not. Or this rank has become the home since it
     * asked the last one. */
    if (entry != NULL && entry->record != NULL && (home || entry->record->from == source) &&
        fy_record_state(f, entry->record) == FY_AWAITED)
        give_up(f, entry, FERRY_ENOENT);
    if (home)
        verdict = hear_of_own_end(f, frame);
    else if (entry != NULL)
        verdict = hear_of_end(f, source, entry);
    if (place == FY_PLACE_LOST && verdict == FY_TAKEN)
        fy_log(f, "a message to object %016llx is lost: the object was destroyed",
               (unsigned long long)object.word);
    return verdict;
}

/* All that the sender of `entry`'s object sent has been handled, so the object never comes. The
 * entry stays as a tombstone until the creator, to which this rank reports the loss, confirms the
 * end. */
static void entry_lose(ferry *f, fy_entry *entry)
{
    fy_record *record = entry->record;
    fy_record about = {.object = record->object, .movement = entry->movement};
    (void)fy_sources_of(&about.sources, fy_objects_of(f)->rank);
    fy_log(f, "object %016llx is lost: rank %d, which was to send it here, has gone",
           (unsigned long long)record->object.word, record->from);
    give_up(f, entry, FERRY_EPEER);
    entry->hosted = 1;
    fy_object_bury(f, entry, &about);
}

/* If nobody has reported the object from where it went, this rank says that it is here: messages
 * come by this rank then. The place that it went to must not expect it from the home, which does
 * not know whether it can still come. */
void fy_home_tell(ferry *f, const fy_entry *entry)
{
    const fy_objects *objects = fy_objects_of(f);
    const ferry_object object = {entry->object};
    int home = fy_object_home(objects, object), place = fy_object_place(objects, object, entry);
    uint32_t movement = entry->movement;
    if (!entry->hosted || place < 0 || fy_peer_is_gone(f, place) || home == objects->rank)
        return;
    if (entry->record == NULL && entry->left != FY_SEEN) {
        place = objects->rank;
        movement -= FY_MOVE_STEP;
    }
    if (home != place)
        fy_location_send_as_work(f, home, object, place, movement);
}

void fy_directory_peer_gone(ferry *f, int rank, bool died)
{
    fy_objects *objects = fy_objects_of(f);
    (void)fy_arrivals_install(f);
    fy_link lost;
    fy_list_init(&lost);
    size_t index = 0;
    /* A leaving rank may have been told of an object by another one, which had sent it and leaves
     * too. */
    bool others_leave = fy_others_leave(f);
    for (fy_entry *entry; (entry = fy_table_next(&objects->directory, &index)) != NULL;) {
        fy_record *record = entry->record;
        if (entry->guess == rank)
            fy_entry_seen(objects, entry);
        bool awaited = record != NULL && fy_record_state(f, record) == FY_AWAITED;
        if (died && !awaited)
            fy_home_tell(f, entry);
        else if (died)
            fy_home_ask(f, record->object, entry->movement); /* the last home did not answer */
        bool orphaned =
            awaited && (record->from == rank || (!record->due && fy_peer_is_gone(f, record->from)));
        if (!orphaned || (others_leave && !record->due && !(died && record->from == rank)))
            continue;
        if (record->due && !died)
            record->from = objects->rank; /* the program still brings it */
        else if (!(record->due && record->late.count == 0) && !fy_arrival_waits(f, record->object))
            fy_list_insert(&lost, &record->link);
    }
    for (fy_link *link; (link = fy_list_pop(&lost)) != NULL;)
        entry_lose(f, fy_entry_find(objects, ((fy_record *)(void *)link)->object));
}
