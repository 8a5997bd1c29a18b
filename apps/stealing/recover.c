#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stealing.h"

/* Per unit in a snapshot. */
enum { KNOWN = 1, OWNED = 2 };

static void merge(state *s, const uint8_t *marks)
{
    for (int unit = 0; unit < s->options->units; unit++) {
        if (marks[unit] & KNOWN)
            steal_know(s, unit);
        s->marks[unit] |= marks[unit];
    }
}

/* How many deaths the others knew when they told what they know. */
static void note_deaths(state *s, int deaths)
{
    s->deaths_min = deaths < s->deaths_min ? deaths : s->deaths_min;
    s->deaths_max = deaths > s->deaths_max ? deaths : s->deaths_max;
}

static void on_snapshot(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    if (s == NULL || message->size_bytes != (size_t)s->options->units)
        return;
    note_deaths(s, (int)message->words[0]);
    s->doubled += message->words[1];
    merge(s, message->data);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    if (event->died && s->options->told)
        fprintf(stderr, "told %d %d %llu\n", ferry_rank(f), event->rank,
                (unsigned long long)ferry_now(f));
    s->deaths += event->died;
    steal_died(s, event->rank);
}

int recover_open(state *s)
{
    int error = ferry_handler_register(s->f, "snapshot", on_snapshot, &s->snapshot);
    return error != 0 ? error : ferry_peer_watch(s->f, on_peer, s);
}

static void mark_own(state *s, uint8_t *marks)
{
    memset(marks, 0, (size_t)s->options->units);
    for (int unit = 0; unit < s->options->units; unit++)
        marks[unit] = s->known[unit] ? KNOWN : 0;
    for (int i = 0; i < s->load_count; i++)
        marks[s->load[i]] |= OWNED;
    for (const portion *p = s->lent; p != NULL; p = p->next)
        for (int i = 0; i < p->count; i++)
            marks[p->units[i]] |= OWNED;
}

static uint64_t count_doubled(const state *s)
{
    uint64_t doubled = 0;
    for (int unit = 0; unit < s->options->units; unit++)
        doubled += s->reports[unit] > 1;
    return doubled;
}

/* Sends what this rank knows to all that live. */
static int tell(state *s, uint8_t *marks)
{
    mark_own(s, marks);
    uint64_t doubled = count_doubled(s);
    const ferry_message message = {.handler = s->snapshot,
                                   .word_count = 2,
                                   .words = {(uint64_t)s->deaths, doubled},
                                   .data = marks,
                                   .size_bytes = (size_t)s->options->units};
    s->doubled += doubled;
    note_deaths(s, s->deaths);
    merge(s, marks);
    for (int rank = 0; rank < ferry_ranks(s->f); rank++) {
        if (rank == ferry_rank(s->f) || ferry_peer_is_gone(s->f, rank))
            continue;
        int error = steal_send(s, rank, &message);
        if (error != 0 && error != FERRY_EPEER)
            return error;
    }
    return 0;
}

/* Every rank that lives finds the same units that nobody has, and takes its share. Only snapshots
 * count: a rank that is through with the meeting may have sent reports already. Returns whether all
 * units are done. */
static bool share_out(state *s)
{
    bool done = true;
    int living = 0, place = 0;
    for (int rank = 0; rank < ferry_ranks(s->f); rank++) {
        if (rank == ferry_rank(s->f))
            place = living;
        living += !ferry_peer_is_gone(s->f, rank);
    }
    int lost = 0;
    for (int unit = 0; unit < s->options->units; unit++) {
        done = done && (s->marks[unit] & KNOWN);
        if (s->marks[unit] == 0 && lost++ % living == place)
            s->load[s->load_count++] = unit;
    }
    return done;
}

int recover_meet(state *s)
{
    uint8_t *marks = malloc((size_t)s->options->units + 1);
    if (marks == NULL)
        return FERRY_ENOMEM;
    s->frozen = true;
    s->deaths_min = ferry_ranks(s->f);
    s->deaths_max = 0;
    s->doubled = 0;
    memset(s->marks, 0, (size_t)s->options->units);
    int error = ferry_quiesce(s->f);
    if (error == 0)
        error = tell(s, marks);
    if (error == 0)
        error = ferry_quiesce(s->f);
    free(marks);
    s->frozen = false;
    /* If a rank gave its counts before it knew of a death, this exchange is void, for all alike.
     * The second ferry_quiesce ends only when all know of the same deaths, or after all that was
     * told. */
    if (error != 0 || s->deaths != s->deaths_min || s->deaths != s->deaths_max)
        return error;
    s->settled = s->deaths;
    s->finished = share_out(s);
    return 0;
}
