/* Steps of elements: the needs of the next one, and messages that have come before it.
 *
 * A message for a step becomes part of its element's state, in the list `early`. That needs no
 * task, unless the message comes while the element moves or before its turn. When the needs of a
 * step are complete, the element sends itself a message that runs it. If the message that completes
 * them has a task, the step runs in that. So each step is a task, and the element may move between
 * two steps.
 *
 * If the element moves before its own message has come, the new rank may send another one. The
 * second finds nothing to run, or the element has ended. So nobody is told that it is lost. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/state.h"
#include "core/fail.h"

void fy_stray(ferry_collection *c, const char *format, ...)
{
    va_list args;
    if (c->strays++ != 0)
        return;
    va_start(args, format);
    (void)vsnprintf(c->stray, sizeof c->stray, format, args);
    va_end(args);
    fy_log(c->f, "collection %s: %s", c->name, c->stray);
}

/* Whether the step of `e` waits, and has all that it needs. */
static bool need_met(const fy_element *e)
{
    const fy_need *need = &e->need;
    return need->waiting && need->have >= need->messages &&
           (!need->reduction || e->user.collection->done > need->round);
}

void fy_step_settle(fy_element *e)
{
    if (e->user.object.word == 0 || e->told || !need_met(e))
        return;
    const ferry_message message = {.handler = fy_collections_of(e->user.collection->f)->proceed};
    e->told = true;
    fy_post(e->user.collection->f, e->user.object, &message);
}

void fy_steps_wake(ferry_collection *c)
{
    for (fy_link *link = c->elements.next, *next; link != &c->elements; link = next) {
        fy_element *e = fy_element_at(link);
        next = link->next;
        if (e->need.waiting && e->need.reduction)
            fy_step_settle(e);
    }
}

enum { FEW = 32 };

/* A slot of `places`. */
typedef struct place {
    uint64_t key;
    uint32_t number; /* 1 + its index in the list */
    bool seen;       /* its message for the step is here */
} place;

static void places_free(fy_table *places)
{
    if (places != NULL)
        fy_table_fini(places);
    free(places);
}

/* The places of many keys; of keys that are equal one. NULL: they are few, or no memory. */
static fy_table *places_make(const uint64_t *from, uint32_t count)
{
    fy_table *places = count > FEW ? fy_malloc(sizeof *places) : NULL;
    if (places == NULL || fy_table_init(places, sizeof(place)) != 0) {
        free(places);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        void *slot;
        if (fy_table_insert(places, from[i], &slot) != 0) {
            places_free(places);
            return NULL;
        }
        ((place *)slot)->number = i + 1;
    }
    return places;
}

void fy_need_free(fy_need *need)
{
    places_free(need->places);
    free(need->from);
    need->places = NULL;
    need->from = NULL;
}

void fy_need_index(fy_element *e)
{
    fy_need *need = &e->need;
    if (need->from != NULL)
        need->places = places_make(need->from, need->messages);
    if (need->places == NULL)
        return;
    for (const fy_early *m = e->early; m != NULL && m->step <= need->step; m = m->next) {
        place *sender = m->step == need->step ? fy_table_find(need->places, m->from) : NULL;
        if (sender != NULL)
            sender->seen = true;
    }
}

static int place_in(const uint64_t *from, uint32_t count, uint64_t key)
{
    for (uint32_t i = 0; i < count; i++)
        if (from[i] == key)
            return (int)i;
    return -1;
}

/* The place of a sender in the list of the step, which has one. */
static uint64_t place_of(const fy_need *need, uint64_t key)
{
    const place *sender = need->places != NULL ? fy_table_find(need->places, key) : NULL;
    return sender != NULL ? sender->number : (uint64_t)place_in(need->from, need->messages, key);
}

/* Lets the message take a place in the step with its number, if that needs it. With a list of
 * senders it needs the first message of each. `message` itself is not in `early` yet. */
static bool take_place(const fy_element *e, const fy_early *message)
{
    const fy_need *need = &e->need;
    if (need->from == NULL)
        return need->have < need->messages;
    if (need->places != NULL) {
        place *sender = message->from != 0 ? fy_table_find(need->places, message->from) : NULL;
        bool first = sender != NULL && !sender->seen;
        if (first)
            sender->seen = true;
        return first;
    }
    if (place_in(need->from, need->messages, message->from) < 0)
        return false;
    for (const fy_early *m = e->early; m != NULL && m->step == need->step; m = m->next)
        if (m->from == message->from)
            return false;
    return true;
}

static void tell_stray(const fy_element *e, const fy_early *m, const char *why)
{
    ferry_collection *c = e->user.collection;
    char text[FY_TEXT_BYTES], sender[FY_TEXT_BYTES];
    if (m->from != 0)
        fy_stray(c, "element %s got a message of step %llu from element %s: %s",
                 fy_index_text(c, e->user.index, text), (unsigned long long)m->step,
                 fy_index_text(c, fy_key_index(c, m->from), sender), why);
    else
        fy_stray(c, "element %s got a message of step %llu from rank %d: %s",
                 fy_index_text(c, e->user.index, text), (unsigned long long)m->step, m->source,
                 why);
}

/* An input of the step that runs. */
typedef struct inputs {
    uint64_t order; /* the inputs are sorted by this */
    uint32_t arrival;
    fy_early *early;
} inputs;

static int compare_inputs(const void *left, const void *right)
{
    const inputs *a = left, *b = right;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->arrival < b->arrival ? -1 : 1;
}

/* Few are mostly in order already. */
static void sort_inputs(inputs *all, uint32_t count)
{
    if (count > FEW) {
        qsort(all, count, sizeof *all, compare_inputs);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        const inputs moved = all[i];
        uint32_t at = i;
        for (; at > 0 && all[at - 1].order > moved.order; at--)
            all[at] = all[at - 1];
        all[at] = moved;
    }
}

/* Takes the messages of the step out of the element. Sorts them by their sender's place in the
 * list, or without a list by its key. Messages of one sender keep their order. */
static uint32_t take_inputs(fy_element *e, inputs *all)
{
    const fy_need *need = &e->need;
    uint32_t count = 0;
    for (fy_early *m; (m = e->early) != NULL && m->step == need->step; count++) {
        uint64_t order = need->from != NULL ? place_of(need, m->from) : m->from;
        all[count] = (inputs){.order = order, .arrival = count, .early = m};
        e->early = m->next;
    }
    sort_inputs(all, count);
    return count;
}

static void give_inputs(const ferry_collection *c, const inputs *all, uint32_t count,
                        ferry_input *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const fy_early *m = all[i].early;
        out[i].from = m->from != 0 ? fy_key_index(c, m->from) : ferry_index_of(0, 0, 0);
        out[i].from_rank = m->from == 0;
        out[i].source = m->source;
        out[i].message = &m->message;
    }
}

/* The step has begun. Keeps the memory of its list for that of the next. */
static void end_need(fy_element *e)
{
    fy_need *need = &e->need;
    need->waiting = false;
    need->have = 0;
    places_free(need->places);
    need->places = NULL;
    if (need->from == NULL)
        return;
    free(e->spare);
    e->spare = need->from;
    e->spare_count = need->messages;
    need->from = NULL;
}

static void run_step(fy_element *e)
{
    ferry_collection *c = e->user.collection;
    inputs few[FEW], *all = few;
    ferry_input few_inputs[FEW], *given = few_inputs;
    uint32_t have = e->need.have;
    if (have > FEW) {
        all = fy_malloc(have * sizeof *all);
        given = fy_malloc(have * sizeof *given);
    }
    if (all == NULL || given == NULL) {
        free(all);
        free(given);
        fy_stray(c, "no memory for a step of %u messages", have);
        return;
    }
    uint32_t count = take_inputs(e, all);
    give_inputs(c, all, count, given);
    ferry_inputs in = {.step = e->need.step, .count = count, .inputs = given};
    if (e->need.reduction) {
        in.reduced = c->result_count != 0 ? c->result : NULL;
        in.reduced_count = c->result_count;
    }
    end_need(e);
    c->options.step(c->f, &e->user, &in);
    for (uint32_t i = 0; i < count; i++)
        fy_early_free(fy_collections_of(c->f), all[i].early);
    if (all != few)
        free(all);
    if (given != few_inputs)
        free(given);
}

void fy_proceed_take(ferry *f, ferry_object object, void *data, int source,
                     const ferry_message *message)
{
    fy_element *e = fy_element_of(data);
    (void)f, (void)object, (void)source, (void)message;
    e->told = false;
    if (need_met(e))
        run_step(e);
}

fy_early *fy_early_make(fy_collections *all, size_t size_bytes)
{
    return size_bytes <= FY_POOLED_BYTES ? fy_pool_get(&all->early)
                                         : fy_malloc(sizeof(fy_early) + size_bytes);
}

void fy_early_free(fy_collections *all, fy_early *m)
{
    if (m->message.size_bytes <= FY_POOLED_BYTES)
        fy_pool_put(&all->early, m);
    else
        free(m);
}

static fy_early *early_create(ferry *f, const ferry_message *message, int source)
{
    fy_early *m = fy_early_make(fy_collections_of(f), message->size_bytes);
    if (m == NULL)
        return NULL;
    *m = (fy_early){.step = message->words[0],
                    .from = message->words[1],
                    .source = source,
                    .message = *message};
    m->message.word_count = (uint8_t)(message->word_count - 2);
    m->message.words[0] = message->words[2];
    m->message.words[1] = message->words[3];
    m->message.handler.index = 0;
    m->message.data = message->size_bytes != 0 ? m + 1 : NULL;
    if (message->size_bytes != 0)
        memcpy(m + 1, message->data, message->size_bytes);
    return m;
}

void fy_early_add(fy_element *e, fy_early *m)
{
    fy_early **at = &e->early;
    while (*at != NULL && (*at)->step < m->step)
        at = &(*at)->last->next;
    fy_early *first = *at;
    if (first != NULL && first->step == m->step) {
        m->next = first->last->next;
        first->last->next = m;
        first->last = m;
    } else {
        m->next = first;
        m->last = m;
        *at = m;
    }
}

bool fy_step_add(fy_element *e, int source, const ferry_message *message)
{
    ferry *f = e->user.collection->f;
    fy_need *need = &e->need;
    fy_early *m = early_create(f, message, source);
    if (m == NULL)
        return false;
    bool late = need->begun && (m->step < need->step || (m->step == need->step && !need->waiting));
    bool now = need->waiting && m->step == need->step;
    if (late || (now && !take_place(e, m))) {
        tell_stray(e, m, late ? "that step has run" : "the step does not need it");
        fy_early_free(fy_collections_of(f), m);
        return true;
    }
    fy_early_add(e, m);
    need->have += now;
    return true;
}

void fy_step_take(ferry *f, ferry_object object, void *data, int source,
                  const ferry_message *message)
{
    fy_element *e = fy_element_of(data);
    (void)f, (void)object;
    if (!fy_step_add(e, source, message))
        fy_stray(e->user.collection, "no memory for a message of a step: it is lost");
    else if (!e->told && need_met(e))
        run_step(e);
}

/* Counts the early messages that the new step needs. Drops those that it does not need, and those
 * of steps that were left out. */
static void count_early(fy_element *e)
{
    fy_need *need = &e->need;
    fy_early *kept = e->early;
    e->early = NULL;
    for (fy_early *m = kept, *next; m != NULL; m = next) {
        bool late = m->step < need->step, now = m->step == need->step;
        next = m->next;
        if (late || (now && !take_place(e, m))) {
            tell_stray(e, m, late ? "that step was left out" : "the step does not need it");
            fy_early_free(fy_collections_of(e->user.collection->f), m);
            continue;
        }
        need->have += now;
        fy_early_add(e, m);
    }
}

/* The index of the first key that stands before too; 0: there is none. With `places` no two are
 * equal if there are as many places as keys. */
static uint32_t find_twice(const uint64_t *from, uint32_t count, const fy_table *places)
{
    if (places != NULL && places->count == count)
        return 0;
    for (uint32_t i = 1; i < count; i++)
        if (place_in(from, i, from[i]) >= 0)
            return i;
    return 0;
}

/* Makes `out->from` the keys of the senders, and their places. */
static int read_from(fy_element *e, const ferry_step *step, fy_need *out)
{
    const ferry_collection *c = e->user.collection;
    char text[FY_TEXT_BYTES];
    if (e->spare_count < step->messages || e->spare == NULL) {
        free(e->spare);
        e->spare = fy_malloc(step->messages * sizeof *e->spare);
        e->spare_count = step->messages;
        if (e->spare == NULL)
            return fy_fail(c->f, FERRY_ENOMEM, "step_next: no memory");
    }
    uint64_t *from = e->spare;
    for (uint32_t i = 0; i < step->messages; i++) {
        from[i] = fy_index_key(c, step->from[i]);
        if (from[i] == 0)
            return fy_index_refuse(c, "step_next", step->from[i]);
    }
    fy_table *places = places_make(from, step->messages);
    uint32_t twice = find_twice(from, step->messages, places);
    if (twice != 0) {
        places_free(places);
        return fy_fail(c->f, FERRY_EINVAL, "step_next: element %s is listed twice",
                       fy_index_text(c, step->from[twice], text));
    }
    out->from = from;
    out->places = places;
    e->spare = NULL;
    return 0;
}

int ferry_step_next(ferry_element *element, const ferry_step *needs)
{
    fy_element *e = fy_element_of(element);
    ferry_collection *c = element->collection;
    ferry_step step = FERRY_STEP_DEFAULTS;
    char text[FY_TEXT_BYTES];
    int error = fy_read_sized(c->f, "step_next: ferry_step", needs, &step, sizeof step);
    if (error != 0)
        return error;
    if (c->options.step == NULL)
        return fy_fail(c->f, FERRY_ESTATE, "step_next: collection %s has no `step`", c->name);
    if (e->need.waiting)
        return fy_fail(c->f, FERRY_ESTATE, "step_next: step %llu of element %s waits already",
                       (unsigned long long)e->need.step, fy_index_text(c, element->index, text));
    if (step.reduction && e->round == 0)
        return fy_fail(c->f, FERRY_ESTATE,
                       "step_next: element %s has contributed to no reduction yet",
                       fy_index_text(c, element->index, text));
    fy_need listed = {.from = NULL};
    if (step.from != NULL && step.messages != 0) {
        error = read_from(e, &step, &listed);
        if (error != 0)
            return error;
    }
    uint64_t next = e->need.begun ? e->need.step + 1 : 0;
    e->need = (fy_need){.step = step.number > next ? step.number : next,
                        .round = e->round - 1,
                        .from = listed.from,
                        .places = listed.places,
                        .messages = step.messages,
                        .begun = true,
                        .waiting = true,
                        .reduction = step.reduction};
    count_early(e);
    fy_step_settle(e);
    return 0;
}

int ferry_step_send(ferry_collection *c, const ferry_element *element, ferry_index index,
                    uint64_t number, const ferry_message *message, const ferry_track *track)
{
    uint64_t key = fy_index_key(c, index);
    if (key == 0)
        return fy_index_refuse(c, "step_send", index);
    if (c->options.step == NULL)
        return fy_fail(c->f, FERRY_ESTATE, "step_send: collection %s has no `step`", c->name);
    int error = fy_collection_check_words(c, "step_send", message, FERRY_WORDS_MAX - 2);
    if (error != 0)
        return error;
    ferry_message sent = *message;
    sent.handler = fy_collections_of(c->f)->step;
    sent.word_count = (uint8_t)(message->word_count + 2);
    sent.words[0] = number;
    sent.words[1] = element != NULL ? fy_element_of(element)->key : 0;
    sent.words[2] = message->words[0];
    sent.words[3] = message->words[1];
    return fy_names_send(c, key, &sent, track);
}
