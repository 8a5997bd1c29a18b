/* Describes steps, messages and reductions that wait, for ferry_collection_check and `ferry why`.
 * Texts of ferry_collection_check are true only at quiescence: then nothing more will come. */
#include <stdarg.h>
#include <stdio.h>

#include "collection/state.h"
#include "core/why.h"

/* A buffer to append text to. Text beyond its size is cut off. */
typedef struct text {
    char *out;
    size_t used, size;
} text;

static __attribute__((format(printf, 2, 3))) void add(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int count = vsnprintf(t->out + t->used, t->size - t->used, format, args);
    va_end(args);
    if (count > 0)
        t->used = t->used + (size_t)count < t->size ? t->used + (size_t)count : t->size - 1;
}

static bool has_sent(const fy_element *e, uint64_t key)
{
    for (const fy_early *m = e->early; m != NULL && m->step == e->need.step; m = m->next)
        if (m->from == key)
            return true;
    return false;
}

/* Appends the listed elements whose message for the step has not come. */
static void tell_absent(text *t, const fy_element *e)
{
    const ferry_collection *c = e->user.collection;
    char index[FY_TEXT_BYTES];
    enum { SHOWN = 4 };
    uint32_t absent = 0;
    for (uint32_t i = 0; e->need.from != NULL && i < e->need.messages; i++)
        if (!has_sent(e, e->need.from[i]) && absent++ < SHOWN)
            add(t, "%s %s", absent == 1 ? ": there is none from" : ",",
                fy_index_text(c, fy_key_index(c, e->need.from[i]), index));
    if (absent > SHOWN)
        add(t, " and %u more", absent - SHOWN);
}

static bool tell_element(text *t, const fy_element *e)
{
    const ferry_collection *c = e->user.collection;
    const fy_need *need = &e->need;
    const fy_early *early = e->early;
    char index[FY_TEXT_BYTES];
    if (need->waiting) {
        add(t, "collection %s: step %llu of element %s waits:", c->name,
            (unsigned long long)need->step, fy_index_text(c, e->user.index, index));
        if (need->have < need->messages) {
            add(t, " it has %u of %u messages", need->have, need->messages);
            tell_absent(t, e);
        }
        if (need->reduction && c->done <= need->round)
            add(t, "%s reduction %llu is incomplete", need->have < need->messages ? ";" : "",
                (unsigned long long)need->round);
        return true;
    }
    if (early == NULL)
        return false;
    add(t, "collection %s: element %s has messages for step %llu, but asks for no step", c->name,
        fy_index_text(c, e->user.index, index), (unsigned long long)early->step);
    return true;
}

static bool tell_queue(text *t, const ferry_collection *c, const fy_known *known)
{
    char index[FY_TEXT_BYTES];
    if (known->queue == NULL)
        return false;
    uint32_t messages = 0, removals = 0;
    for (const fy_queue_entry *w = known->queue->head; w != NULL; w = w->next) {
        messages += !w->removes && !w->inserts;
        removals += w->removes;
    }
    add(t, "collection %s:", c->name);
    if (messages != 0 || removals == 0)
        add(t, " %u message%s", messages, messages == 1 ? "" : "s");
    if (removals != 0)
        add(t, "%s %u removal%s", messages != 0 ? " and" : "", removals, removals == 1 ? "" : "s");
    add(t, " wait%s for element %s, which does not exist", messages + removals == 1 ? "s" : "",
        fy_index_text(c, fy_key_index(c, known->key), index));
    return true;
}

static bool is_described(const fy_round *round)
{
    while (round != NULL && !round->described)
        round = round->next;
    return round != NULL;
}

void fy_round_look(const ferry_collection *c, fy_round_report *out)
{
    *out = (fy_round_report){.waits = is_described(c->rounds) || is_described(c->root_rounds)};
    for (const fy_link *link = c->elements.next; link != &c->elements; link = link->next) {
        const fy_element *e = fy_element_at((fy_link *)(uintptr_t)link);
        bool behind = e->round <= c->done;
        if (behind && (out->first == NULL || e->key < out->first->key))
            out->first = e;
        out->counts[behind]++;
    }
    out->waits |= out->counts[0] != 0;
}

void fy_round_tell(const ferry_collection *c, const fy_round_report *report, char *out,
                   size_t size_bytes)
{
    char index[FY_TEXT_BYTES];
    const unsigned long long number = c->done, had = report->counts[0];
    text t = {.out = out, .size = size_bytes};
    add(&t, "collection %s: reduction %llu is incomplete: ", c->name, number);
    if (report->first == NULL) {
        add(&t, "not all contributions have come to rank %d", fy_rounds_root(c));
        return;
    }
    add(&t, "%llu of %llu elements contributed; element %s did not", had,
        had + (unsigned long long)report->counts[1],
        fy_index_text(c, report->first->user.index, index));
}

bool fy_collection_missing(ferry_collection *c, char *out, size_t size)
{
    text t = {.out = out, .size = size};
    out[0] = '\0';
    if (c->strays != 0) {
        add(&t, "collection %s: %s", c->name, c->stray);
        if (c->strays > 1)
            add(&t, " (and %llu more)", (unsigned long long)c->strays - 1);
        c->strays = 0;
        return true;
    }
    for (fy_link *link = c->elements.next; link != &c->elements; link = link->next) {
        const fy_element *e = fy_element_at(link);
        /* An element without data is leaving. Its messages may have come to its new rank. */
        if (ferry_object_data(c->f, e->user.object) != NULL && tell_element(&t, e))
            return true;
    }
    size_t index = 0;
    for (const fy_known *k; (k = fy_table_next(&c->known, &index)) != NULL;)
        if (tell_queue(&t, c, k))
            return true;
    return false;
}

void fy_collections_why(ferry *f, fy_why *why)
{
    fy_collections *all = fy_collections_of(f);
    enum { SHOWN = 8 };
    char line[FY_STRAY_BYTES + FY_TEXT_BYTES];
    for (fy_link *at = all->all.next; at != &all->all; at = at->next) {
        ferry_collection *c = (ferry_collection *)(void *)at;
        int shown = 0;
        for (fy_link *link = c->elements.next; link != &c->elements && shown < SHOWN;
             link = link->next) {
            text t = {.out = line, .size = sizeof line};
            if (tell_element(&t, fy_element_at(link)) && ++shown)
                fy_why_line(why, "%s", line);
        }
        size_t index = 0;
        for (const fy_known *k; shown < SHOWN && (k = fy_table_next(&c->known, &index)) != NULL;) {
            text t = {.out = line, .size = sizeof line};
            if (tell_queue(&t, c, k) && ++shown)
                fy_why_line(why, "%s", line);
        }
    }
}
