/* The port over several nodes: its table. All that is not about messages
 * is port shm's. */
#include "port/nodes/port_state.h"

#include "base/clock.h"
#include "base/error.h"
#include "port/nodes/joiner.h"
#include "port/nodes/relay.h"
#include "port/shm/layout.h"

/* The number of the rank at a place of this node's segment; -1: none. */
static int number_at(const nodes_port *p, int place)
{
    return p->node->numbers != 0 ? place : p->node->ranks[place];
}

static void nodes_query(const fy_port *port, fy_port_info *info)
{
    const nodes_port *p = (const nodes_port *)(const void *)port;
    p->near->ops->transport.query(p->near, info);
    info->rank = p->rank;
    info->ranks = p->ranks;
    info->starting = p->node->numbers != 0 ? p->world : 0; /* the node's count is not the job's */
    info->shares_memory = false;
    info->wakes_helper = false;
}

static int nodes_send(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                      const fy_frame *frame)
{
    nodes_port *p = port_of(port);
    if (rank < 0 || rank >= p->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    if (p->place[rank] >= 0)
        return p->near->ops->transport.send(p->near, thread, lane, p->place[rank], frame);
    return fy_nodes_send_remote(p, &p->self, lane, rank, frame, COPIED, NULL);
}

static int nodes_send_lent(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                           const fy_frame *frame, atomic_bool *lent)
{
    nodes_port *p = port_of(port);
    /* relaxed: no other thread knows of it yet */
    atomic_store_explicit(lent, false, memory_order_relaxed);
    /* A target may wait inside a call of its own to the network, and then takes no message. If the
     * sender waited for it, and it for the sender, both would wait forever. */
    if (!p->alone || rank < 0 || rank >= p->ranks || p->place[rank] >= 0 ||
        frame->word_count > FY_FRAME_WORDS)
        return nodes_send(port, thread, lane, rank, frame);
    return fy_nodes_send_remote(p, &p->self, lane, rank, frame, LENT, lent);
}

static int nodes_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                            const fy_frame *frame)
{
    nodes_port *p = port_of(port);
    if (rank < 0 || rank >= p->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    if (p->place[rank] >= 0)
        return p->near->ops->heap.send_block(p->near, thread, lane, p->place[rank], frame);
    if (p->near->ops->heap.owner(p->near, thread, frame->data, frame->size_bytes) < 0)
        return FERRY_EINVAL;
    return fy_nodes_send_remote(p, &p->self, lane, rank, frame, GIVEN, NULL);
}

/* Delivers frames of the node with the number in the job of their source. */
typedef struct renaming {
    const int *ranks;
    fy_deliver *deliver;
    void *context;
} renaming;

static fy_verdict deliver_near(void *context, int source, const fy_frame *frame)
{
    const renaming *r = context;
    return r->deliver(r->context, r->ranks[source], frame);
}

static int nodes_poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    nodes_port *p = port_of(port);
    renaming r = {.ranks = p->node->ranks, .deliver = deliver, .context = context};
    int taken = fy_nodes_poll_remote(p, lane, budget, deliver, context);
    if (taken < budget && p->node->numbers != 0)
        taken += p->near->ops->transport.poll(p->near, lane, budget - taken, deliver, context);
    else if (taken < budget)
        taken += p->near->ops->transport.poll(p->near, lane, budget - taken, deliver_near, &r);
    return taken;
}

static bool nodes_pending(fy_port *port, fy_lane lane)
{
    nodes_port *p = port_of(port);
    if (p->near->ops->transport.pending(p->near, lane))
        return true;
    lock(p);
    if (!fy_nodes_may_skip(p, lane))
        fy_nodes_pump(p, lane);
    bool ready = fy_nodes_ready(p, lane);
    unlock(p);
    return ready;
}

static void *nodes_alloc(fy_port *port, size_t size_bytes, int rank)
{
    const nodes_port *p = port_of(port);
    int place = rank < 0 ? rank : p->place[rank];
    return p->near->ops->heap.alloc(p->near, size_bytes, place);
}

static int nodes_release(fy_port *port, void *address)
{
    fy_port *near = port_of(port)->near;
    return near->ops->heap.release(near, address);
}

static int nodes_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    const nodes_port *p = port_of(port);
    int place = p->near->ops->heap.owner(p->near, thread, address, size_bytes);
    int number = place < 0 ? -1 : number_at(p, place);
    /* Heaps at places that a relay fills do not belong to the ranks of these places. */
    return number < 0 || number >= p->ranks || p->place[number] < 0 ? -1 : number;
}

static int nodes_keep_for(fy_port *port, void *address, int rank)
{
    const nodes_port *p = port_of(port);
    int place = rank < 0 ? rank : p->place[rank];
    if (rank >= 0 && place < 0)
        return FERRY_EINVAL;
    return p->near->ops->heap.keep_for(p->near, address, place);
}

static void nodes_free_gone(fy_port *port, int rank)
{
    const nodes_port *p = port_of(port);
    if (p->place[rank] >= 0)
        p->near->ops->heap.free_gone(p->near, p->place[rank]);
}

static void *nodes_board(fy_port *port, int rank)
{
    const nodes_port *p = port_of(port);
    return p->place[rank] < 0 ? NULL : p->near->ops->heap.board(p->near, p->place[rank]);
}

static void nodes_rouse(fy_port *port, int rank)
{
    const nodes_port *p = port_of(port);
    if (p->place[rank] >= 0)
        p->near->ops->heap.rouse(p->near, p->place[rank]);
}

/* Counts changes on this node, and goodbyes from other nodes too: receive.c adds them to the same
 * counter. */
static const _Atomic uint32_t *nodes_changes(fy_port *port)
{
    fy_port *near = port_of(port)->near;
    return near->ops->members.changes(near);
}

static void nodes_wake(fy_port *port, fy_thread thread)
{
    fy_port *near = port_of(port)->near;
    near->ops->transport.wake(near, thread);
}

static void nodes_serve(fy_port *port, fy_thread thread)
{
    nodes_port *p = port_of(port);
    /* relaxed: as in fy_nodes_wait */
    atomic_store_explicit(&p->serve, (uint32_t)thread, memory_order_relaxed);
    p->near->ops->transport.serve(p->near, thread);
}

static uint64_t nodes_now(fy_port *port)
{
    (void)port;
    return fy_clock_now_ns();
}

static uint64_t nodes_cpu(fy_port *port)
{
    (void)port;
    return fy_clock_cpu_ns();
}

static void nodes_advance(fy_port *port, uint64_t ns)
{
    fy_port *near = port_of(port)->near;
    near->ops->host.advance(near, ns);
}

static uint64_t nodes_quantum(fy_port *port, uint64_t ns)
{
    nodes_port *p = port_of(port);
    /* relaxed: as in fy_nodes_wait */
    uint64_t before = atomic_load_explicit(&p->quantum_ns, memory_order_relaxed);
    if (ns != 0)
        atomic_store_explicit(&p->quantum_ns, ns, memory_order_relaxed);
    return before;
}

static int nodes_spawn(fy_port *port, void (*entry)(void *arg), void *arg)
{
    nodes_port *p = port_of(port);
    if (!p->helper_allowed)
        return FERRY_ENOTSUP;
    bool locked = p->locks; /* a relay uses the lock */
    p->helper = true;
    if (!locked)
        p->locks = true;
    int error = p->near->ops->host.spawn(p->near, entry, arg);
    p->helper = error == 0;
    if (!locked)
        p->locks = p->helper;
    return error;
}

static void nodes_join(fy_port *port)
{
    nodes_port *p = port_of(port);
    p->near->ops->host.join(p->near);
    p->helper = false;
    if (p->relay == NULL)
        p->locks = false;
}

static fy_peer_state nodes_peer(fy_port *port, int rank)
{
    nodes_port *p = port_of(port);
    if (p->place[rank] >= 0)
        return p->near->ops->members.peer(p->near, p->place[rank]);
    return fy_nodes_far_state(p, rank);
}

static void nodes_doing(fy_port *port, fy_doing what, uint16_t handler, uint64_t since_ns)
{
    fy_port *near = port_of(port)->near;
    near->ops->diagnosis.doing(near, what, handler, since_ns);
}

static fy_doing_note *nodes_note(fy_port *port)
{
    fy_port *near = port_of(port)->near;
    return near->ops->diagnosis.note(near);
}

static void nodes_name_handler(fy_port *port, uint16_t handler, const char *name)
{
    fy_port *near = port_of(port)->near;
    near->ops->diagnosis.name_handler(near, handler, name);
}

static int nodes_spawn_ranks(fy_port *port, int count, char *const argv[], int *first)
{
    const nodes_port *p = port_of(port);
    if (p->node->numbers != 0 && p->node->later_count == 0)
        return fy_nodes_spawn_ranks_error(FERRY_ENOMEM, count, p->ranks);
    if (p->node->numbers != 0)
        return fy_nodes_spawn_ranks_error(
            p->near->ops->members.spawn_ranks(p->near, count, argv, first), count, p->ranks);
    return fy_error_set(
        FERRY_ENOTSUP, "the job's %d ranks do not all share memory (%d share it here), and %s",
        p->world, p->node->count,
        p->helper_allowed ? "FERRY_RANKS_MAX leaves no room for more on every one of them"
                          : "no thread but the program's may call MPI (MPI_THREAD_MULTIPLE), to "
                            "pass on messages of those that join later");
}

static void nodes_bury(fy_port *port, int rank)
{
    const nodes_port *p = port_of(port);
    if (p->place[rank] >= 0)
        p->near->ops->members.bury(p->near, p->place[rank]);
    else if (p->node->numbers != 0)
        p->near->ops->members.bury(p->near, rank);
}

/* Counts for deaths of ranks that joined later. If a rank that the binding connects dies, the job
 * ends. */
static void nodes_endure(fy_port *port, bool on)
{
    nodes_port *p = port_of(port);
    if (p->node->numbers == 0)
        return;
    p->near->ops->members.endure(p->near, on);
    for (int i = 0; i < p->node->leader_count; i++)
        if (p->place[p->node->leaders[i]] < 0)
            fy_nodes_tell(p, &p->self, FY_CONTROL, p->node->leaders[i],
                          on ? NOTICES_ENDURES : NOTICES_MORTAL);
}

static void nodes_describe(const fy_port *port, char *out, size_t size)
{
    const fy_port *near = ((const nodes_port *)(const void *)port)->near;
    near->ops->diagnosis.describe(near, out, size);
}

static int nodes_outcome(fy_port *port, int rank)
{
    const nodes_port *p = port_of(port);
    return p->place[rank] >= 0 ? p->near->ops->members.outcome(p->near, p->place[rank]) : -1;
}

/* Tells all ranks that this one ends, if a rank of another node may have died unseen here. */
static void nodes_end_quietly(fy_port *port)
{
    const nodes_port *p = port_of(port);
    if (p->node->count == p->world && p->node->numbers == 0)
        p->near->ops->members.end_quietly(p->near);
}

/* Ranks that join on other nodes are not held off. */
static bool nodes_shut(fy_port *port, uint32_t changes)
{
    fy_port *near = port_of(port)->near;
    return near->ops->members.shut(near, changes);
}

static bool nodes_silent(fy_port *port, int rank)
{
    nodes_port *p = port_of(port);
    if (p->place[rank] >= 0)
        return p->near->ops->members.silent(p->near, p->place[rank]);
    lock(p);
    bool silent = fy_nodes_is_silent(p, rank);
    unlock(p);
    return silent;
}

static void nodes_close(fy_port *port)
{
    nodes_port *p = port_of(port);
    for (int rank = 0; rank < p->world; rank++)
        for (int lane = 0; lane < FY_LANES && p->place[rank] < 0; lane++)
            fy_nodes_tell(p, &p->self, (fy_lane)lane, rank, NOTICES_BYE);
    fy_nodes_flush(p, FLUSH_NS);
    lock(p);
    fy_nodes_drop(p, &p->self);
    p->closed = true;
    unlock(p);
    p->near->ops->transport.close(p->near);
}

const fy_port_ops fy_nodes_ops = {
    .version = FY_PORT_VERSION,
    .name = "nodes",
    .transport =
        {
            .version = FY_TRANSPORT_VERSION,
            .close = nodes_close,
            .query = nodes_query,
            .send = nodes_send,
            .send_lent = nodes_send_lent,
            .poll = nodes_poll,
            .pending = nodes_pending,
            .wait = fy_nodes_wait,
            .wake = nodes_wake,
            .serve = nodes_serve,
        },
    .host =
        {
            .version = FY_HOST_VERSION,
            .now = nodes_now,
            .cpu = nodes_cpu,
            .advance = nodes_advance,
            .spawn = nodes_spawn,
            .join = nodes_join,
            .quantum = nodes_quantum,
        },
    .heap =
        {
            .version = FY_HEAP_VERSION,
            .send_block = nodes_send_block,
            .alloc = nodes_alloc,
            .release = nodes_release,
            .owner = nodes_owner,
            .keep_for = nodes_keep_for,
            .free_gone = nodes_free_gone,
            .board = nodes_board,
            .rouse = nodes_rouse,
        },
    .members =
        {
            .version = FY_MEMBERS_VERSION,
            .changes = nodes_changes,
            .peer = nodes_peer,
            .endure = nodes_endure,
            .spawn_ranks = nodes_spawn_ranks,
            .bury = nodes_bury,
            .silent = nodes_silent,
            .outcome = nodes_outcome,
            .end_quietly = nodes_end_quietly,
            .shut = nodes_shut,
        },
    .diagnosis =
        {
            .version = FY_DIAGNOSIS_VERSION,
            .doing = nodes_doing,
            .note = nodes_note,
            .name_handler = nodes_name_handler,
            .describe = nodes_describe,
            .asked = fy_nodes_asked,
            .answer = fy_nodes_answer,
            .ask = fy_nodes_ask,
        },
};
