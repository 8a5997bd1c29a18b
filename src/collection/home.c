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
#include "core/membership.h"
#include "core/run.h"
#include "core/work.h"

fy_home_entry *fy_bound_make(ferry_collection *c, uint64_t key)
{
    void *slot = NULL;
    return fy_table_insert(&c->bound, key, &slot) == 0 ? slot : NULL;
}

static void tell_name(ferry_collection *c, int rank, uint64_t key, uint64_t object,
                      uint64_t incarnation)
{
    if (fy_collection_tell(c, rank, FY_ANSWER, key, object, incarnation, NULL, 0) != 0)
        fy_log(c->f, "collection %s: the name of an element could not be sent to rank %d", c->name,
               rank);
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
        tell_name(c, rank, key, object, incarnation);
        bound = fy_table_find(&c->bound, key);
        asker = next;
    }
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
static void answer_inserter(ferry_collection *c, int source, uint64_t key)
{
    fy_home_entry *bound = fy_table_find(&c->bound, key);
    fy_asker **at = bound != NULL && bound->leaving == NULL ? &bound->askers : NULL;
    while (at != NULL && *at != NULL && (*at)->rank != source)
        at = &(*at)->next;
    if (at == NULL || *at == NULL)
        return;
    fy_asker *asker = *at;
    *at = asker->next;
    free(asker);
    tell_name(c, source, key, 0, bound->incarnation);
}

static void leaving_add(fy_leaving *l, fy_queue_entry *w)
{
    if (l->head == NULL)
        l->head = w;
    else
        l->tail->next = w;
    l->tail = w;
}

/* Lets the rank wait until the last element of its index has ended. False: no memory. */
static bool hold_asker(fy_leaving *l, int source)
{
    static const ferry_message none;
    fy_queue_entry *w = fy_queue_entry_make(&none);
    if (w == NULL)
        return false;
    w->asks = true;
    w->source = source;
    leaving_add(l, w);
    return true;
}

/* Whether the rank had the name of the element as an answer. */
static bool has_name(const fy_home_entry *bound, int rank)
{
    const fy_asker *told = bound->object != 0 ? bound->told : NULL;
    while (told != NULL && told->rank != rank)
        told = told->next;
    return told != NULL;
}

void fy_ask_take(ferry_collection *c, int source, uint64_t key, uint64_t ask)
{
    if (ask == FY_ASK_INSERTS) {
        answer_inserter(c, source, key);
        return;
    }
    fy_home_entry *bound = fy_bound_make(c, key);
    bool holds = bound != NULL && bound->leaving != NULL && bound->object == 0;
    if (holds && hold_asker(bound->leaving, source))
        return;
    if (bound != NULL && ask == FY_ASK_AGAIN && has_name(bound, source)) {
        tell_name(c, source, key, bound->object, bound->incarnation);
        return;
    }
    if (bound != NULL && bound->object == 0 && bound->gone != 0 && bound->leaving == NULL) {
        tell_name(c, source, key, 0, bound->incarnation);
        return;
    }
    fy_asker *asker = bound != NULL && !holds ? fy_malloc(sizeof *asker) : NULL;
    if (asker == NULL) {
        fy_stray(c, "rank %d has no memory to note that rank %d waits for a name", c->rank, source);
        return;
    }
    *asker = (fy_asker){.next = bound->askers, .rank = source};
    bound->askers = asker;
    if (bound->object != 0)
        fy_bound_tell(c, key);
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

static bool has_lost(const ferry_collection *c)
{
    bool lost = false;
    for (int i = 0; i < c->ranks && !lost; i++)
        lost = fy_peer_is_gone(c->f, c->members[i]);
    return lost;
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
    if (!ended && bound->leaving != NULL && has_lost(c))
        leaving_end(c, bound->leaving); /* it may have been on the rank that is gone */
    for (const fy_asker *a = told; a != NULL; a = a->next)
        (void)fy_collection_tell(c, a->rank, FY_FORGET, key, object, 0, NULL, 0);
    askers_free(told);
}

bool fy_insert_hold(ferry_collection *c, uint64_t key, int source, const ferry_message *request)
{
    const fy_home_entry *bound = fy_table_find(&c->bound, key);
    fy_leaving *l = bound != NULL ? bound->leaving : NULL;
    fy_queue_entry *w = l != NULL ? fy_queue_entry_make(request) : NULL;
    if (w == NULL)
        return false;
    w->source = source;
    leaving_add(l, w);
    fy_work_created(c->f, 1);
    return true;
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

/* Takes a held insertion, or answers a rank. While the index has no element, later ones wait. */
static void held_take(ferry_collection *c, fy_leaving *l, fy_queue_entry *w)
{
    fy_home_entry *bound = fy_table_find(&c->bound, l->key);
    held_insertion held = {.c = c, .entry = w};
    bound->leaving = w->asks && bound->object == 0 ? l : NULL;
    if (!w->asks) {
        fy_run(c->f, FY_DOING_HANDLER, UINT16_MAX, run_held, &held);
        fy_work_finished(c->f, 1);
    } else if (bound->object == 0) {
        tell_name(c, w->source, l->key, 0, bound->incarnation);
    } else {
        fy_ask_take(c, w->source, l->key, 0);
    }
    free(w);
}

/* The element has ended. Makes the one that was inserted meanwhile. Ranks that have asked before
 * learn that there is none, and those that have asked afterwards get its name. */
static void leaving_finish(ferry_collection *c, fy_leaving *l)
{
    fy_home_entry *bound = fy_table_find(&c->bound, l->key);
    while (l->head != NULL && (bound->leaving == NULL || bound->leaving == l)) {
        fy_queue_entry *w = l->head;
        l->head = w->next;
        held_take(c, l, w);
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
}

int fy_left_finish(ferry_collection *c)
{
    int count = 0;
    for (fy_leaving *l; (l = c->left) != NULL; count++) {
        c->left = l->next;
        leaving_finish(c, l);
        fy_work_finished(c->f, 1);
    }
    return count;
}

void fy_home_peer_gone(ferry_collection *c)
{
    size_t index = 0;
    for (fy_home_entry *bound; (bound = fy_table_next(&c->bound, &index)) != NULL;)
        if (bound->leaving != NULL)
            leaving_end(c, bound->leaving); /* it may have been on that rank */
}

void fy_home_fini(ferry_collection *c)
{
    size_t index = 0;
    for (fy_home_entry *bound; (bound = fy_table_next(&c->bound, &index)) != NULL;) {
        askers_free(bound->askers);
        askers_free(bound->told);
        fy_leaving *l = bound->leaving;
        for (fy_queue_entry *w = l != NULL ? l->head : NULL, *next; w != NULL; w = next) {
            next = w->next;
            if (!w->asks)
                fy_work_finished(c->f, 1);
            free(w);
        }
        if (l != NULL && l->ended)
            fy_work_finished(c->f, 1);
        free(l);
    }
    fy_table_fini(&c->bound);
}
