/* Deadlocks that reach over several nodes. A rank cannot read what a rank on another node waits
 * for, so the ranks tell each other.
 *
 * A rank that is asked begins a round, or joins one of which it has heard: it sends to all other
 * ranks, in a notice, what it waits for. A rank that finds itself in a deadlock adds that to its
 * answer. In a round that a stalled call began nobody prints answers, so the lowest rank in the
 * deadlock logs it. Only the ranks in the deadlock need to take part. They wait, so they look for
 * messages.
 *
 * Queries at the same time on several nodes begin rounds with the same number, which count as one
 * round. A query within ROUND_NS of the last is answered from the last round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/nodes/port_state.h"

#define ROUND_NS UINT64_C(100000000)

_Static_assert(FY_AWAITED_MAX * sizeof(int32_t) == WORDS_BYTES, "a notice has room for them");

static void begin_round(nodes_port *p, uint32_t number, bool logs)
{
    deadlocks *c = &p->deadlocks;
    if (c->all == NULL)
        c->all = calloc((size_t)p->ranks,
                        sizeof(*c->all)); /* without memory this rank finds no deadlock */
    else
        memset(c->all, 0, (size_t)p->ranks * sizeof(*c->all));
    for (int rank = 0; rank < p->ranks && c->all != NULL; rank++)
        c->all[rank].rank = rank;
    c->round = number;
    c->logs = logs;
    c->begun_ns = fy_clock_now_ns();
    c->found = c->notices = false;
    c->deadlock[0] = '\0';
}

static void answer_here(nodes_port *p)
{
    deadlocks *c = &p->deadlocks;
    char text[FY_ANSWER_BYTES];
    int length = snprintf(text, sizeof(text), "%s%s%s%s", c->found ? "in a deadlock: " : "",
                          c->deadlock, c->found ? "\n" : "", c->text);
    size_t used = length < (int)sizeof(text) ? (size_t)length : sizeof(text) - 1;
    p->near->ops->diagnosis.answer(p->near, text, used);
}

/* Tells all ranks what this rank waits for, as its answer says. */
static void tell_all(nodes_port *p)
{
    deadlocks *c = &p->deadlocks;
    const shm_rank *self =
        rank_at(p->node->segment->base, (uint32_t)fy_node_place(p->node, p->node->self));
    fy_waiting own = {
        .rank = p->rank,
        .lives = true,
        .answered = true,
        /* relaxed: this thread or the other thread of this rank has just written it */
        .doing = (uint32_t)atomic_load_explicit(&self->note.doing, memory_order_relaxed)};
    char lines[FY_ANSWER_BYTES], *save = NULL, *words;
    memcpy(lines, c->text, sizeof(lines));
    for (char *line = strtok_r(lines, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save))
        (void)fy_waiting_read(&own, line, &words);
    fy_frame frame = {.kind = (uint8_t)own.doing,
                      .word_count = FY_FRAME_WORDS,
                      .op = c->logs,
                      .tag = own.count,
                      .aux = c->round};
    memcpy(frame.words, own.awaited, sizeof(own.awaited));
    /* Ranks that joined later are asked on their own node alone. */
    for (int rank = 0; rank < p->world; rank++)
        if (rank != p->rank && p->port.ops->members.peer(&p->port, rank) == FY_PEER_ALIVE)
            (void)fy_nodes_notice_with(p, &p->self, FY_CONTROL, rank, WIRE_WAITS, &frame);
    if (c->all != NULL)
        c->all[p->rank] = own;
    c->told = c->round;
    c->notices = true;
    fy_nodes_rouse_self(p);
}

void fy_nodes_heard(nodes_port *p, int source, const wire *head, const unsigned char *words)
{
    deadlocks *c = &p->deadlocks;
    if (head->word_count != FY_FRAME_WORDS)
        return;
    if ((int32_t)(head->aux - c->round) > 0)
        begin_round(p, head->aux, head->op != 0);
    if (head->aux != c->round || c->all == NULL)
        return;
    fy_waiting *w = &c->all[source];
    w->lives = w->answered = true;
    w->doing = head->kind;
    w->count = head->tag < 0 || head->tag > FY_AWAITED_MAX ? 0 : (uint8_t)head->tag;
    memcpy(w->awaited, words, sizeof(w->awaited));
    c->notices = true;
    fy_nodes_rouse_self(p);
}

static void look_for_deadlock(nodes_port *p)
{
    deadlocks *c = &p->deadlocks;
    c->notices = false;
    if (c->found || c->all == NULL || !c->all[p->rank].answered)
        return;
    int lowest = fy_waiting_deadlock(c->all, (uint32_t)p->ranks, (uint32_t)p->rank, c->deadlock,
                                     sizeof(c->deadlock));
    c->found = lowest >= 0;
    if (c->found)
        answer_here(p);
    if (lowest == p->rank && c->logs)
        fy_log_line(p->rank, "deadlock: %s", c->deadlock);
}

bool fy_nodes_asked(fy_port *port)
{
    nodes_port *p = port_of(port);
    deadlocks *c = &p->deadlocks;
    bool asked = p->near->ops->diagnosis.asked(p->near);
    lock(p);
    if (!asked && c->notices)
        look_for_deadlock(p);
    asked = asked || c->told != c->round;
    unlock(p);
    return asked;
}

void fy_nodes_answer(fy_port *port, const char *text, size_t size_bytes)
{
    nodes_port *p = port_of(port);
    deadlocks *c = &p->deadlocks;
    lock(p);
    size_t kept = size_bytes < sizeof(c->text) ? size_bytes : sizeof(c->text) - 1;
    memcpy(c->text, text, kept);
    c->text[kept] = '\0';
    if (c->told == c->round && fy_clock_now_ns() - c->begun_ns > ROUND_NS)
        begin_round(p, c->round + 1, false);
    answer_here(p);
    if (c->told != c->round)
        tell_all(p);
    unlock(p);
}

/* Asks no other rank here: core does that, by frames. If it does not print, has deadlocks
 * logged. */
bool fy_nodes_ask(fy_port *port, bool print)
{
    nodes_port *p = port_of(port);
    (void)print;
    lock(p);
    begin_round(p, p->deadlocks.round + 1, true);
    fy_nodes_rouse_self(p);
    unlock(p);
    return false;
}
