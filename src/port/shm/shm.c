/* Port shm: joining, leaving, and what needs no file of its own. */
#include "port/shm/port_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/thread.h"

static void free_state(shm_port *p)
{
    for (uint32_t channel = 0; channel < SHM_CHANNELS; channel++) {
        free(p->out[channel]);
        free(p->in[channel]);
    }
    for (uint32_t lane = 0; lane < FY_LANES; lane++)
        free(p->lanes[lane].order);
    if (p->heap != NULL)
        fy_heap_destroy(p->heap);
    free(p);
}

static bool has_dead(const fy_segment *s)
{
    for (uint32_t rank = 0; rank < s->ranks; rank++)
        if (fy_shm_state(s, rank) == SHM_DEAD)
            return true;
    return false;
}

static void shm_end_quietly(fy_port *port)
{
    state_of(port)->quiet = true;
}

static bool shm_withdraw(fy_port *port)
{
    const shm_port *p = state_of(port);
    const fy_segment *s = p->segment;
    if (s->pipe < 0)
        return false;
    fy_controls_mark(s->base, s->ranks, p->rank, SHM_LEFT);
    return true;
}

/* A rank that joins counts in the events of all before it sends (fy_controls_tell). So either this
 * rank knows of it, or it learns there that this rank is shut. */
static bool shm_shut(fy_port *port, uint32_t changes)
{
    const uint32_t shut = SHM_SHUT << SHM_SHUT_SHIFT;
    shm_rank *self = state_of(port)->self;
    /* seq_cst, both: before the look at what has come. The count begins anew, so it has room. */
    if (!atomic_compare_exchange_strong(&self->events, &changes, shut))
        return false;
    atomic_fetch_or(&self->state, shut);
    return true;
}

static void shm_close(fy_port *port)
{
    shm_port *p = state_of(port);
    const fy_segment *s = p->segment;
    fy_controls_note(s->base, p->rank, SHM_LEFT);
    /* A rank that heard of a death before this rank had left waits for it. Then the death stands
     * there since before that, and is seen here. */
    if (!p->quiet || has_dead(s))
        fy_controls_tell(s->base, s->ranks);
    free_state(p);
}

static void shm_query(const fy_port *port, fy_port_info *info)
{
    const shm_port *p = (const shm_port *)(const void *)port;
    *info = (fy_port_info){
        .rank = (int)p->rank,
        .ranks = (int)p->segment->ranks,
        .starting = (int)p->segment->starting,
        .shares_memory = true,
        .wakes_helper = true,
        .crowded = fy_shm_is_crowded(p->segment),
        .leaves = true,
        .virtual_time = false,
        .inline_bytes = p->bytes_max,
        .shared_start = (uintptr_t)p->segment->base + p->segment->heaps_offset,
        .shared_bytes = p->segment->total_bytes - p->segment->heaps_offset,
    };
}

static uint64_t shm_now(fy_port *port)
{
    (void)port;
    return fy_clock_now_ns();
}

static uint64_t shm_cpu(fy_port *port)
{
    (void)port;
    return fy_clock_cpu_ns();
}

static void shm_advance(fy_port *port, uint64_t ns)
{
    fy_compute mode = state_of(port)->compute;
    if (mode == FY_COMPUTE_NONE)
        return;
    uint64_t end = fy_clock_now_ns() + ns;
    if (mode == FY_COMPUTE_SLEEP)
        fy_clock_sleep_until(end);
    else
        while (fy_clock_now_ns() < end) {
        }
}

void fy_shm_compute_set(fy_port *port, fy_compute mode)
{
    state_of(port)->compute = mode;
}

static void *run_helper(void *arg)
{
    shm_port *p = arg;
    p->helper_entry(p->helper_arg);
    return NULL;
}

static int shm_spawn(fy_port *port, void (*entry)(void *arg), void *arg)
{
    shm_port *p = state_of(port);
    p->helper_entry = entry;
    p->helper_arg = arg;
    int error = fy_thread_create(&p->helper, run_helper, p);
    if (error != 0)
        return fy_error_set(FERRY_ESYSTEM, "starting the helper thread: %s", strerror(error));
    return 0;
}

static void shm_join_helper(fy_port *port)
{
    pthread_join(state_of(port)->helper, NULL);
}

static fy_peer_state shm_peer(fy_port *port, int rank)
{
    shm_port *p = state_of(port);
    switch (fy_shm_state(p->segment, (uint32_t)rank)) {
    case SHM_ABSENT:
        return (uint32_t)rank < p->segment->starting ? FY_PEER_ALIVE : FY_PEER_ABSENT;
    case SHM_JOINED:
        return FY_PEER_ALIVE;
    case SHM_LEFT:
        return FY_PEER_LEFT;
    default:
        return FY_PEER_DEAD;
    }
}

static void shm_doing(fy_port *port, fy_doing what, uint16_t handler, uint64_t since_ns)
{
    fy_doing_note_write(&state_of(port)->self->note, what, handler, since_ns);
}

static fy_doing_note *shm_note(fy_port *port)
{
    return &state_of(port)->self->note;
}

static void shm_name_handler(fy_port *port, uint16_t handler, const char *name)
{
    if (handler >= SHM_HANDLERS_MAX)
        return;
    char *place = state_of(port)->self->name[handler];
    size_t length = strnlen(name, SHM_NAME_BYTES - 1);
    memcpy(place, name, length);
    place[length] = '\0';
}

static void *shm_board(fy_port *port, int rank)
{
    return board_at(state_of(port)->segment, (uint32_t)rank);
}

static void shm_rouse(fy_port *port, int rank)
{
    fy_shm_signal(rank_at(state_of(port)->segment->base, (uint32_t)rank), FY_APP);
}

static void shm_endure(fy_port *port, bool on)
{
    /* seq_cst: before whatever the rank does next, since it may die of it */
    atomic_store(&state_of(port)->self->endures, on);
}

static int shm_spawn_ranks(fy_port *port, int count, char *const argv[], int *first)
{
    fy_segment *s = state_of(port)->segment;
    uint32_t number;
    if (s->spawner == NULL)
        return fy_error_set(FERRY_ENOTSUP, "this job has no room for more ranks; expected a "
                                           "start by `ferry run -m N`, or FERRY_RANKS_MAX");
    if (!fy_numbers_take(s->base, s->ranks, s->starting, (uint32_t)count, &number))
        return fy_error_set(FERRY_ENOMEM,
                            "no numbers for %d more ranks: the job has %u in all "
                            "(FERRY_RANKS_MAX)",
                            count, s->ranks);
    int error = s->spawner(s->spawner_arg, (int)number, count, argv);
    for (uint32_t rank = number; error != 0 && rank < number + (uint32_t)count; rank++)
        fy_controls_mark(s->base, s->ranks, rank, SHM_DEAD);
    if (error == 0)
        *first = (int)number;
    return error;
}

/* The launcher ends the job when it sees the process end. */
static void shm_abort(fy_port *port, int status)
{
    /* seq_cst: before the process ends */
    atomic_store(&state_of(port)->self->aborts, (uint32_t)status + 1);
    fy_env_say_ended(state_of(port)->segment->opened);
    _exit(status);
}

static void shm_fail(fy_port *port, int status)
{
    /* seq_cst: before other ranks learn of it */
    atomic_store(&state_of(port)->self->fails, (uint32_t)status + 1);
}

static int shm_outcome(fy_port *port, int rank)
{
    /* relaxed: it was written before the state that says that the rank has gone */
    return (int)atomic_load_explicit(
               &rank_at(state_of(port)->segment->base, (uint32_t)rank)->outcome,
               memory_order_relaxed) -
           1;
}

static void shm_describe(const fy_port *port, char *out, size_t size)
{
    fy_doing_describe(((const shm_port *)(const void *)port)->self, ", ", out, size);
}

static const _Atomic uint32_t *shm_changes(fy_port *port)
{
    return &state_of(port)->self->events;
}

static const fy_port_ops shm_ops = {
    .version = FY_PORT_VERSION,
    .name = "shm",
    .transport =
        {
            .version = FY_TRANSPORT_VERSION,
            .close = shm_close,
            .query = shm_query,
            .send = fy_shm_send,
            .outlet = fy_shm_outlet,
            .follow = fy_shm_follow,
            .poll = fy_shm_poll,
            .pending = fy_shm_pending,
            .news = fy_shm_news,
            .wait = fy_shm_wait,
            .wake = fy_shm_wake,
            .serve = fy_shm_serve,
        },
    .host =
        {
            .version = FY_HOST_VERSION,
            .now = shm_now,
            .cpu = shm_cpu,
            .advance = shm_advance,
            .spawn = shm_spawn,
            .join = shm_join_helper,
        },
    .heap =
        {
            .version = FY_HEAP_VERSION,
            .send_block = fy_shm_send_block,
            .alloc = fy_shm_alloc,
            .release = fy_shm_release,
            .owner = fy_shm_owner,
            .keep_for = fy_shm_keep_for,
            .free_gone = fy_shm_free_gone,
            .board = shm_board,
            .rouse = shm_rouse,
            .await = fy_shm_await,
        },
    .members =
        {
            .version = FY_MEMBERS_VERSION,
            .peer = shm_peer,
            .endure = shm_endure,
            .changes = shm_changes,
            .spawn_ranks = shm_spawn_ranks,
            .bury = fy_shm_bury,
            .silent = fy_shm_silent,
            .abort = shm_abort,
            .fail = shm_fail,
            .outcome = shm_outcome,
            .end_quietly = shm_end_quietly,
            .withdraw = shm_withdraw,
            .shut = shm_shut,
        },
    .diagnosis =
        {
            .version = FY_DIAGNOSIS_VERSION,
            .doing = shm_doing,
            .note = shm_note,
            .name_handler = shm_name_handler,
            .asked = fy_shm_asked,
            .answer = fy_shm_answer,
            .ask = fy_shm_ask,
            .describe = shm_describe,
        },
};

static int shm_no_memory(uint32_t rank)
{
    return fy_error_set(FERRY_ENOMEM, "no memory for rank %u", rank);
}

static int make_state(fy_segment *segment, uint32_t rank, shm_port **out)
{
    shm_port *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return shm_no_memory(rank);
    p->port.ops = &shm_ops;
    p->segment = segment;
    p->rank = rank;
    p->ranks = segment->ranks;
    p->self = rank_at(segment->base, rank);
    for (uint32_t lane = 0; lane < FY_LANES; lane++)
        p->any[lane] = &p->self->news[lane].any;
    p->slot_mask = segment->ring_slots - 1;
    p->slot_shift = (uint32_t)__builtin_ctz(segment->ring_slots);
    p->bytes_max = segment->ring_bytes / 8;
    bool full = true;
    for (uint32_t channel = 0; channel < SHM_CHANNELS; channel++) {
        p->out[channel] = calloc(segment->ranks, sizeof(outbox));
        p->in[channel] = calloc(segment->ranks, sizeof(inbox));
        full = full && p->out[channel] != NULL && p->in[channel] != NULL;
    }
    for (uint32_t lane = 0; lane < FY_LANES; lane++) {
        p->lanes[lane].order = calloc((size_t)segment->ranks * FY_THREADS, sizeof(inbox *));
        full = full && p->lanes[lane].order != NULL;
    }
    int error = full ? fy_shm_arena_take(p) : shm_no_memory(rank);
    if (error == 0) {
        fy_arena arena = arena_at(segment, p->arena);
        if (fy_heap_create(&arena, &p->heap) != 0) {
            fy_shm_arena_return(p);
            error = shm_no_memory(rank);
        }
    }
    if (error != 0) {
        free_state(p);
        return error;
    }
    *out = p;
    return 0;
}

int fy_shm_join(fy_segment *segment, int rank, fy_port **out)
{
    if (rank < 0 || (uint32_t)rank >= segment->ranks)
        return fy_error_set(FERRY_EINVAL, "rank %d: the job has places for %u ranks", rank,
                            segment->ranks);
    shm_port *p = NULL;
    int error = make_state(segment, (uint32_t)rank, &p);
    if (error == FERRY_EINVAL)
        goto joined_before;
    if (error != 0)
        return error;
    p->crowded = fy_shm_is_crowded(segment);
    fy_shm_barrier_probe(p);
    /* relaxed: constant */
    uint32_t far = atomic_load_explicit(&p->self->state, memory_order_relaxed) & SHM_FAR;
    uint32_t absent = SHM_ABSENT | far;
    uint32_t joined = SHM_JOINED | far | (p->fenced ? SHM_NEEDS_FENCE : 0);
    /* seq_cst: at start only */
    if (!atomic_compare_exchange_strong(&p->self->state, &absent, joined)) {
        fy_shm_arena_return(p);
        free_state(p);
        goto joined_before;
    }
    atomic_store_explicit(&p->self->pid, (int32_t)getpid(), memory_order_relaxed);
    /* A process that this one forks is no rank: it may live on after the job's memory must go. */
    (void)madvise(segment->base, segment->total_bytes, MADV_DONTFORK);
    if ((uint32_t)rank >= segment->starting)
        fy_controls_mark(segment->base, segment->ranks, p->rank, SHM_JOINED);
    *out = &p->port;
    return 0;
joined_before:
    return fy_error_set(FERRY_EINVAL, "rank %d has joined the job before", rank);
}
