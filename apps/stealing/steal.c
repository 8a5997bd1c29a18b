#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "stealing.h"

enum { SLICE_NS = 50000, PAUSE_NS = 200000 };

static int random_below(state *s, int n)
{
    s->random = s->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((s->random >> 33) % (uint64_t)n);
}

void steal_know(state *s, int unit)
{
    if (s->known[unit])
        return;
    s->known[unit] = 1;
    s->known_count++;
}

static void on_report(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    if (s == NULL)
        return; /* this rank has finished */
    int unit = (int)message->words[0];
    (void)source;
    s->reports[unit]++;
    steal_know(s, unit);
}

static void take_out(state *s, portion *p)
{
    portion **at = &s->lent;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    free(p);
}

/* Receipt of the portion is acknowledged, or can never be: what a dead rank had is shared out when
 * the living meet. Either way it is no longer ours. */
static void discard(ferry *f, void *arg, const ferry_receipt *receipt)
{
    portion *p = arg;
    (void)f;
    (void)receipt;
    take_out(p->state, p);
}

/* Gives half of the load to `rank`, or nothing. */
static void give(state *s, int rank, ferry_op *op)
{
    int count = s->frozen || s->load_count < 2 ? 0 : s->load_count / 2;
    portion *p = malloc(sizeof(*p) + (size_t)count * sizeof(p->units[0]));
    if (p == NULL)
        return;
    s->load_count -= count;
    *p = (portion){.next = s->lent, .state = s, .count = count};
    if (count > 0)
        memcpy(p->units, s->load + s->load_count, (size_t)count * sizeof(p->units[0]));
    s->lent = p;
    const ferry_message message = {
        .handler = s->give, .data = p->units, .size_bytes = (size_t)count * sizeof(p->units[0])};
    const ferry_track track = {.size = sizeof(track),
                               .completed = discard,
                               .completed_arg = p,
                               .failed = discard,
                               .failed_arg = p,
                               .op = op};
    if (ferry_request_send(s->f, rank, &message, &track) != 0) {
        memcpy(s->load + s->load_count, p->units, (size_t)count * sizeof(p->units[0]));
        s->load_count += count;
        take_out(s, p);
    }
    s->given += (uint64_t)count;
    s->refused += count == 0;
}

static void on_want(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    if (s == NULL)
        return; /* this rank has finished */
    (void)message;
    if (s->options->style == EVENTS)
        give(s, source, NULL);
    else if (s->options->style == DRIVEN && s->answer.word == 0)
        give(s, source, &s->answer);
    else if (s->requester < 0)
        s->requester = source;
    else
        give(s, source, NULL); /* two ask at once: nobody waits for the second */
}

static void on_give(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    if (s == NULL)
        return; /* this rank has finished */
    size_t count = message->size_bytes / sizeof(int);
    if (count > 0)
        memcpy(s->load + s->load_count, message->data, message->size_bytes);
    s->load_count += (int)count;
    s->taken += count;
    if (s->asked == source)
        s->asked = -1;
}

static void ask(state *s);

/* Upon request failure: another one is asked. */
static void ask_another(ferry *f, void *arg, const ferry_receipt *receipt)
{
    state *s = arg;
    (void)f;
    if (s->asked == receipt->rank)
        s->asked = -1;
    if (s->asked < 0 && !s->frozen)
        ask(s);
}

static void ask(state *s)
{
    int ranks = ferry_ranks(s->f);
    int rank = random_below(s, ranks);
    for (int i = 0; i < ranks && (rank == ferry_rank(s->f) || ferry_peer_is_gone(s->f, rank)); i++)
        rank = (rank + 1) % ranks;
    if (rank == ferry_rank(s->f) || ferry_peer_is_gone(s->f, rank))
        return;
    const ferry_message message = {.handler = s->want};
    ferry_op op;
    bool waits = s->options->style != EVENTS;
    const ferry_track track = {.size = sizeof(track),
                               .failed = waits ? NULL : ask_another,
                               .failed_arg = s,
                               .op = waits ? &op : NULL,
                               .arrival = true};
    s->asked = rank;
    int error = ferry_request_send(s->f, rank, &message, &track);
    if (error == 0 && waits)
        error = ferry_op_wait(s->f, &op);
    if (error != 0 && s->asked == rank)
        s->asked = -1;
}

void steal_died(state *s, int rank)
{
    if (s->asked == rank)
        s->asked = -1;
    if (s->requester == rank)
        s->requester = -1;
}

static void die_if_due(const state *s)
{
    uint64_t ms = (ferry_now(s->f) - s->start_ns) / 1000000;
    for (int i = 0; i < s->options->kill_count; i++)
        if (s->options->kills[i].rank == ferry_rank(s->f) &&
            ms >= (uint64_t)s->options->kills[i].ms)
            raise(SIGKILL);
}

static void work(state *s, int unit)
{
    uint64_t us = (uint64_t)s->options->unit_us * (unit < s->options->units / 4 ? 4 : 1);
    uint64_t end_ns = ferry_now(s->f) + us * 1000;
    while (ferry_now(s->f) < end_ns) {
        ferry_compute(s->f, SLICE_NS * 1e-9);
        die_if_due(s);
        if (s->options->style != PASSING)
            ferry_poll(s->f);
    }
}

int steal_send(state *s, int rank, const ferry_message *message)
{
    int error;
    while ((error = ferry_request_send(s->f, rank, message, NULL)) == FERRY_ENOMEM)
        (void)ferry_wait(s->f, PAUSE_NS);
    return error;
}

/* A rank that misses a report waits for the unit forever, so each is sent as soon as there is
 * memory. */
static void tell_all(state *s, int unit)
{
    const ferry_message message = {
        .handler = s->report, .word_count = 1, .words = {(uint64_t)unit}};
    s->reports[unit]++;
    steal_know(s, unit);
    for (int rank = 0; rank < ferry_ranks(s->f); rank++)
        if (rank != ferry_rank(s->f))
            (void)steal_send(s, rank, &message);
}

static void answer_waiting(state *s)
{
    if (s->requester >= 0 && s->answer.word == 0) {
        int rank = s->requester;
        s->requester = -1;
        give(s, rank, &s->answer);
    }
    /* A failure is a death, which is told otherwise too. */
    if (s->answer.word != 0 && ferry_op_wait(s->f, &s->answer) != 0)
        s->refused++;
}

int steal_step(state *s)
{
    die_if_due(s);
    if (s->load_count > 0) {
        s->current = s->load[--s->load_count];
        /* A copy may have come back that was done before. */
        if (!s->known[s->current]) {
            work(s, s->current);
            tell_all(s, s->current);
            s->done_here++;
        }
        s->current = -1;
    }
    if (s->options->style != EVENTS)
        answer_waiting(s);
    if (s->load_count < s->options->threshold && s->asked < 0 && ferry_ranks(s->f) > 1)
        ask(s);
    int count = s->load_count > 0 ? ferry_poll(s->f) : ferry_wait(s->f, PAUSE_NS);
    return count < 0 ? count : 0;
}

int steal_open(state *s)
{
    size_t units = (size_t)s->options->units;
    int ranks = ferry_ranks(s->f), rank = ferry_rank(s->f);
    s->load = calloc(2 * units + 1, sizeof(*s->load));
    s->known = calloc(units, 1);
    s->reports = calloc(units, 1);
    s->marks = calloc(units, 1);
    if (s->load == NULL || s->known == NULL || s->reports == NULL || s->marks == NULL)
        return FERRY_ENOMEM;
    for (int unit = 0; unit < s->options->units; unit++)
        if ((int)((int64_t)unit * ranks / s->options->units) == rank)
            s->load[s->load_count++] = unit;
    s->current = s->asked = s->requester = -1;
    s->random = (uint64_t)rank * 77 + 1;
    int error = ferry_handler_register(s->f, "want", on_want, &s->want);
    if (error == 0)
        error = ferry_handler_register(s->f, "give", on_give, &s->give);
    if (error == 0)
        error = ferry_handler_register(s->f, "report", on_report, &s->report);
    return error;
}

void steal_close(state *s)
{
    free(s->load);
    free(s->known);
    free(s->reports);
    free(s->marks);
}
