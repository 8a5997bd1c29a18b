/* Names: from an index to the name of its object, and messages that wait for this name. home.c has
 * the part of the home.
 *
 * A rank asks the home (FY_ASK). The home answers with the name of the element, or says that the
 * element was removed. If the index has had no element yet, the home notes the asking rank and
 * answers when there is one. When an element is removed, the home tells all ranks that had its name
 * as an answer (FY_FORGET).
 *
 * Messages wait in a queue per index, which is freed when it is empty. A removal waits in its
 * place among them. When its turn comes, this rank sends the removal to the element, tells the home
 * (FY_UNBIND), and asks again for the messages after it.
 *
 * Messages, removals and insertions of one rank to one index take effect in the order of the calls.
 * The home takes what a rank sends in its order: FY_ASK, removals, insertions.
 *
 * If a removal waits in the queue, a later insertion waits after it. If that removal waits because
 * the index has had no element, the insertion would wait forever. So the rank tells the home, and
 * the home answers that there is none: the removal ends, and the messages before it fail.
 *
 * Any other insertion goes to the home immediately, and has a mark in the queue if there is one. If
 * the home answers that there is no element, the messages before the mark fail. For those after it
 * the rank asks again, whatever the answer is. A rank that inserts an index forgets the name that
 * it knows: that element may have ended before the insertion. Or a removal that follows the
 * insertion may end it, before the home gets the insertion.
 *
 * An insertion by the home itself is a request too, since it calls `make`. Until it runs, all that
 * follows waits in the queue. If the index has an element already, there is no request, and the
 * insertion has no effect.
 *
 * After a death, or without memory, the home may make a new element before the last one of the
 * index has received its removal, and both may move. So the home numbers the elements of an index
 * (`incarnation`), and no rank replaces a name by an earlier one. Otherwise an element that removes
 * its own index could remove its predecessor instead of itself. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/state.h"
#include "core/fail.h"
#include "core/operation.h"
#include "core/run.h"
#include "core/work.h"

fy_queue_entry *fy_queue_entry_make(const ferry_message *message)
{
    fy_queue_entry *w = fy_malloc(sizeof *w + message->size_bytes);
    if (w == NULL)
        return NULL;
    *w = (fy_queue_entry){.message = *message};
    w->message.data = message->size_bytes != 0 ? w + 1 : NULL;
    if (message->size_bytes != 0)
        memcpy(w + 1, message->data, message->size_bytes);
    return w;
}

/* Whether `w` is a removal, or an insertion that was not sent. Insertions that come later wait
 * after it. */
static bool is_change(const fy_queue_entry *w)
{
    return w->removes || (w->inserts && !w->sent);
}

static void queue_append(ferry_collection *c, fy_name_queue *q, fy_queue_entry *w)
{
    if (q->head == NULL)
        q->head = w;
    else
        q->tail->next = w;
    q->tail = w;
    q->changes += is_change(w);
    q->running += w->runs;
    c->held++;
}

/* Appends a mark: if there is no element since number `incarnation`, later entries do not fail with
 * those before it. `runs`: until it runs, they wait. False: no memory. */
static bool queue_mark(ferry_collection *c, fy_name_queue *q, uint64_t incarnation, bool runs)
{
    const ferry_message mark = {.words = {incarnation}};
    fy_queue_entry *w = fy_queue_entry_make(&mark);
    if (w == NULL)
        return false;
    w->inserts = w->sent = true;
    w->runs = runs;
    queue_append(c, q, w);
    return true;
}

void fy_forget_take(ferry_collection *c, uint64_t key, uint64_t object)
{
    fy_known *known = fy_table_find(&c->known, key);
    if (known != NULL && known->queue == NULL && known->object == object)
        fy_table_remove(&c->known, known);
}

void fy_known_refresh(ferry_collection *c, const fy_element *e)
{
    fy_known *known = fy_table_find(&c->known, e->key);
    if (known == NULL || known->here || e->incarnation <= known->incarnation)
        return;
    known->object = e->user.object.word;
    known->incarnation = e->incarnation;
    if (known->queue != NULL && known->queue->asked) /* the answer may be older than this element */
        (void)queue_mark(c, known->queue, e->incarnation, false);
}

/* Removes the first message of a queue: it was sent, or `error` says why it will not be. */
static void waiting_end(ferry_collection *c, fy_name_queue *q, int error)
{
    fy_queue_entry *w = q->head;
    char text[FY_TEXT_BYTES];
    q->head = w->next;
    q->changes -= is_change(w);
    q->running -= w->runs;
    c->held--;
    if (error == FERRY_ENOENT && w->op == 0 && !w->removes)
        fy_log(c->f, "a message to element %s of %s is lost: the element was removed",
               fy_index_text(c, fy_key_index(c, q->key), text), c->name);
    if (error != 0 && w->op != 0)
        fy_op_end(c->f, w->op, error);
    free(w);
}

static void sent_well(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)receipt;
    fy_op_end(f, (uint32_t)(uintptr_t)arg, 0);
}

static void sent_badly(ferry *f, void *arg, const ferry_receipt *receipt)
{
    fy_op_end(f, (uint32_t)(uintptr_t)arg, receipt->error);
}

static int send_waiting(ferry *f, ferry_object object, const fy_queue_entry *w)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    void *arg = (void *)(uintptr_t)w->op; // NOLINT: a number
    track.completed = sent_well;
    track.failed = sent_badly;
    track.completed_arg = track.failed_arg = arg;
    track.arrival = w->arrival;
    return ferry_object_send(f, object, &w->message, w->op != 0 ? &track : NULL);
}

/* Whether an insertion by this rank, the home of the index, has not run yet. */
static bool is_inserting(const ferry_collection *c, uint64_t key)
{
    const fy_home_entry *bound = c->inserting != 0 ? fy_table_find(&c->bound, key) : NULL;
    return bound != NULL && bound->inserting != 0;
}

static int tell_home(ferry_collection *c, uint64_t key, uint64_t ask)
{
    int home = fy_index_home(c, fy_key_index(c, key));
    int error = fy_collection_tell(c, home, FY_ASK, key, ask, 0, NULL, 0);
    if (error != 0 && error != FERRY_ENOMEM)
        fy_answer_take(c, key, 0, UINT64_MAX); /* the home is dead: as if the element was removed */
    return error;
}

void fy_unbind(ferry_collection *c, uint64_t key, uint64_t object, bool ended)
{
    char text[FY_TEXT_BYTES];
    int home = fy_index_home(c, fy_key_index(c, key));
    if (fy_collection_tell(c, home, FY_UNBIND, key, object, ended, NULL, 0) == FERRY_ENOMEM)
        fy_stray(c, "rank %d was not told of the end of element %s: no memory", home,
                 fy_index_text(c, fy_key_index(c, key), text));
}

/* Counts a queue as work: it waits for room or memory alone. */
static void queue_count(ferry_collection *c, fy_name_queue *q, bool counted)
{
    if (q->counted == counted)
        return;
    q->counted = counted;
    if (counted) {
        fy_work_created(c->f, 1);
        fy_list_insert(&c->blocked, &q->link);
    } else {
        fy_work_finished(c->f, 1);
        fy_list_remove(&q->link);
    }
}

/* Asks for the name, for the queue of `known`. After an insertion here, fy_names_inserted asks.
 * Without memory the next poll asks. */
static void names_ask(ferry_collection *c, const fy_known *known)
{
    fy_name_queue *q = known->queue;
    if (q->asked || is_inserting(c, known->key))
        return;
    q->asked = true;
    if (tell_home(c, known->key, known->incarnation != 0 ? FY_ASK_AGAIN : 0) != FERRY_ENOMEM)
        return;
    q->asked = false;
    queue_count(c, q, true);
}

static int insertion_send(ferry_collection *c, uint64_t key, const ferry_message *request)
{
    int home = fy_index_home(c, fy_key_index(c, key));
    fy_home_entry *bound = home == c->rank ? fy_bound_make(c, key) : NULL;
    if (home == c->rank && bound == NULL)
        return fy_fail(c->f, FERRY_ENOMEM, "collection_insert: no memory");
    if (home != c->rank)
        return ferry_request_send(c->f, home, request, NULL);
    bound->inserting++; /* before the call, which may poll */
    c->inserting++;
    int error = ferry_request_send(c->f, home, request, NULL);
    if (error != 0) {
        ((fy_home_entry *)fy_table_find(&c->bound, key))->inserting--;
        c->inserting--;
    }
    return error;
}

/* Sends queued messages while their name is known and there is room. Returns how many were sent. */
static int queue_flush(ferry_collection *c, fy_known *known)
{
    fy_name_queue *q = known->queue;
    uint64_t object = known->object;
    int sent = 0;
    while (q->head != NULL && (object != 0 || q->head->inserts) && !q->head->runs) {
        bool removes = q->head->removes, inserts = q->head->inserts, mark = q->head->sent;
        bool inserted = mark && q->head->message.words[0] == UINT64_MAX;
        int error = mark      ? 0
                    : inserts ? insertion_send(c, q->key, &q->head->message)
                              : send_waiting(c->f, (ferry_object){object}, q->head);
        if (error == FERRY_EAGAIN || error == FERRY_ENOMEM) {
            queue_count(c, q, true);
            return sent;
        }
        sent++;
        waiting_end(c, q, error);
        if (removes)
            fy_unbind(c, q->key, object, false);
        q->renews = inserted;
        if (removes || inserted || (inserts && !mark))
            object = 0;
        else if (error == FERRY_ENOENT && !inserts)
            object = 0; /* the element is gone; a later one may have the index */
    }
    known->object = object;
    queue_count(c, q, false);
    return sent;
}

static int known_flush(ferry_collection *c, fy_known *known)
{
    fy_name_queue *q = known->queue;
    fy_nowait_begin(c->f);
    int sent = queue_flush(c, known);
    fy_nowait_end(c->f);
    if (q->counted)
        return sent;
    if (q->head != NULL) {
        names_ask(c, known);
        return sent;
    }
    known->queue = NULL;
    if ((known->object == 0 && !q->renews) || known->here)
        fy_table_remove(&c->known, known);
    free(q);
    return sent;
}

/* The index has no element since number `incarnation`: messages before the next insertion fail, or
 * before a later element has come to this rank. */
static void queue_fail(ferry_collection *c, fy_name_queue *q, uint64_t incarnation)
{
    const fy_queue_entry *w;
    while ((w = q->head) != NULL &&
           (!w->inserts || (w->sent && w->message.words[0] <= incarnation)))
        waiting_end(c, q, w->inserts ? 0 : FERRY_ENOENT);
}

void fy_answer_take(ferry_collection *c, uint64_t key, uint64_t object, uint64_t incarnation)
{
    fy_known *known = fy_table_find(&c->known, key);
    if (known == NULL || known->queue == NULL || known->queue->counted)
        return;
    known->queue->asked = false;
    if (object == 0)
        queue_fail(c, known->queue, incarnation);
    /* A later element may have come to this rank while the answer was in flight. */
    if (known->object == 0 || known->incarnation <= incarnation) {
        known->object = object;
        known->incarnation = incarnation;
    }
    (void)known_flush(c, known);
}

int fy_queues_flush(ferry_collection *c)
{
    int count = 0;
    fy_link *last = c->blocked.prev, *link = c->blocked.next, *next;
    for (; !fy_list_empty(&c->blocked); link = next) {
        bool ends = link == last;
        next = link->next;
        fy_known *known = fy_table_find(&c->known, ((fy_name_queue *)(void *)link)->key);
        count += known_flush(c, known);
        if (ends)
            break;
    }
    return count;
}

/* An index whose queue waits for an answer of `rank`; NULL: there is none. */
static fy_known *next_unanswered(ferry_collection *c, int rank)
{
    size_t index = 0;
    for (fy_known *known; (known = fy_table_next(&c->known, &index)) != NULL;)
        if (known->queue != NULL && !known->queue->counted &&
            fy_index_home(c, fy_key_index(c, known->key)) == rank)
            return known;
    return NULL;
}

void fy_queues_peer_gone(ferry_collection *c, int rank)
{
    for (fy_known *known; (known = next_unanswered(c, rank)) != NULL;) {
        while (known->queue->head != NULL)
            waiting_end(c, known->queue, FERRY_EPEER);
        free(known->queue);
        fy_table_remove(&c->known, known);
    }
}

void fy_queues_fini(ferry_collection *c)
{
    size_t index = 0;
    for (fy_known *known; (known = fy_table_next(&c->known, &index)) != NULL;)
        if (known->queue != NULL) {
            while (known->queue->head != NULL)
                waiting_end(c, known->queue, FERRY_ECANCELED);
            queue_count(c, known->queue, false);
            free(known->queue);
        }
    fy_table_fini(&c->known);
}

/* The queue of `key`. Sets `*fresh` if it is new. NULL: no memory. */
static fy_name_queue *queue_make(ferry_collection *c, uint64_t key, bool *fresh)
{
    void *slot;
    if (fy_table_insert(&c->known, key, &slot) != 0)
        return NULL;
    fy_known *known = slot;
    *fresh = known->queue == NULL;
    if (known->queue == NULL) {
        known->queue = fy_calloc(1, sizeof *known->queue);
        if (known->queue == NULL)
            return NULL;
        fy_list_init(&known->queue->link);
        known->queue->key = key;
        known->here = fy_index_home(c, fy_key_index(c, key)) == c->rank;
    }
    return known->queue;
}

/* The call that has made the message, for error texts. */
static const char *call_of(const ferry_collection *c, const ferry_message *message)
{
    const fy_collections *all = fy_collections_of(c->f);
    uint16_t handler = message->handler.index;
    return handler == all->remove.index   ? "collection_remove"
           : handler == all->insert.index ? "collection_insert"
           : handler == all->step.index   ? "step_send"
                                          : "collection_send";
}

static int enqueue(ferry_collection *c, uint64_t key, const ferry_message *message,
                   const ferry_track *track)
{
    bool fresh;
    uint32_t op = 0;
    fy_name_queue *q = queue_make(c, key, &fresh);
    fy_queue_entry *w = q != NULL ? fy_queue_entry_make(message) : NULL;
    int error = w == NULL ? FERRY_ENOMEM : 0;
    if (error == 0 && track != NULL)
        error = fy_op_start(c->f, track, c->rank, message->tag, message->size_bytes, &op);
    if (error != 0) {
        free(w);
        if (q != NULL && q->head == NULL && fresh)
            fy_answer_take(c, key, 0, UINT64_MAX); /* frees the empty queue */
        return error == FERRY_ENOMEM ? fy_fail(c->f, error, "%s: no memory for %zu bytes",
                                               call_of(c, message), message->size_bytes)
                                     : error;
    }
    if (op != 0) {
        const fy_op_about about = {.handler = message->handler,
                                   .local_address = (void *)(uintptr_t)message->data};
        fy_op_describe(c->f, op, &about);
        fy_op_submitted(c->f, op);
        fy_op_lazy(c->f, op);
        w->op = op;
        w->arrival = track->size == sizeof *track && track->arrival;
    }
    const fy_collections *all = fy_collections_of(c->f);
    w->removes = message->handler.index == all->remove.index;
    w->inserts = message->handler.index == all->insert.index;
    queue_append(c, q, w);
    if (fresh)
        names_ask(c, fy_table_find(&c->known, key));
    return 0;
}

/* Whether a removal is the first change of the queue, which has one: no insertion comes before. */
static bool removal_leads(const fy_name_queue *q)
{
    const fy_queue_entry *w = q->head;
    while (!w->removes && !w->inserts)
        w = w->next;
    return w->removes;
}

static uint64_t known_name(const ferry_collection *c, uint64_t key, const fy_known *known,
                           bool *gone)
{
    *gone = false;
    if (known != NULL && known->queue != NULL)
        return 0;
    if (known != NULL && !known->here)
        return known->object;
    const fy_home_entry *bound = fy_table_find(&c->bound, key);
    if (bound == NULL || bound->inserting != 0)
        return 0;
    *gone = bound->gone != 0 && bound->object == 0 && bound->leaving == NULL;
    return bound->object;
}

int fy_names_send(ferry_collection *c, uint64_t key, const ferry_message *message,
                  const ferry_track *track)
{
    bool gone;
    char text[FY_TEXT_BYTES];
    fy_known *known = fy_table_find(&c->known, key);
    uint64_t object = known_name(c, key, known, &gone);
    if (gone)
        return fy_fail(c->f, FERRY_ENOENT, "%s: element %s of %s was removed", call_of(c, message),
                       fy_index_text(c, fy_key_index(c, key), text), c->name);
    if (object != 0) {
        bool removes = message->handler.index == fy_collections_of(c->f)->remove.index;
        int error = ferry_object_send(c->f, (ferry_object){object}, message, track);
        if (error != FERRY_ENOENT && !(error == 0 && removes))
            return error;
        /* The call may have polled. */
        known = fy_table_find(&c->known, key);
        if (known != NULL && known->queue == NULL && known->object == object)
            fy_table_remove(&c->known, known);
        fy_unbind(c, key, object, false);
        if (error == 0)
            return 0;
    }
    return enqueue(c, key, message, track);
}

/* Clears `runs` of the first or the last mark if there are more of them than insertions that have
 * not run. These run in their order, and the queue has marks of the last ones. */
static void mark_end(const ferry_collection *c, const fy_known *known, bool last)
{
    const fy_home_entry *bound = fy_table_find(&c->bound, known->key);
    fy_name_queue *q = known->queue;
    fy_queue_entry *mark = NULL;
    if (q->running == 0 || q->running <= bound->inserting)
        return;
    for (fy_queue_entry *w = q->head; w != NULL && (mark == NULL || last); w = w->next)
        if (w->runs)
            mark = w;
    mark->runs = false;
    q->running--;
}

/* Goes on with what has waited for an insertion, which has run or failed. */
static void insertion_end(ferry_collection *c, uint64_t key, bool failed)
{
    const fy_known *known = fy_table_find(&c->known, key);
    if (known == NULL || known->queue == NULL)
        return;
    mark_end(c, known, failed);
    if (known->queue->head != NULL && !known->queue->counted)
        names_ask(c, known);
}

/* Whether this rank is the home and the index has an element, which has not ended. */
static bool exists_here(const ferry_collection *c, uint64_t key)
{
    int rank;
    const fy_home_entry *bound = fy_table_find(&c->bound, key);
    return bound != NULL && bound->object != 0 &&
           ferry_object_locate(c->f, (ferry_object){bound->object}, &rank) != FERRY_ENOENT;
}

/* Whether the queue has no name, and the home was not asked for want of memory. */
static bool lacks_ask(const ferry_collection *c, const fy_known *known)
{
    const fy_name_queue *q = known != NULL ? known->queue : NULL;
    return q != NULL && q->counted && !q->asked && known->object == 0 && !q->head->inserts &&
           !is_inserting(c, known->key);
}

/* Takes back the last entry, which is not the only one. */
static void queue_shorten(ferry_collection *c, fy_name_queue *q)
{
    fy_queue_entry *last = q->tail;
    q->tail = q->head;
    while (q->tail->next != last)
        q->tail = q->tail->next;
    q->tail->next = NULL;
    q->changes -= is_change(last);
    q->running -= last->runs;
    c->held--;
    free(last);
}

/* Lets the insertion wait after the removal or insertion that waits in the queue. */
static int insert_later(ferry_collection *c, const fy_known *known, const ferry_message *request)
{
    const uint64_t key = known->key;
    const bool leads = removal_leads(known->queue);
    int error = enqueue(c, key, request, NULL);
    known = fy_table_find(&c->known, key);
    if (error != 0 || !leads || known == NULL || known->queue == NULL || known->queue->counted ||
        tell_home(c, key, FY_ASK_INSERTS) != FERRY_ENOMEM)
        return error;
    queue_shorten(c, known->queue);
    return fy_fail(c->f, FERRY_ENOMEM, "collection_insert: no memory to tell the home");
}

int fy_names_insert(ferry_collection *c, uint64_t key, const ferry_message *request, bool *exists)
{
    fy_known *known = fy_table_find(&c->known, key);
    fy_name_queue *q = known != NULL ? known->queue : NULL;
    if (lacks_ask(c, known)) { /* the home must hear of the messages before it gets the insertion */
        (void)known_flush(c, known);
        known = fy_table_find(&c->known, key);
        q = known != NULL ? known->queue : NULL;
    }
    if (lacks_ask(c, known))
        return fy_fail(c->f, FERRY_ENOMEM, "collection_insert: no memory to ask for a name");
    *exists = q == NULL && exists_here(c, key);
    if (*exists)
        return 0;
    if (q != NULL && q->changes != 0)
        return insert_later(c, known, request);
    if (q != NULL && !queue_mark(c, q, UINT64_MAX, known->here))
        return fy_fail(c->f, FERRY_ENOMEM, "collection_insert: no memory");
    if (q == NULL && known != NULL)
        known->object = 0; /* what follows asks again */
    int error = insertion_send(c, key, request);
    if (error != 0)
        insertion_end(c, key, true);
    return error;
}

void fy_names_inserted(ferry_collection *c, uint64_t key)
{
    fy_home_entry *bound = fy_table_find(&c->bound, key);
    bound->inserting--;
    c->inserting--;
    insertion_end(c, key, false);
}
