/* The port over several nodes: its table, its beginning and its end. What is not about messages is
 * port shm's. */
#include "port/mpi/port_state.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"

/* How long a rank that leaves waits for what it has sent to be received. */
#define FLUSH_NS UINT64_C(1000000000)

peer *fy_mpi_peer_make(mpi_port *p, int rank)
{
    p->peers[rank] = calloc(1, sizeof(peer));
    for (int lane = 0; lane < FY_LANES && p->peers[rank] != NULL; lane++)
        p->peers[rank]->in[lane].source = rank;
    return p->peers[rank];
}

static void mpi_query(const fy_port *port, fy_port_info *info)
{
    const mpi_port *p = (const mpi_port *)(const void *)port;
    p->near->ops->query(p->near, info);
    info->rank = p->rank;
    info->ranks = p->ranks;
    info->starting = 0; /* that of the node is not the job's */
    info->shares_memory = false;
    info->wakes_helper = false;
}

static int mpi_send(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame)
{
    mpi_port *p = port_of(port);
    if (rank < 0 || rank >= p->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    if (p->place[rank] >= 0)
        return p->near->ops->send(p->near, thread, lane, p->place[rank], frame);
    return fy_mpi_send_remote(p, lane, rank, frame, COPIED, NULL);
}

static int mpi_send_lent(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                         const fy_frame *frame, atomic_bool *lent)
{
    mpi_port *p = port_of(port);
    /* relaxed: nobody else knows of it yet */
    atomic_store_explicit(lent, false, memory_order_relaxed);
    /* A target that waits in MPI itself takes nothing up: a sender that waited for it, while it
     * waited for that sender, would wait for ever. */
    if (!p->alone || rank < 0 || rank >= p->ranks || p->place[rank] >= 0 ||
        frame->word_count > FY_FRAME_WORDS)
        return mpi_send(port, thread, lane, rank, frame);
    return fy_mpi_send_remote(p, lane, rank, frame, LENT, lent);
}

static int mpi_send_block(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                          const fy_frame *frame)
{
    mpi_port *p = port_of(port);
    if (rank < 0 || rank >= p->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    if (p->place[rank] >= 0)
        return p->near->ops->send_block(p->near, thread, lane, p->place[rank], frame);
    if (p->near->ops->owner(p->near, thread, frame->data, frame->size_bytes) < 0)
        return FERRY_EINVAL;
    return fy_mpi_send_remote(p, lane, rank, frame, GIVEN, NULL);
}

/* Gives frames of the node their source's rank in the job. */
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

static int mpi_poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    mpi_port *p = port_of(port);
    renaming r = {.ranks = p->node->ranks, .deliver = deliver, .context = context};
    int taken = fy_mpi_poll_remote(p, lane, budget, deliver, context);
    if (taken < budget)
        taken += p->near->ops->poll(p->near, lane, budget - taken, deliver_near, &r);
    return taken;
}

static bool mpi_pending(fy_port *port, fy_lane lane)
{
    mpi_port *p = port_of(port);
    if (p->near->ops->pending(p->near, lane))
        return true;
    lock(p);
    if (!fy_mpi_may_skip(p, lane))
        fy_mpi_pump(p, lane);
    bool ready = fy_mpi_ready(p, lane);
    unlock(p);
    return ready;
}

static void *mpi_alloc(fy_port *port, size_t size_bytes, int rank)
{
    const mpi_port *p = port_of(port);
    int place = rank < 0 ? rank : p->place[rank];
    return p->near->ops->alloc(p->near, size_bytes, place);
}

static int mpi_release(fy_port *port, void *address)
{
    fy_port *near = port_of(port)->near;
    return near->ops->release(near, address);
}

static int mpi_owner(fy_port *port, fy_thread thread, const void *address, size_t size_bytes)
{
    const mpi_port *p = port_of(port);
    int place = p->near->ops->owner(p->near, thread, address, size_bytes);
    return place < 0 ? -1 : p->node->ranks[place];
}

static int mpi_keep_for(fy_port *port, void *address, int rank)
{
    const mpi_port *p = port_of(port);
    int place = rank < 0 ? rank : p->place[rank];
    if (rank >= 0 && place < 0)
        return FERRY_EINVAL;
    return p->near->ops->keep_for(p->near, address, place);
}

static void mpi_free_gone(fy_port *port, int rank)
{
    const mpi_port *p = port_of(port);
    if (p->place[rank] >= 0)
        p->near->ops->free_gone(p->near, p->place[rank]);
}

static void *mpi_board(fy_port *port, int rank)
{
    const mpi_port *p = port_of(port);
    return p->place[rank] < 0 ? NULL : p->near->ops->board(p->near, p->place[rank]);
}

static void mpi_rouse(fy_port *port, int rank)
{
    const mpi_port *p = port_of(port);
    if (p->place[rank] >= 0)
        p->near->ops->rouse(p->near, p->place[rank]);
}

/* Goodbyes from other nodes are counted in with what changes on this one (receive.c). */
static const _Atomic uint32_t *mpi_changes(fy_port *port)
{
    fy_port *near = port_of(port)->near;
    return near->ops->changes(near);
}

static void mpi_wake(fy_port *port, fy_thread thread)
{
    fy_port *near = port_of(port)->near;
    near->ops->wake(near, thread);
}

static void mpi_serve(fy_port *port, fy_thread thread)
{
    mpi_port *p = port_of(port);
    /* relaxed: as in fy_mpi_wait */
    atomic_store_explicit(&p->serve, (uint32_t)thread, memory_order_relaxed);
    p->near->ops->serve(p->near, thread);
}

static uint64_t mpi_now(fy_port *port)
{
    (void)port;
    return fy_clock_now_ns();
}

static uint64_t mpi_cpu(fy_port *port)
{
    (void)port;
    return fy_clock_cpu_ns();
}

static void mpi_advance(fy_port *port, uint64_t ns)
{
    fy_port *near = port_of(port)->near;
    near->ops->advance(near, ns);
}

static int mpi_spawn(fy_port *port, void (*entry)(void *arg), void *arg)
{
    mpi_port *p = port_of(port);
    if (!p->helper_allowed)
        return FERRY_ENOTSUP;
    p->locks = true;
    int error = p->near->ops->spawn(p->near, entry, arg);
    p->locks = error == 0;
    return error;
}

static void mpi_join(fy_port *port)
{
    mpi_port *p = port_of(port);
    p->near->ops->join(p->near);
    p->locks = false;
}

static fy_peer_state mpi_peer(fy_port *port, int rank)
{
    mpi_port *p = port_of(port);
    if (p->place[rank] >= 0)
        return p->near->ops->peer(p->near, p->place[rank]);
    /* acquire: pairs with take_notice */
    bool left = atomic_load_explicit(&p->left[rank], memory_order_acquire) == FY_LANES;
    return left ? FY_PEER_LEFT : FY_PEER_ALIVE;
}

static void mpi_doing(fy_port *port, fy_doing what, uint16_t handler, uint64_t since_ns)
{
    fy_port *near = port_of(port)->near;
    near->ops->doing(near, what, handler, since_ns);
}

static void mpi_name_handler(fy_port *port, uint16_t handler, const char *name)
{
    fy_port *near = port_of(port)->near;
    near->ops->name_handler(near, handler, name);
}

static int mpi_recruit(fy_port *port, int count, char *const argv[], int *first)
{
    const mpi_port *p = port_of(port);
    (void)count;
    (void)argv;
    (void)first;
    return fy_error_set(FERRY_ENOTSUP,
                        "the job's %d ranks do not all share memory (%d share it here), and only "
                        "where all do can ranks join later",
                        p->ranks, p->node->count);
}

static void mpi_bury(fy_port *port, int rank)
{
    const mpi_port *p = port_of(port);
    if (p->place[rank] >= 0)
        p->near->ops->bury(p->near, p->place[rank]);
}

static bool mpi_silent(fy_port *port, int rank)
{
    mpi_port *p = port_of(port);
    if (p->place[rank] >= 0)
        return p->near->ops->silent(p->near, p->place[rank]);
    lock(p);
    bool silent = fy_mpi_is_silent(p, rank);
    unlock(p);
    return silent;
}

/* Until MPI is done with what was sent, or those who should receive it have left or take none. */
static void flush(mpi_port *p)
{
    uint64_t end = fy_clock_now_ns() + FLUSH_NS;
    while (fy_mpi_reap(p) && fy_clock_now_ns() < end) {
        fy_mpi_pump(p, FY_CONTROL);
        fy_mpi_pump(p, FY_DATA);
        sched_yield();
    }
}

static void mpi_close(fy_port *port)
{
    mpi_port *p = port_of(port);
    for (int rank = 0; rank < p->ranks; rank++)
        if (p->place[rank] < 0)
            for (int lane = 0; lane < FY_LANES; lane++)
                fy_mpi_notice(p, (fy_lane)lane, rank, WIRE_BYE);
    flush(p);
    fy_mpi_drop(p);
    p->closed = true;
    p->near->ops->close(p->near);
}

static const fy_port_ops mpi_ops = {
    .version = FY_PORT_VERSION,
    .name = "mpi",
    .close = mpi_close,
    .query = mpi_query,
    .send = mpi_send,
    .send_lent = mpi_send_lent,
    .send_block = mpi_send_block,
    .poll = mpi_poll,
    .pending = mpi_pending,
    .alloc = mpi_alloc,
    .release = mpi_release,
    .owner = mpi_owner,
    .keep_for = mpi_keep_for,
    .free_gone = mpi_free_gone,
    .board = mpi_board,
    .rouse = mpi_rouse,
    .changes = mpi_changes,
    .wait = fy_mpi_wait,
    .wake = mpi_wake,
    .serve = mpi_serve,
    .now = mpi_now,
    .cpu = mpi_cpu,
    .advance = mpi_advance,
    .spawn = mpi_spawn,
    .join = mpi_join,
    .peer = mpi_peer,
    .doing = mpi_doing,
    .name_handler = mpi_name_handler,
    .recruit = mpi_recruit,
    .bury = mpi_bury,
    .silent = mpi_silent,
    .asked = fy_mpi_asked,
    .answer = fy_mpi_answer,
    .ask = fy_mpi_ask,
};

static void free_port(mpi_port *p)
{
    fy_mpi_slots_free(p);
    fy_mpi_departures_free(p);
    for (int rank = 0; rank < p->ranks && p->peers != NULL; rank++) {
        for (int lane = 0; lane < FY_LANES && p->peers[rank] != NULL; lane++)
            free(p->peers[rank]->out[lane].costs);
        free(p->peers[rank]);
    }
    free(p->peers);
    free(p->circles.all);
    free(p->place);
    free((void *)p->left);
    fy_mutex_fini(&p->lock);
    free(p);
}

int fy_mpi_port_create(const fy_mpi_binding *mpi, fy_mpi_comm *comm, const fy_mpi_node *node,
                       fy_port *near, bool helper_allowed, bool alone, mpi_port **out)
{
    mpi_port *p = calloc(1, sizeof(*p));
    if (p == NULL || fy_mutex_init(&p->lock) != 0) {
        free(p);
        return fy_error_set(FERRY_ENOMEM, "open: no memory for port mpi");
    }
    p->port.ops = &mpi_ops;
    p->near = near;
    p->mpi = mpi;
    p->comm = comm;
    p->node = node;
    p->helper_allowed = helper_allowed;
    p->alone = alone;
    mpi->comm_place(comm, &p->rank, &p->ranks);
    size_t ranks = (size_t)p->ranks;
    p->place = malloc(ranks * sizeof(*p->place));
    p->peers = calloc(ranks, sizeof(*p->peers));
    p->left = calloc(ranks, sizeof(*p->left));
    int error = p->place == NULL || p->peers == NULL || p->left == NULL ? FERRY_ENOMEM : 0;
    for (size_t i = 0; error == 0 && i < ranks; i++)
        p->place[i] = -1;
    for (int i = 0; error == 0 && i < node->count; i++)
        p->place[node->ranks[i]] = i;
    if (error == 0)
        error = fy_mpi_post_all(p);
    if (error != 0) {
        free_port(p);
        return fy_error_set(error, "open: receives of port mpi cannot be posted: %s",
                            ferry_strerror(error));
    }
    *out = p;
    return 0;
}

bool fy_mpi_port_linger(mpi_port *p)
{
    fy_mpi_pump(p, FY_CONTROL);
    fy_mpi_pump(p, FY_DATA);
    fy_mpi_drop(p);
    return p->farewells < (uint32_t)(p->ranks - p->node->count);
}

void fy_mpi_port_destroy(mpi_port *p)
{
    flush(p);
    fy_mpi_undelivered_free(p);
    free_port(p);
}
