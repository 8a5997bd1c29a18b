/* Scheduling: what a scheduler may ask and order, from inside its functions. */
#include <stdlib.h>
#include <string.h>

#include "balance/balance.h"
#include "balance/schedulers/schedulers.h"
#include "base/alloc.h"
#include "core/control.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "object/moves.h"

int ferry_scheduling_rank(const ferry_scheduling *s)
{
    return s->rank;
}

int ferry_scheduling_ranks(const ferry_scheduling *s)
{
    return s->ranks;
}

bool ferry_scheduling_accepts(const ferry_scheduling *s, int rank)
{
    if (rank < 0 || rank >= s->ranks || rank == s->rank)
        return false;
    return s->present == NULL || (s->present[rank / 64] >> rank % 64 & 1) != 0;
}

int ferry_scheduling_acceptor_count(const ferry_scheduling *s)
{
    return s->present_count;
}

int ferry_scheduling_acceptor(const ferry_scheduling *s, int distance)
{
    if (distance < 1 || distance > s->present_count)
        return -1;
    return s->present == NULL ? (int)(((int64_t)s->rank + distance) % s->ranks)
                              : s->ring[distance - 1];
}

uint64_t ferry_scheduling_now(const ferry_scheduling *s)
{
    return s->port->ops->host.now(s->port);
}

bool ferry_scheduling_is_on(const ferry_scheduling *s)
{
    return s->on;
}

/* `started` changes only while there is no helper. */
bool ferry_scheduling_preempts(const ferry_scheduling *s)
{
    return s->started;
}

uint64_t ferry_scheduling_random(ferry_scheduling *s)
{
    return fy_random_next(&s->random);
}

/* Makes room for one more note, by moving them to the front or doubling the array. */
static bool notes_reserve(ferry_scheduling *s)
{
    if (s->note_first + s->note_count < s->note_capacity)
        return true;
    if (s->note_first > 0) {
        for (uint32_t i = 0; i < s->note_count; i++)
            s->notes[i] = s->notes[s->note_first + i];
        s->note_first = 0;
        return true;
    }
    fy_note *larger = fy_double(s->notes, &s->note_capacity, 64, sizeof *larger);
    if (larger == NULL)
        return false;
    s->notes = larger;
    return true;
}

__attribute__((cold)) void fy_scheduler_misuse(ferry_scheduling *s, fy_misuse kind, uint64_t object,
                                               int rank)
{
    const fy_bundle *bundle;
    if ((s->misuses >> kind & 1) == 0)
        fy_log(s->f,
               fy_bundle_find(&bundle) == 0
                   ? bundle->misuses[kind]
                   : "scheduler %s misuses the interface (rank %d, object %016llx)",
               s->scheduler->name, rank, (unsigned long long)object);
    s->misuses |= (uint8_t)(1 << kind);
}

enum { RESTLESS_WORDS = 16384, RESTLESS_NS = 1000 * 1000 * 1000 };

/* If a scheduler answers each refusal with another request, all ranks stay busy. A simulation of it
 * seems never to end, because a message takes almost no virtual time. */
static __attribute__((noinline, cold)) void look_for_rest(ferry_scheduling *s)
{
    uint64_t now = ferry_scheduling_now(s), before = s->restless_ns;
    s->restless_ns = now;
    if (s->restless != RESTLESS_WORDS && now - before <= RESTLESS_NS)
        fy_scheduler_misuse(s, FY_MISUSE_RESTLESS, 0, s->rank);
}

/* Adds a note to `rank`, without its words. NULL: there is no memory. */
static fy_note *note_add(ferry_scheduling *s, uint8_t kind, int rank)
{
    if (!notes_reserve(s))
        return NULL;
    fy_note *note = &s->notes[s->note_first + s->note_count++];
    note->rank = rank;
    note->kind = kind;
    note->quiet = s->quietly;
    return note;
}

bool fy_travel_answer(ferry *f, int rank, uint64_t count)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    fy_note *note = note_add(s, FY_KIND_TOOK, rank);
    if (note == NULL)
        return false;
    note->words[0] = count;
    fy_scheduler_rouse(s);
    return true;
}

void ferry_scheduling_send(ferry_scheduling *s, int rank,
                           const uint64_t words[FERRY_SCHEDULER_WORDS])
{
    if (rank < 0 || rank >= s->ranks || rank == s->rank) {
        fy_scheduler_misuse(s, FY_MISUSE_WORD, 0, rank);
        return;
    }
    fy_note *note = note_add(s, FY_KIND_SCHEDULER, rank);
    if (note == NULL) {
        fy_log(s->f, "no memory for a message of scheduler %s to rank %d", s->scheduler->name,
               rank);
        return;
    }
    for (int i = 0; i < FERRY_SCHEDULER_WORDS; i++)
        note->words[i] = words[i];
    memcpy(&note->words[FERRY_SCHEDULER_WORDS], &s->load, sizeof s->load);
    if (++s->restless % RESTLESS_WORDS == 0)
        look_for_rest(s);
}

void fy_scheduling_tell(ferry_scheduling *s, int rank, const uint64_t words[FERRY_SCHEDULER_WORDS],
                        bool quietly)
{
    s->quietly = quietly;
    ferry_scheduling_send(s, rank, words);
    s->quietly = false;
}

void fy_scheduling_hurry(ferry_scheduling *s)
{
    if (s->serving && !s->by_helper)
        s->port->ops->transport.wake(s->port, FY_HELPER);
}

uint64_t fy_scheduling_taken_ns(const ferry_scheduling *s)
{
    /* relaxed: counts */
    return atomic_load_explicit(&s->flush_ns, memory_order_relaxed) +
           (s->by_helper ? s->port->ops->host.cpu(s->port)
                         : atomic_load_explicit(&s->helper_ns, memory_order_relaxed));
}

/* The object does not go, and stays here. If the scheduler has just refused to keep it, its tasks
 * run without being asked for. */
static void keep_here(ferry_scheduling *s, fy_record *record, int rank)
{
    if (s->on && (rank < 0 || rank >= s->ranks))
        fy_scheduler_misuse(s, FY_MISUSE_RANK, record->object.word, rank);
    if (!record->returned) {
        /* The application thread gives it back to the scheduler, or moves it in place before. */
        record->target = s->on && rank == s->rank ? rank : -1;
        fy_record_set_down(s->f, record, FY_RETURNED);
    } else if (record->item.pending != 0) {
        fy_scheduler_misuse(s, FY_MISUSE_AGAIN, record->object.word, rank);
        record->state = FY_PINNED;
        fy_list_insert(&s->refused, &record->link);
    }
}

void ferry_scheduling_migrate(ferry_scheduling *s, ferry_schedulable *item, int rank)
{
    fy_record *record = fy_record_of(item);
    if (record->state != FY_RESTING || item->queued) {
        fy_scheduler_misuse(s, item->queued ? FY_MISUSE_QUEUED : FY_MISUSE_STRANGER,
                            record->object.word, rank);
        return;
    }
    s->load -= item->load;
    s->tasks -= item->pending;
    if (s->on && s->counted)
        fy_reason_keep(s, item->object, rank);
    if (s->on && ferry_scheduling_accepts(s, rank)) {
        record->state = FY_MIGRATING;
        record->target = rank;
        fy_list_insert(&s->outbound, &record->link);
        record->travels = fy_travel_begin(s, record);
        return;
    }
    keep_here(s, record, rank);
}

double ferry_scheduling_granularity(ferry_scheduling *s, const ferry_schedulable *item)
{
    const fy_record *record = fy_record_of((ferry_schedulable *)(uintptr_t)item);
    if (record->type->ops.granularity != NULL)
        return record->type->ops.granularity(s->f, record->data);
    return record->affinity != NULL ? record->affinity->granularity : 0;
}

double ferry_scheduling_priority(ferry_scheduling *s, const ferry_schedulable *item, int rank)
{
    const fy_record *record = fy_record_of((ferry_schedulable *)(uintptr_t)item);
    uint32_t there = fy_affinity_there(record->affinity, rank);
    if (record->type->ops.priority != NULL)
        return record->type->ops.priority(s->f, record->data, rank,
                                          ferry_scheduling_granularity(s, item), item->load, there);
    if (record->affinity != NULL && (uint32_t)rank < record->affinity->priority_count)
        return record->affinity->priorities[rank];
    return item->load * (1 + there);
}

uint64_t ferry_scheduling_move_ns(const ferry_scheduling *s)
{
    return s->move_ns;
}

uint64_t fy_scheduling_word_ns(ferry_scheduling *s)
{
    s->words_timed = true;
    return s->word_ns;
}

void ferry_scheduling_wake(ferry_scheduling *s, uint64_t time_ns)
{
    s->wake_ns = time_ns;
}

void fy_balance_alarm(ferry_scheduling *s, uint64_t now_ns)
{
    if (s->wake_ns > (now_ns != 0 ? now_ns : s->port->ops->host.now(s->port)))
        return;
    s->wake_ns = 0;
    if (s->scheduler->wake == NULL)
        return;
    uint64_t entered = fy_scheduler_enter(s, FY_ON_TIME);
    s->scheduler->wake(s, s->state);
    fy_scheduler_leave(s, entered);
}

/* Returns whether the note has gone, or is lost. Otherwise it must wait for room. */
static bool send_note(ferry_scheduling *s, fy_thread thread, const fy_note *note)
{
    fy_frame frame;
    fy_frame_begin(&frame, note->kind, 0, FY_FRAME_WORDS);
    fy_words_copy(frame.words, note->words, FY_FRAME_WORDS);
    frame.quiet = note->quiet;
    int error = thread == FY_APP && s->started
                    ? fy_send_now(s->f, note->rank, &frame)
                    : fy_send_control(s->f, thread, note->rank, &frame, false);
    if (error == FERRY_EAGAIN)
        return false;
    if (error != 0 && error != FERRY_EPEER)
        fy_log(s->f, "a message of scheduler %s to rank %d is lost: %s", s->scheduler->name,
               note->rank, ferry_strerror(error));
    return true;
}

/* Returns what it took per object, in ns. `*answered`: as for fy_records_ship. */
static uint64_t ship(ferry_scheduling *s, fy_thread thread, fy_record *const *records, int count,
                     int *answered)
{
    uint64_t begun_ns = ferry_scheduling_now(s);
    /* Once shipped, the records belong to the application thread and may be freed. */
    int target = records[0]->target;
    int error = fy_records_ship(s->f, thread, records, count, answered);
    if (error != 0 && error != FERRY_ESYSTEM) /* the store has logged that */
        fy_log(s->f, "objects stay, rank %d cannot get them: %s", target, ferry_strerror(error));
    if (thread == FY_HELPER)
        s->port->ops->transport.wake(s->port, FY_APP);
    return (ferry_scheduling_now(s) - begun_ns) / (unsigned)count;
}

/* Takes the oldest object that is to be shipped, and those after it that go to the same rank. [lock
 * held] */
static int take_outbound(ferry_scheduling *s, fy_record *records[FY_SHIP_MAX])
{
    int count = 0;
    for (fy_link *link = s->outbound.next, *next; link != &s->outbound && count < FY_SHIP_MAX;
         link = next) {
        fy_record *record = (fy_record *)(void *)link;
        next = link->next;
        if (count != 0 && record->target != records[0]->target)
            continue;
        fy_list_remove(link);
        records[count++] = record;
    }
    return count;
}

/* Ends the sending of the first note, which took so long; 0: unknown. If that is long, this thread
 * has probably lost its processor. [lock held] */
static void note_end(ferry_scheduling *s, bool gone, uint64_t took_ns)
{
    s->sending = false;
    if (!gone)
        return;
    if (s->word_ns == 0)
        s->word_ns = took_ns;
    else if (took_ns < s->word_ns)
        s->word_ns = (s->word_ns + took_ns) / 2;
    else
        s->word_ns += s->word_ns / 16;
    s->note_first++;
    if (--s->note_count == 0)
        s->note_first = 0;
}

/* Notes go one after the other, in their order. While one thread sends them, the other leaves them
 * to it. If the application thread finds no room, the helper sends what is left: it can wait. If
 * the helper is to stop, it leaves them to the application thread: while it waited for room it
 * would take in words of others, and note answers without end. */
void fy_balance_flush(ferry_scheduling *s, fy_thread thread)
{
    bool has_note = false, gone = true;
    int travelling = 0, answered = 0;
    uint64_t since_ns = 0;
    for (uint64_t move_ns = 0, word_ns = 0;;) {
        fy_note note = {0};
        fy_record *records[FY_SHIP_MAX];
        fy_control_lock(s->f);
        if (has_note)
            note_end(s, gone, word_ns);
        has_note = gone && !s->sending && !s->stop && s->note_count != 0;
        if (has_note) {
            s->sending = true;
            note = s->notes[s->note_first];
        }
        fy_travel_end(s, travelling - answered);
        travelling = answered = 0;
        int count = take_outbound(s, records);
        for (int i = 0; i < count; i++)
            travelling += records[i]->travels;
        bool timed = s->words_timed;
        if (move_ns != 0)
            s->move_ns = s->move_ns == 0 ? move_ns : (3 * s->move_ns + move_ns) / 4;
        move_ns = 0;
        s->travel.asked = s->travel.asked && !fy_list_empty(&s->outbound);
        fy_control_unlock(s->f);
        if (since_ns == 0 && thread == FY_APP && (has_note || count != 0))
            since_ns = ferry_scheduling_now(s);
        if (has_note) {
            uint64_t begun_ns = timed ? ferry_scheduling_now(s) : 0;
            gone = send_note(s, thread, &note);
            word_ns = timed ? ferry_scheduling_now(s) - begun_ns : 0;
        }
        if (count != 0)
            move_ns = ship(s, thread, records, count, &answered);
        if (!has_note && count == 0)
            break;
    }
    if (since_ns != 0) /* relaxed: a count, which the application thread alone writes */
        atomic_fetch_add_explicit(&s->flush_ns, ferry_scheduling_now(s) - since_ns,
                                  memory_order_relaxed);
    if (!gone)
        s->port->ops->transport.wake(s->port, FY_HELPER);
}

fy_verdict fy_scheduler_frame(ferry *f, int source, const fy_frame *frame)
{
    ferry_scheduling *s = fy_scheduling_of(f);
    if (frame->word_count != FY_FRAME_WORDS || s->scheduler == NULL || source == s->rank)
        return FY_TAKEN;
    uint64_t entered = fy_scheduler_enter(s, FY_ON_WORD);
    s->asker = source;
    memcpy(&s->asker_load, &frame->words[FERRY_SCHEDULER_WORDS], sizeof s->asker_load);
    s->scheduler->message(s, s->state, source, frame->words);
    s->asker = -1;
    fy_scheduler_leave(s, entered);
    return FY_TAKEN;
}
