/* The activity of a rank, as its control block tells it, and the status query of others.
 *
 * The asker may be anybody who has mapped the control blocks: the launcher, `ferry why`, a rank. It
 * numbers its query in each block, counts an event there and wakes both threads, as for a peer's
 * death. The thread that notices answers in the block, as text. Several may ask at the same time: a
 * rank answers the newest query, and a line that two answers share is nonsense at worst. The code
 * that prints the answers is in port/shm/why. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port/shm/port_state.h"
#include "port/shm/why/why.h"

static const char *const doings[] = {
    [FY_DOING_MAIN] = "in the program's own code",
    [FY_DOING_HANDLER] = "in handler",
    [FY_DOING_TASK] = "in task",
    [FY_DOING_IDLE] = "waiting for messages",
    [FY_DOING_BARRIER] = "in a barrier",
    [FY_DOING_COLLECTIVE] = "in a collective operation",
    [FY_DOING_QUIESCE] = "in ferry_quiesce",
    [FY_DOING_CLOSE] = "in ferry_close",
    [FY_DOING_SEND] = "waiting to send",
    [FY_DOING_BARRIER_OF_SOME] = "in a barrier",
    [FY_DOING_COLLECTIVE_OF_SOME] = "in a collective operation",
    [FY_DOING_LEAVE] = "in ferry_leave",
};

void fy_doing_describe(const shm_rank *control, const char *lead, char *out, size_t size)
{
    /* seq_cst, though any order would do */
    uint64_t word = atomic_load(&control->note.doing);
    uint32_t what = (uint32_t)word, handler = (uint32_t)(word >> 32);
    out[0] = '\0';
    if (what >= sizeof(doings) / sizeof(doings[0]))
        return;
    if ((what != FY_DOING_HANDLER && what != FY_DOING_TASK) || handler >= SHM_HANDLERS_MAX) {
        snprintf(out, size, "%s%s", lead, doings[what]);
        return;
    }
    char name[SHM_NAME_BYTES];
    memcpy(name, control->name[handler], sizeof(name));
    name[sizeof(name) - 1] = '\0';
    for (char *c = name; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    snprintf(out, size, "%s%s \"%s\" (%u)", lead, doings[what], name, handler);
}

bool fy_shm_asked(fy_port *port)
{
    const shm_rank *self = state_of(port)->self;
    /* seq_cst: after the look at the events, which are counted later than the query */
    return atomic_load(&self->asked) != atomic_load(&self->answered);
}

void fy_shm_answer(fy_port *port, const char *text, size_t size_bytes)
{
    shm_rank *self = state_of(port)->self;
    size_t words = sizeof(self->answer) / sizeof(self->answer[0]);
    /* seq_cst, and the store below: the answer is to the query read here */
    uint32_t asked = atomic_load(&self->asked);
    for (size_t i = 0; i < words; i++) {
        uint64_t word = 0;
        size_t left = size_bytes > i * 8 ? size_bytes - i * 8 : 0;
        memcpy(&word, text + i * 8, left < 8 ? left : 8);
        atomic_store_explicit(&self->answer[i], word, memory_order_relaxed);
        if (left < 8)
            break;
    }
    /* seq_cst: after the words */
    atomic_store(&self->answered, asked);
}

void fy_why_query(const fy_controls *controls)
{
    for (uint32_t i = 0; i < controls->ranks; i++) {
        shm_rank *rank = rank_at(controls->base, i);
        if (fy_why_state(rank) == SHM_JOINED)
            /* seq_cst: before the events */
            atomic_fetch_add(&rank->asked, 1);
    }
    fy_controls_tell(controls->base, controls->ranks);
}

bool fy_shm_ask(fy_port *port, bool print)
{
    const fy_segment *segment = state_of(port)->segment;
    const fy_controls controls = {
        .base = segment->base, .ranks = segment->ranks, .starting = segment->starting};
    if (print)
        fy_why_print(&controls, STDERR_FILENO);
    else
        fy_why_query(&controls);
    return true;
}
