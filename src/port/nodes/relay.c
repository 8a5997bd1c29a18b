/* The thread's loop:
 *
 * - Look which ranks have come and gone, here and elsewhere.
 * - Pass on frames in both directions.
 * - Tell the ends of ranks that had gone at the look and have no frame left. */
#include "port/nodes/relay.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "port/shm/layout.h"

#define YIELDS 50
/* How long frames of a dead rank are kept for ranks that take none. */
#define DEAD_FRAMES_NS 20000000u
#define BUDGET 64

/* The facts about a number that are known here and were told to the others. */
enum { KNOWN_HERE = 1, KNOWN_ENDURES = 2, KNOWN_ENDS = 4, KNOWN_GONE = 8 };

struct fy_nodes_relay {
    nodes_port *p;
    const fy_node *node;
    void *base;
    fy_port *port;     /* of the relay's own place */
    fy_port **shadows; /* by number: the places of ranks elsewhere that have come; else NULL */
    endpoint **ends;   /* by number: later ranks here; made when needed */
    uint8_t *known;    /* by number: KNOWN_... */
    uint64_t *end_ns;  /* by number: when its death was seen; 0: it has not died */
    uint8_t *told;     /* by number of a later rank here, and process: it was told the end */
    pthread_t thread;
    atomic_bool stops, done;
};

static uint32_t state_at(const fy_node *node, int place)
{
    return fy_shm_state(node->segment, (uint32_t)place);
}

/* How many of the node's numbers have been given to later ranks. */
static int later_taken(const fy_node *node, int world)
{
    /* acquire: counts the numbers that a rank took before it left */
    uint32_t taken =
        atomic_load_explicit(&common_at(node->segment->base)->spawned, memory_order_acquire);
    return (int)taken - (node->later_first - world);
}

bool fy_node_is_empty(const fy_node *node, int world)
{
    bool empty = true;
    for (int i = 0; i < node->count; i++)
        empty = empty && state_at(node, fy_node_place(node, i)) >= SHM_LEFT;
    for (int i = 0; i < later_taken(node, world); i++)
        empty = empty && state_at(node, node->later_first + i) >= SHM_LEFT;
    return empty;
}

static bool is_later_here(const fy_nodes_relay *r, int number)
{
    return number >= r->p->world && r->p->place[number] >= 0;
}

endpoint *fy_nodes_relay_end(fy_nodes_relay *r, int number)
{
    endpoint **end = &r->ends[number];
    if (*end != NULL)
        return *end;
    endpoint *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return NULL;
    made->number = number;
    made->heap = r->port;
    if (fy_nodes_endpoint_init(r->p, made) != 0) {
        free(made);
        return NULL;
    }
    return *end = made;
}

/* As fy_nodes_relay_end, without the lock. */
static endpoint *end_of(fy_nodes_relay *r, int number)
{
    lock(r->p);
    endpoint *end = fy_nodes_relay_end(r, number);
    unlock(r->p);
    return end;
}

/* Sends a process a notice about a later rank here. Waits for memory as long as it takes. */
static void relay_tell(fy_nodes_relay *r, int number, fy_lane lane, int process, notices what)
{
    endpoint *from;
    while ((from = end_of(r, number)) == NULL)
        fy_clock_sleep_until(fy_clock_now_ns() + PAUSE_MAX_NS);
    fy_nodes_tell(r->p, from, lane, process, what);
}

static void bury(fy_nodes_relay *r, int number)
{
    r->known[number] |= KNOWN_GONE;
    r->port->ops->members.bury(r->port, number);
    for (int i = 0; i < r->p->ranks; i++)
        if (r->shadows[i] != NULL && (r->known[i] & KNOWN_GONE) == 0)
            r->shadows[i]->ops->members.bury(r->shadows[i], number);
}

/* Notes the end of a rank, when it is seen for the first time. */
static void note_end(fy_nodes_relay *r, int number, bool died)
{
    if ((r->known[number] & KNOWN_ENDS) != 0)
        return;
    r->known[number] |= KNOWN_ENDS;
    r->end_ns[number] = died ? fy_clock_now_ns() : 0;
}

/* Whether the time is over in which frames of a dead rank are kept. */
static bool is_stale(const fy_nodes_relay *r, int number)
{
    return r->end_ns[number] != 0 && fy_clock_now_ns() - r->end_ns[number] > DEAD_FRAMES_NS;
}

static void look_at_endurance(fy_nodes_relay *r, int number)
{
    /* seq_cst: as in shm_endure */
    bool endures = atomic_load(&rank_at(r->base, (uint32_t)number)->endures) != 0;
    if (endures == ((r->known[number] & KNOWN_ENDURES) != 0))
        return;
    r->known[number] ^= KNOWN_ENDURES;
    for (int i = 0; i < r->node->leader_count; i++)
        if (r->p->place[r->node->leaders[i]] < 0)
            relay_tell(r, number, FY_CONTROL, r->node->leaders[i],
                       endures ? NOTICES_ENDURES : NOTICES_MORTAL);
}

static void look_at_later(fy_nodes_relay *r, int number)
{
    uint32_t state = state_at(r->node, number);
    if (state == SHM_ABSENT || (r->known[number] & KNOWN_GONE) != 0)
        return;
    if (state != SHM_DEAD && (r->known[number] & KNOWN_HERE) == 0) {
        r->known[number] |= KNOWN_HERE;
        for (int i = 0; i < r->p->world; i++)
            if (r->p->place[i] < 0)
                relay_tell(r, number, FY_CONTROL, i, NOTICES_HERE);
    }
    if (state == SHM_JOINED)
        look_at_endurance(r, number);
    else
        note_end(r, number, state == SHM_DEAD);
}

/* Whether nothing is left to do for the later ranks of this node. */
static bool look_here(fy_nodes_relay *r)
{
    bool idle = true;
    int taken = later_taken(r->node, r->p->world);
    for (int i = 0; i < r->node->count; i++)
        if ((r->known[r->node->ranks[i]] & KNOWN_GONE) == 0 &&
            state_at(r->node, r->node->ranks[i]) >= SHM_LEFT)
            bury(r, r->node->ranks[i]);
    for (int i = 0; i < taken; i++) {
        look_at_later(r, r->node->later_first + i);
        idle = idle && (r->known[r->node->later_first + i] & KNOWN_GONE) != 0;
    }
    return idle;
}

/* Whether frames of a rank elsewhere wait on this node. */
static bool holds_frames(const fy_nodes_relay *r, int number)
{
    nodes_port *p = r->p;
    bool holds = false;
    lock(p);
    for (int i = 0; i < r->node->later_count; i++) {
        const endpoint *end = r->ends[r->node->later_first + i];
        holds = holds || (end != NULL && fy_nodes_holds(end, number));
    }
    unlock(p);
    return holds;
}

/* Fills the place of a rank elsewhere. Without memory, a later turn does it. Then tells the port of
 * that place which ranks have gone: nobody else would. */
static void fill_place(fy_nodes_relay *r, int number)
{
    fy_port *shadow;
    if (fy_shm_join(r->node->segment, number, &shadow) != 0)
        return;
    r->shadows[number] = shadow;
    for (int i = 0; i < r->p->ranks; i++)
        if ((r->known[i] & KNOWN_GONE) != 0)
            shadow->ops->members.bury(shadow, i);
}

/* Fills the places of ranks elsewhere that have come. A rank that has gone again counts only if it
 * has frames here. Ranks that came after it never knew it. */
static void look_elsewhere(fy_nodes_relay *r)
{
    for (int i = 0; i < r->p->ranks; i++) {
        fy_peer_state state = r->p->place[i] >= 0 ? FY_PEER_ABSENT : fy_nodes_far_state(r->p, i);
        if (state == FY_PEER_ABSENT || (r->known[i] & KNOWN_GONE) != 0)
            continue;
        if (state != FY_PEER_ALIVE)
            note_end(r, i, state == FY_PEER_DEAD);
        if (r->shadows[i] == NULL && (state == FY_PEER_ALIVE || holds_frames(r, i)))
            fill_place(r, i);
    }
}

/* The frame that is being passed on, and its lane. */
typedef struct passing {
    fy_nodes_relay *relay;
    fy_lane lane;
    int number; /* its target: a later rank here, or a rank elsewhere */
} passing;

/* Sends a frame of a later rank to another node. */
static fy_verdict pass_out(void *context, int source, const fy_frame *frame)
{
    const passing *w = context;
    fy_nodes_relay *r = w->relay;
    if (!is_later_here(r, source) || is_stale(r, source))
        return FY_TAKEN;
    endpoint *from = end_of(r, source);
    if (from == NULL)
        return FY_LEAVE;
    terms how = frame->block && frame->size_bytes > EAGER_MAX ? GIVEN : COPIED;
    /* It was kept for a rank, and would be freed with that while the binding still reads it. */
    if (how == GIVEN)
        (void)r->port->ops->heap.keep_for(r->port, (void *)(uintptr_t)frame->data,
                                          r->node->numbers);
    int error = fy_nodes_send_remote(r->p, from, w->lane, w->number, frame, how, NULL);
    if (error == FERRY_EAGAIN || error == FERRY_ENOMEM)
        return FY_LEAVE;
    return error == 0 && how == GIVEN ? FY_KEEP : FY_TAKEN;
}

/* Puts a frame for a later rank into its ring. */
static fy_verdict pass_in(void *context, int source, const fy_frame *frame)
{
    const passing *w = context;
    const fy_nodes_relay *r = w->relay;
    fy_port *shadow = r->shadows[source];
    if ((r->known[source] & KNOWN_GONE) != 0 || is_stale(r, source))
        return FY_TAKEN;
    if (shadow == NULL)
        return FY_LEAVE; /* its place was not filled at the last look */
    int error = frame->block
                    ? shadow->ops->heap.send_block(shadow, FY_APP, w->lane, w->number, frame)
                    : shadow->ops->transport.send(shadow, FY_APP, w->lane, w->number, frame);
    bool never = frame->size_bytes > r->node->segment->heap_bytes;
    if (error == FERRY_EAGAIN || (error == FERRY_ENOMEM && !never))
        return FY_LEAVE;
    if (error != 0 && error != FERRY_EPEER)
        fy_log_line(r->p->rank, "%zu bytes from rank %d to rank %d are lost: %s", frame->size_bytes,
                    source, w->number, ferry_strerror(error));
    return error == 0 && frame->block ? FY_KEEP : FY_TAKEN;
}

/* Takes in messages for this process, whose application thread may sleep. */
static void pump(fy_nodes_relay *r)
{
    nodes_port *p = r->p;
    bool came = false;
    lock(p);
    for (int lane = 0; lane < FY_LANES; lane++) {
        bool had = p->self.inlets[lane].head != NULL;
        fy_nodes_pump(p, (fy_lane)lane);
        came = came || (!had && p->self.inlets[lane].head != NULL);
    }
    unlock(p);
    if (came)
        r->port->ops->heap.rouse(r->port, p->rank);
}

static int pass_all(fy_nodes_relay *r)
{
    nodes_port *p = r->p;
    int passed = 0;
    passing w = {.relay = r};
    for (w.number = 0; w.number < p->ranks; w.number++)
        for (int lane = 0; lane < FY_LANES; lane++) {
            w.lane = (fy_lane)lane;
            fy_port *shadow = r->shadows[w.number];
            if (shadow != NULL && (r->known[w.number] & KNOWN_GONE) == 0)
                passed += shadow->ops->transport.poll(shadow, w.lane, BUDGET, pass_out, &w);
            if (!is_later_here(r, w.number))
                continue;
            lock(p);
            if (r->ends[w.number] != NULL)
                passed += fy_nodes_deliver(p, r->ends[w.number], w.lane, BUDGET, pass_in, &w);
            unlock(p);
        }
    return passed;
}

/* Whether all frames from a later rank to a rank elsewhere have been passed on, or nobody wants
 * them. */
static bool is_heard_out(const fy_nodes_relay *r, int number, int far)
{
    fy_port *shadow = r->shadows[far];
    if (shadow == NULL) /* there was no memory for its place yet, or it has not come */
        return fy_nodes_far_state(r->p, far) != FY_PEER_ALIVE;
    return (r->known[far] & KNOWN_GONE) != 0 || shadow->ops->members.silent(shadow, number);
}

/* As is_heard_out, for a process and all ranks for which it relays. */
static bool is_passed_on(const fy_nodes_relay *r, int number, int process)
{
    for (int i = 0; i < r->p->ranks; i++)
        if (r->p->place[i] < 0 && fy_nodes_home(r->p, i) == process && !is_heard_out(r, number, i))
            return false;
    return true;
}

/* Tells the end of a later rank to the processes that have got all its frames. */
static void tell_end(fy_nodes_relay *r, int number)
{
    notices what = r->end_ns[number] != 0 ? NOTICES_DEAD : NOTICES_BYE;
    bool all = true;
    for (int i = 0; i < r->p->world; i++) {
        uint8_t *told =
            &r->told[(size_t)(number - r->node->later_first) * (size_t)r->p->world + (size_t)i];
        if (r->p->place[i] >= 0 || *told != 0)
            continue;
        *told = is_passed_on(r, number, i);
        for (int lane = 0; lane < FY_LANES && *told != 0; lane++)
            relay_tell(r, number, (fy_lane)lane, i, what);
        all = all && *told != 0;
    }
    if (all)
        bury(r, number);
}

/* Marks a rank elsewhere as ended, when all its frames are in the rings. */
static void mark_end(fy_nodes_relay *r, int number)
{
    if (holds_frames(r, number))
        return;
    fy_controls_mark(r->base, r->node->segment->ranks, (uint32_t)number,
                     r->end_ns[number] != 0 ? SHM_DEAD : SHM_LEFT);
    bury(r, number);
}

static void settle_ends(fy_nodes_relay *r)
{
    for (int i = 0; i < r->p->ranks; i++) {
        if ((r->known[i] & (KNOWN_ENDS | KNOWN_GONE)) != KNOWN_ENDS)
            continue;
        if (r->p->place[i] >= 0)
            tell_end(r, i);
        else
            mark_end(r, i);
    }
}

static void tell_done(fy_nodes_relay *r)
{
    for (int i = 0; i < r->p->world; i++)
        for (int lane = 0; lane < FY_LANES && r->p->place[i] < 0; lane++)
            fy_nodes_tell(r->p, &r->p->self, (fy_lane)lane, i, NOTICES_DONE);
    /* release: pairs with the acquire in fy_nodes_relay_is_done */
    atomic_store_explicit(&r->done, true, memory_order_release);
}

static void *relay_run(void *arg)
{
    fy_nodes_relay *r = arg;
    uint64_t pause_ns = PAUSE_MIN_NS;
    int idle_turns = 0;
    /* acquire: pairs with fy_nodes_relay_stop */
    while (!atomic_load_explicit(&r->stops, memory_order_acquire)) {
        bool empty = !fy_nodes_relay_is_done(r) && fy_node_is_empty(r->node, r->p->world);
        if (look_here(r)) {
            if (empty)
                tell_done(r);
            r->port->ops->transport.wait(r->port, FY_HELPER, UINT64_MAX);
            continue;
        }
        pump(r);
        look_elsewhere(r);
        if (pass_all(r) > 0) {
            idle_turns = 0;
            pause_ns = PAUSE_MIN_NS;
        }
        settle_ends(r);
        if (idle_turns < YIELDS) {
            idle_turns++;
            sched_yield();
            continue;
        }
        r->port->ops->transport.wait(r->port, FY_HELPER, fy_clock_now_ns() + pause_ns);
        pause_ns = fy_pause_longer(pause_ns, PAUSE_MAX_NS);
    }
    return NULL;
}

static int relay_prepare(fy_nodes_relay *r)
{
    size_t ranks = (size_t)r->p->ranks;
    r->shadows = calloc(ranks, sizeof(*r->shadows));
    r->ends = calloc(ranks, sizeof(*r->ends));
    r->known = calloc(ranks, sizeof(*r->known));
    r->end_ns = calloc(ranks, sizeof(*r->end_ns));
    r->told = calloc((size_t)r->node->later_count * (size_t)r->p->world + 1, sizeof(*r->told));
    if (r->shadows == NULL || r->ends == NULL || r->known == NULL || r->end_ns == NULL ||
        r->told == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for a relay of %d ranks", r->p->ranks);
    int error = fy_shm_join(r->node->segment, r->node->numbers, &r->port);
    if (error == 0)
        r->port->ops->members.endure(r->port, true);
    return error;
}

static int start_thread(fy_nodes_relay *r)
{
    int error = fy_thread_create(&r->thread, relay_run, r);
    return error == 0 ? 0
                      : fy_error_set(FERRY_ESYSTEM, "open: starting a relay: %s", strerror(error));
}

int fy_nodes_relay_start(nodes_port *p)
{
    fy_nodes_relay *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for a relay");
    r->p = p;
    r->node = p->node;
    r->base = p->node->segment->base;
    int error = relay_prepare(r);
    p->relay = r;
    p->locks = true;
    if (error == 0)
        error = start_thread(r);
    if (error == 0)
        return 0;
    p->relay = NULL;
    p->locks = p->helper;
    fy_nodes_relay_free(r);
    return error;
}

bool fy_nodes_relay_is_done(const fy_nodes_relay *relay)
{
    return atomic_load_explicit(&relay->done, memory_order_acquire);
}

void fy_nodes_relay_stop(fy_nodes_relay *r)
{
    /* release: pairs with the acquire in relay_run */
    atomic_store_explicit(&r->stops, true, memory_order_release);
    fy_shm_signal(rank_at(r->base, (uint32_t)r->node->numbers), FY_HELPER);
    pthread_join(r->thread, NULL);
}

void fy_nodes_relay_free(fy_nodes_relay *r)
{
    for (int i = 0; i < r->p->ranks && r->ends != NULL; i++)
        if (r->ends[i] != NULL) {
            fy_nodes_undelivered_free(r->p, r->ends[i]);
            fy_nodes_endpoint_fini(r->p, r->ends[i]);
            free(r->ends[i]);
        }
    for (int i = 0; i < r->p->ranks && r->shadows != NULL; i++)
        if (r->shadows[i] != NULL)
            r->shadows[i]->ops->transport.close(r->shadows[i]);
    if (r->port != NULL)
        r->port->ops->transport.close(r->port);
    free(r->shadows);
    free((void *)r->ends);
    free(r->known);
    free(r->end_ns);
    free(r->told);
    free(r);
}
