/* The home of an index: it makes the element, knows its name, and tells the ranks that ask.
 *
 * When a rank removes the element, the home forgets its name at once, but the removal is still on
 * its way, behind earlier messages. Until the element has ended, insertions and ranks that ask
 * wait, in the order in which they came. So an index never has two elements, and messages of any
 * rank to it keep their order. A rank that asked before an insertion learns that there is no
 * element. After a death nobody may tell the end; then the home goes on. */
#include <stdlib.h>

#include "base/alloc.h"
#include "collection/state.h"
#include "core/fail.h"
#include "core/run.h"
#include "core/work.h"

fy_home_entry *fy_bound_make(ferry_collection *c, uint64_t key)
{
    void *slot = NULL;
    return fy_table_insert(&c->bound, key, &slot) == 0 ? slot : NULL;
}

/* Returns 0 or FERRY_ENOMEM. A rank that has gone needs no name. */
static int tell_name(ferry_collection *c, int rank, uint64_t key, uint64_t object,
                     uint64_t incarnation)
{
    int error = fy_collection_tell(c, rank, FY_ANSWER, key, object, incarnation, NULL, 0);
    return error == FERRY_ENOMEM ? error : 0;
}

void fy_bound_tell(ferry_collection *c, uint64_t key)
{
    fy_home_entry *bound = fy_table_find(&c->bound, key);
    fy_asker *asker = bound != NULL ? bound->askers : NULL;
    uint64_t object = bound != NULL ? bound->object : 0;
    uint64_t incarnation = bound != NULL ? bound->incarnation : 0;
    if (bound != NULL)
        bound->askers = NULL;
    while (asker != NULL) {
        fy_asker *next = asker->next;
        int rank = asker->rank;
        asker->next = bound->told;
        bound->told = asker;
        int error = tell_name(c, rank, key, object, incarnation);
        bound = fy_table_find(&c->bound, key);
        if (error != 0) { /* another rank, so nothing has changed `told` */
            bound->told = asker->next;
            asker->next = bound->askers;
            bound->askers = asker;
            fy_collection_again(c);
        }
        asker = next;
    }
}

void fy_names_again(ferry_collection *c)
{
    size_t index = 0;
    for (const fy_home_entry *bound; (bound = fy_table_next(&c->bound, &index)) != NULL;)
        if (bound->object != 0 && bound->askers != NULL)
            fy_bound_tell(c, bound->key);
}

static void askers_free(fy_asker *asker)
{
    while (asker != NULL) {
        fy_asker *next = asker->next;
        free(asker);
        asker = next;
    }
}

/* Answers a rank that waits for the name of an element that it will insert itself. It may have its
 * answer already, or get one when the last element has ended. */
static int answer_inserter(ferry_collection *c, int source, uint64_t key)
{
    fy_home_entry *bound = fy_table_find(&c->bound, key);
    fy_asker **at = bound != NULL && bound->leaving == NULL ? &bound->askers : NULL;
    while (at != NULL && *at != NULL && (*at)->rank != source)
        at = &(*at)->next;
    if (at == NULL || *at == NULL)
        return 0;
    fy_asker *asker = *at;
    *at = asker->next;
    if (tell_name(c, source, key, 0, bound->incarnation) != 0) { /* it is another rank */
        *at = asker;
        return FERRY_ENOMEM;
    }
    free(asker);
    return 0;
}

static void leaving_add(fy_leaving *l, fy_queue_entry *w)
{
    if (l->head == NULL)
        l->head = w;
    else
        l->tail->next = w;
    l->tail = w;
}

/* Lets the rank wait until the last element of its index has ended. */
static int hold_asker(fy_leaving *l, int source)
{
    static const ferry_message none;
    fy_queue_entry *w = fy_queue_entry_make(&none);
    if (w == NULL)
        return FERRY_ENOMEM;
    w->asks = true;
    w->source = source;
    leaving_add(l, w);
    return 0;
}

/* Whether the rank had the name of the element as an answer. */
static bool has_name(const fy_home_entry *bound, int rank)
{
    const fy_asker *told = bound->object != 0 ? bound->told : NULL;
    while (told != NULL && told->rank != rank)
        told = told->next;
    return told != NULL;
}

int fy_ask_take(ferry_collection *c, int source, uint64_t key, uint64_t ask)
{
    if (ask == FY_ASK_INSERTS)
        return answer_inserter(c, source, key);
    fy_home_entry *bound = fy_bound_make(c, key);
    if (bound == NULL)
        return FERRY_ENOMEM;
    if (bound->leaving != NULL && bound->object == 0)
        return hold_asker(bound->leaving, source);
    if (ask == FY_ASK_AGAIN && has_name(bound, source))
        return tell_name(c, source, key, bound->object, bound->incarnation);
    if (bound->object == 0 && bound->gone != 0 && bound->leaving == NULL)
        return tell_name(c, source, key, 0, bound->incarnation);
    fy_asker *asker = fy_malloc(sizeof *asker);
    if (asker == NULL)
        return FERRY_ENOMEM;
    *asker = (fy_asker){.next = bound->askers, .rank = source};
    bound->askers = asker;
    if (bound->object != 0)
        fy_bound_tell(c, key);
    return 0;
}

static void leaving_begin(fy_home_entry *bound, uint64_t object)
{
    if (bound->leaving != NULL)
        return;
    bound->leaving = fy_malloc(sizeof *bound->leaving);
    if (bound->leaving != NULL) /* else a new element does not wait for the end of this one */
        *bound->leaving = (fy_leaving){.key = bound->key, .object = object};
}

/* The element has ended, or nobody will tell: the next poll goes on. */
static void leaving_end(ferry_collection *c, fy_leaving *l)
{
    if (l->ended)
        return;
    l->ended = true;
    l->next = c->left;
    c->left = l;
    fy_work_created(c->f, 1);
}

void fy_unbind_take(ferry_collection *c, uint64_t key, uint64_t object, bool ended)
{
    fy_home_entry *bound = fy_table_find(&c->bound, key);
    if (bound != NULL && ended && bound->leaving != NULL && bound->leaving->object == object)
        leaving_end(c, bound->leaving);
    if (bound == NULL || bound->object != object)
        return;
    fy_asker *told = bound->told;
    bound->object = 0;
    bound->gone = 1;
    bound->told = NULL;
    if (!ended)
        leaving_begin(bound, object);
    if (!ended && bound->leaving != NULL && c->lost)
        leaving_end(c, bound->leaving); /* it may have been on the rank that is gone */
    for (const fy_asker *a = told; a != NULL; a = a->next)
        (void)fy_collection_tell(c, a->rank, FY_FORGET, key, object, 0, NULL, 0);
    askers_free(told);
}

int fy_insert_hold(ferry_collection *c, const fy_home_entry *bound, int source,
                   const ferry_message *request)
{
    fy_queue_entry *w = fy_queue_entry_make(request);
    if (w == NULL)
        return fy_fail(c->f, FERRY_ENOMEM, "no memory to keep it until the last element has ended");
    w->source = source;
    leaving_add(bound->leaving, w);
    fy_work_created(c->f, 1);
    return 0;
}

typedef struct held_insertion {
    ferry_collection *c;
    const fy_queue_entry *entry;
} held_insertion;

static void run_held(ferry *f, void *arg)
{
    const held_insertion *held = arg;
    (void)f;
    fy_insert_run(held->c, held->entry->source, &held->entry->message);
}

/* Takes a held insertion, or answers a rank. While the index has no element, later ones wait.
 * FERRY_ENOMEM: the rank has no answer yet. */
static int held_take(ferry_collection *c, fy_leaving *l, fy_queue_entry *w)
{
    fy_home_entry *bound = fy_table_find(&c->bound, l->key);
    held_insertion held = {.c = c, .entry = w};
    int error = 0;
    bound->leaving = w->asks && bound->object == 0 ? l : NULL;
    if (!w->asks) {
        fy_run(c->f, FY_DOING_HANDLER, UINT16_MAX, run_held, &held);
        fy_work_finished(c->f, 1);
    } else if (bound->object == 0) {
        error = tell_name(c, w->source, l->key, 0, bound->incarnation);
    } else {
        error = fy_ask_take(c, w->source, l->key, 0);
    }
    if (error == 0)
        free(w);
    return error;
}

/* The element has ended. Makes the one that was inserted meanwhile. Ranks that have asked before
 * learn that there is none, and those that have asked afterwards get its name. Without memory
 * returns false, and is to be called again. */
static bool leaving_finish(ferry_collection *c, fy_leaving *l)
{
    fy_home_entry *bound = fy_table_find(&c->bound, l->key);
    while (l->head != NULL && (bound->leaving == NULL || bound->leaving == l)) {
        fy_queue_entry *w = l->head;
        l->head = w->next;
        if (held_take(c, l, w) != 0) { /* it is an asker, and has changed nothing */
            l->head = w;
            return false;
        }
        bound = fy_table_find(&c->bound, l->key);
    }
    if (bound->leaving == l)
        bound->leaving = NULL;
    while (l->head != NULL) { /* the new element was removed in the meantime */
        fy_queue_entry *w = l->head;
        l->head = w->next;
        w->next = NULL;
        leaving_add(bound->leaving, w);
    }
    free(l);
    return true;
}

int fy_left_finish(ferry_collection *c)
{
    int count = 0;
    fy_leaving *left = c->left, *next;
    c->left = NULL;
    for (; left != NULL; left = next) {
        next = left->next;
        if (leaving_finish(c, left)) {
            fy_work_finished(c->f, 1);
            count++;
        } else {
            left->next = c->left;
            c->left = left;
        }
    }
    return count;
}

void fy_home_peer_gone(ferry_collection *c)
{
    size_t index = 0;
    c->lost = true;
    for (fy_home_entry *bound; (bound = fy_table_next(&c->bound, &index)) != NULL;)
        if (bound->leaving != NULL)
            leaving_end(c, bound->leaving); /* it may have been on that rank */
}

static void leaving_free(ferry_collection *c, fy_leaving *l)
{
    for (fy_queue_entry *w = l->head, *next; w != NULL; w = next) {
        next = w->next;
        if (!w->asks)
            fy_work_finished(c->f, 1);
        free(w);
    }
    if (l->ended)
        fy_work_finished(c->f, 1);
    free(l);
}

void fy_home_fini(ferry_collection *c)
{
    size_t index = 0;
    for (fy_leaving *l; (l = c->left) != NULL;) {
        fy_home_entry *bound = fy_table_find(&c->bound, l->key);
        c->left = l->next;
        if (bound->leaving == l)
            bound->leaving = NULL;
        leaving_free(c, l);
    }
    for (fy_home_entry *bound; (bound = fy_table_next(&c->bound, &index)) != NULL;) {
        askers_free(bound->askers);
        askers_free(bound->told);
        if (bound->leaving != NULL)
            leaving_free(c, bound->leaving);
    }
    fy_table_fini(&c->bound);
}
