/* How the template works, and what to keep of it.
 *
 * A frame on its way is a queued message: the frame and a copy of its data. Each rank has one box
 * per lane, a list in the order of arrival. The queued messages in flight from one rank to another
 * on one lane are counted, by number and by bytes, until they are taken. That is the credit:
 * without it a fast sender would fill the memory of a slow receiver. A network that loses or
 * reorders messages numbers them per (source, target, lane) and restores the order before delivery.
 *
 * One lock guards everything. A real port has a ring or a queue pair per (thread, lane, peer), so
 * that no send waits for another, and no lock at all on the way of a small frame. */
#include "port/template/template.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

#define QUEUED_MAX 256u
#define BYTES_MAX (1u << 20)

typedef struct queued {
    struct queued *next;
    int source;
    fy_frame frame;
    _Alignas(16) unsigned char data[];
} queued;

typedef struct box {
    queued *head, *tail;
    _Atomic uint64_t count; /* queued messages here and in the hands of a poll */
} box;

typedef struct credit {
    uint32_t messages;
    size_t bytes;
} credit;

typedef struct place {
    box boxes[FY_LANES];
    credit *under_way[FY_LANES]; /* by source */
    pthread_cond_t notices;
    fy_thread serve;
    bool woken[FY_THREADS];
    uint32_t events_seen[FY_THREADS];
    fy_peer_state state;
} place;

struct fy_template_job {
    pthread_mutex_t lock;
    int ranks;
    uint32_t events; /* ranks that have left so far */
    place *places;
};

/* A port's state begins with fy_port; everything that one rank needs is in it or reachable from it,
 * so that many ranks can live in one process. */
typedef struct template_port {
    fy_port port;
    fy_template_job *job;
    place *own;
    int rank;
    pthread_t helper;
    void (*helper_entry)(void *arg);
    void *helper_arg;
} template_port;

static template_port *state_of(fy_port *port)
{
    return (template_port *)(void *)port;
}

static void lock(template_port *p)
{
    pthread_mutex_lock(&p->job->lock);
}

static void unlock(template_port *p)
{
    pthread_mutex_unlock(&p->job->lock);
}

/* The properties that core may know. `shares_memory` is false: alloc, release, owner and send_block
 * are NULL, and core emulates put and get over send. `wakes_helper` is for ports whose wait of the
 * helper returns when a control frame arrives; where the network cannot wake, say false and return
 * every quantum.
 */
static void query(const fy_port *port, fy_port_info *info)
{
    const template_port *p = (const template_port *)(const void *)port;
    *info = (fy_port_info){
        .rank = p->rank, .ranks = p->job->ranks, .wakes_helper = true, .inline_bytes = 64};
}

static bool has_room(const credit *c, size_t size_bytes)
{
    /* One queued message always may go, however large: else it never could. */
    return c->messages == 0 || (c->messages < QUEUED_MAX && c->bytes + size_bytes <= BYTES_MAX);
}

static void put(box *b, queued *l)
{
    l->next = NULL;
    if (b->head == NULL)
        b->head = l;
    else
        b->tail->next = l;
    b->tail = l;
    b->count++;
}

/* Check what a caller can get wrong, say EPEER for a peer that has gone, EAGAIN when there is no
 * room: never wait here, the caller knows better what to do meanwhile. The data is the caller's
 * again on return, so it is copied, or on its way already. Both threads may call at once. */
static int send(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame)
{
    template_port *p = state_of(port);
    (void)thread;
    if (rank < 0 || rank >= p->job->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    if (frame->size_bytes > SIZE_MAX - sizeof(queued))
        return FERRY_ENOMEM;
    queued *l = malloc(sizeof(*l) + frame->size_bytes);
    if (l == NULL)
        return FERRY_ENOMEM;
    *l = (queued){.source = p->rank, .frame = *frame};
    l->frame.data = frame->size_bytes > 0 ? l->data : NULL;
    l->frame.block = false;
    if (frame->size_bytes > 0)
        memcpy(l->data, frame->data, frame->size_bytes);
    lock(p);
    place *target = &p->job->places[rank];
    credit *c = &target->under_way[lane][p->rank];
    int error = target->state != FY_PEER_ALIVE   ? FERRY_EPEER
                : has_room(c, frame->size_bytes) ? 0
                                                 : FERRY_EAGAIN;
    if (error == 0) {
        c->messages++;
        c->bytes += frame->size_bytes;
        put(&target->boxes[lane], l);
        /* After the frame can be seen: a target that was about to sleep looks once more. */
        pthread_cond_broadcast(&target->notices);
    }
    unlock(p);
    if (error != 0)
        free(l);
    return error;
}

static queued *take(box *b)
{
    queued *l = b->head;
    if (l != NULL)
        b->head = l->next;
    return l;
}

/* Puts back, in front, what was left. */
static void give_back(box *b, queued *first, queued *last)
{
    if (first == NULL)
        return;
    last->next = b->head;
    if (b->head == NULL)
        b->tail = last;
    b->head = first;
}

/* Frames that a poll has left, in order. */
typedef struct remainder {
    queued *first, *last;
} remainder;

static void leave(remainder *r, queued *l)
{
    l->next = NULL;
    if (r->first == NULL)
        r->first = l;
    else
        r->last->next = l;
    r->last = l;
}

static bool has_left(const remainder *r, int source)
{
    for (const queued *l = r->first; l != NULL; l = l->next)
        if (l->source == source)
            return true;
    return false;
}

/* Hand over at most `budget` frames. No lock is held while `deliver` runs: it may send. A frame
 * that it leaves stays first of its source, and holds back what comes behind from there alone. Data
 * from a network are copied out of shared or registered memory before they are checked, and checked
 * before they are delivered: no byte of a peer may crash this rank. */
static int poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    template_port *p = state_of(port);
    box *b = &p->own->boxes[lane];
    remainder rest = {0};
    int taken = 0;
    lock(p);
    for (queued *l = NULL; taken < budget && (l = take(b)) != NULL;) {
        fy_verdict verdict = FY_LEAVE;
        if (!has_left(&rest, l->source)) {
            unlock(p);
            verdict = deliver(context, l->source, &l->frame);
            lock(p);
        }
        if (verdict == FY_LEAVE) {
            leave(&rest, l);
            continue;
        }
        credit *c = &p->own->under_way[lane][l->source];
        c->messages--;
        c->bytes -= l->frame.size_bytes;
        b->count--;
        taken++;
        free(l);
    }
    give_back(b, rest.first, rest.last);
    unlock(p);
    return taken;
}

static bool pending(fy_port *port, fy_lane lane)
{
    template_port *p = state_of(port);
    lock(p);
    bool is = p->own->boxes[lane].count > 0;
    unlock(p);
    return is;
}

/* With the lock: what ends a wait. A wake and a change of a peer end one wait of each thread. */
static bool has_notices(template_port *p, fy_thread thread)
{
    place *own = p->own;
    bool woken = own->woken[thread] || own->events_seen[thread] != p->job->events;
    own->woken[thread] = false;
    own->events_seen[thread] = p->job->events;
    if (thread == FY_HELPER)
        return woken || (own->serve == FY_HELPER && own->boxes[FY_CONTROL].count > 0);
    return woken || own->boxes[FY_DATA].count > 0 || own->boxes[FY_CONTROL].count > 0;
}

/* The lock closes the gap between the last look and the sleep. Without one, announce the sleep,
 * look once more, and have senders look for the announcement after they have sent (port shm). A
 * network that cannot wake is looked at again and again, for less and less of the time (port mpi).
 */
static void wait_for_notices(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    template_port *p = state_of(port);
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                         .tv_nsec = (long)(deadline_ns % 1000000000u)};
    lock(p);
    while (!has_notices(p, thread)) {
        int error = 0;
        if (deadline_ns == UINT64_MAX)
            pthread_cond_wait(&p->own->notices, &p->job->lock);
        else
            error = pthread_cond_timedwait(&p->own->notices, &p->job->lock, &t);
        if (error != 0)
            break;
    }
    unlock(p);
}

static void wake(fy_port *port, fy_thread thread)
{
    template_port *p = state_of(port);
    lock(p);
    p->own->woken[thread] = true;
    pthread_cond_broadcast(&p->own->notices);
    unlock(p);
}

/* A sender has counted its frame before its `send` returns, and a poll counts down what it has
 * taken. Where nothing in memory says that frames have come, leave it out: polls come instead. */
static const _Atomic uint64_t *news(fy_port *port, fy_lane lane)
{
    return &state_of(port)->own->boxes[lane].count;
}

static void serve(fy_port *port, fy_thread thread)
{
    template_port *p = state_of(port);
    lock(p);
    p->own->serve = thread;
    unlock(p);
}

static uint64_t now(fy_port *port)
{
    (void)port;
    return fy_clock_now_ns();
}

static uint64_t cpu(fy_port *port)
{
    (void)port;
    return fy_clock_cpu_ns();
}

/* Work that is only stood for takes no time here; a simulator moves its clock. */
static void advance(fy_port *port, uint64_t ns)
{
    (void)port;
    (void)ns;
}

static void *run_helper(void *arg)
{
    template_port *p = arg;
    p->helper_entry(p->helper_arg);
    return NULL;
}

static int spawn(fy_port *port, void (*entry)(void *arg), void *arg)
{
    template_port *p = state_of(port);
    p->helper_entry = entry;
    p->helper_arg = arg;
    return pthread_create(&p->helper, NULL, run_helper, p) == 0 ? 0 : FERRY_ESYSTEM;
}

static void join(fy_port *port)
{
    pthread_join(state_of(port)->helper, NULL);
}

/* LEFT once the peer has closed its port; DEAD once it is certain that it will never answer. A
 * silent peer is alive. */
static fy_peer_state peer(fy_port *port, int rank)
{
    template_port *p = state_of(port);
    lock(p);
    fy_peer_state state = p->job->places[rank].state;
    unlock(p);
    return state;
}

/* A rank that has left may have sent much before that: core goes on as if it were there until this
 * says that all of it was taken. Exact, or frames are lost. */
static bool silent(fy_port *port, int rank)
{
    template_port *p = state_of(port);
    lock(p);
    bool is = p->own->under_way[FY_DATA][rank].messages == 0 &&
              p->own->under_way[FY_CONTROL][rank].messages == 0;
    unlock(p);
    return is;
}

/* For whoever reports deaths; here nobody does. */
static void doing(fy_port *port, fy_doing what, uint16_t handler, uint64_t since_ns)
{
    (void)since_ns;
    (void)port;
    (void)what;
    (void)handler;
}

static void name_handler(fy_port *port, uint16_t handler, const char *name)
{
    (void)port;
    (void)handler;
    (void)name;
}

/* Frames that were sent before are still delivered; everybody learns that this rank has left. */
static void close_port(fy_port *port)
{
    template_port *p = state_of(port);
    lock(p);
    p->own->state = FY_PEER_LEFT;
    p->job->events++;
    for (int rank = 0; rank < p->job->ranks; rank++)
        pthread_cond_broadcast(&p->job->places[rank].notices);
    unlock(p);
    free(p);
}

static const fy_port_ops template_ops = {
    .version = FY_PORT_VERSION,
    .name = "template",
    .transport =
        {
            .version = FY_TRANSPORT_VERSION,
            .close = close_port,
            .query = query,
            .send = send,
            .poll = poll,
            .pending = pending,
            .wait = wait_for_notices,
            .wake = wake,
            .serve = serve,
            .news = news,
        },
    .host =
        {
            .version = FY_HOST_VERSION,
            .now = now,
            .cpu = cpu,
            .advance = advance,
            .spawn = spawn,
            .join = join,
        },
    .heap =
        {
            .version = FY_HEAP_VERSION,
        },
    .members =
        {
            .version = FY_MEMBERS_VERSION,
            .peer = peer,
            .silent = silent,
        },
    .diagnosis =
        {
            .version = FY_DIAGNOSIS_VERSION,
            .doing = doing,
            .name_handler = name_handler,
        },
};

int fy_template_join(fy_template_job *job, int rank, fy_port **out)
{
    if (rank < 0 || rank >= job->ranks)
        return fy_error_set(FERRY_EINVAL, "rank %d: the job has %d ranks", rank, job->ranks);
    template_port *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory for rank %d", rank);
    p->port.ops = &template_ops;
    p->job = job;
    p->rank = rank;
    p->own = &job->places[rank];
    *out = &p->port;
    return 0;
}

static bool place_init(place *own, int ranks)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&own->notices, &attributes);
    pthread_condattr_destroy(&attributes);
    for (int lane = 0; lane < FY_LANES; lane++)
        own->under_way[lane] = calloc((size_t)ranks, sizeof(credit));
    return own->under_way[FY_DATA] != NULL && own->under_way[FY_CONTROL] != NULL;
}

static void place_fini(place *own)
{
    for (int lane = 0; lane < FY_LANES; lane++) {
        for (queued *l; (l = take(&own->boxes[lane])) != NULL;)
            free(l);
        free(own->under_way[lane]);
    }
    pthread_cond_destroy(&own->notices);
}

fy_template_job *fy_template_job_create(int ranks)
{
    fy_template_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return NULL;
    job->places = calloc((size_t)ranks, sizeof(*job->places));
    if (job->places == NULL) {
        free(job);
        return NULL;
    }
    pthread_mutex_init(&job->lock, NULL);
    bool full = true;
    for (; job->ranks < ranks; job->ranks++)
        full = place_init(&job->places[job->ranks], ranks) && full;
    if (full)
        return job;
    fy_template_job_destroy(job);
    return NULL;
}

void fy_template_job_destroy(fy_template_job *job)
{
    for (int rank = 0; rank < job->ranks; rank++)
        place_fini(&job->places[rank]);
    pthread_mutex_destroy(&job->lock);
    free(job->places);
    free(job);
}
