/* How the template works, and what to keep of it.
 *
 * A frame in flight is a queued message: the frame and a copy of its data. Each rank has one box
 * per lane, a list in the order of arrival. The queued messages in flight from one rank to another
 * on one lane are counted at the sender, by number and by bytes, until they are taken. That is the
 * credit: without it a fast sender would fill the memory of a slow receiver.
 *
 * One lock guards a node. A real port has a ring or a queue pair per (thread, lane, peer), so that
 * no send waits for another, and no lock at all on the way of a small frame. No call to another
 * node holds the lock. */
#include "port/template/template.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "port/template/node.h"

#define QUEUED_MAX 256u
#define BYTES_MAX (1u << 20)

/* A port's state begins with fy_port; everything that one rank needs is in it or reachable from it,
 * so that many ranks can live in one process. */
typedef struct template_port {
    fy_port port;
    fy_template_job *job;
    fy_template_node *node;
    fy_template_place *own;
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
    pthread_mutex_lock(&p->node->lock);
}

static void unlock(template_port *p)
{
    pthread_mutex_unlock(&p->node->lock);
}

/* The properties that core may know. `shares_memory` is false: alloc, release, owner and send_block
 * are NULL, and core emulates put and get over send. It stays false in a port over several nodes,
 * whose ranks share memory only within a node. `wakes_helper` is for ports whose wait of the
 * helper returns when a control frame arrives; where the network cannot wake, say false and return
 * every quantum.
 */
static void query(const fy_port *port, fy_port_info *info)
{
    const template_port *p = (const template_port *)(const void *)port;
    *info = (fy_port_info){
        .rank = p->rank, .ranks = p->job->ranks, .wakes_helper = true, .inline_bytes = 64};
}

static bool has_room(const fy_template_credit *c, size_t size_bytes)
{
    /* One queued message always may go, however large: else it never could. */
    return c->messages == 0 || (c->messages < QUEUED_MAX && c->bytes + size_bytes <= BYTES_MAX);
}

/* Counts a frame as sent to `rank`. */
static int charge(template_port *p, fy_lane lane, int rank, size_t size_bytes)
{
    lock(p);
    fy_template_credit *c = &p->own->sent[lane][rank];
    int error = p->node->states[rank] != FY_PEER_ALIVE ? FERRY_EPEER
                : has_room(c, size_bytes)              ? 0
                                                       : FERRY_EAGAIN;
    if (error == 0) {
        c->messages++;
        c->bytes += size_bytes;
    }
    unlock(p);
    return error;
}

/* Another node cannot read the caller's data: what travels is a copy. */
static int send_far(template_port *p, fy_lane lane, int rank, const fy_frame *frame)
{
    const fy_template_head head = {.kind = FY_TEMPLATE_FRAME,
                                   .lane = lane,
                                   .source = p->rank,
                                   .target = rank,
                                   .frame = *frame};
    return fy_template_carry(p->job, fy_template_node_of(p->job, rank), &head, frame->data);
}

static int send_near(template_port *p, fy_lane lane, fy_template_place *target,
                     const fy_frame *frame)
{
    fy_template_queued *q = fy_template_copy(p->rank, frame, frame->data);
    if (q == NULL)
        return FERRY_ENOMEM;
    lock(p);
    fy_template_put(target, lane, q);
    unlock(p);
    return 0;
}

/* Check what a caller can get wrong, say EPEER for a peer that has gone, EAGAIN when there is no
 * room: never wait here, the caller knows better what to do meanwhile. The data is the caller's
 * again on return, so it is copied, or sent already. Both threads may call at once. */
static int template_send(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                         const fy_frame *frame)
{
    template_port *p = state_of(port);
    (void)thread;
    if (rank < 0 || rank >= p->job->ranks || frame->word_count > FY_FRAME_WORDS)
        return FERRY_EINVAL;
    int error = charge(p, lane, rank, frame->size_bytes);
    if (error != 0)
        return error;
    fy_template_place *target = fy_template_place_of(p->node, rank);
    error = target == NULL ? send_far(p, lane, rank, frame) : send_near(p, lane, target, frame);
    if (error != 0) {
        lock(p);
        fy_template_return_credit(&p->own->sent[lane][rank], frame->size_bytes);
        unlock(p);
    }
    return error;
}

/* Puts back, in front, what was left. */
static void box_give_back(fy_template_box *b, fy_template_queued *first, fy_template_queued *last)
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
    fy_template_queued *first, *last;
} remainder;

static void template_leave(remainder *r, fy_template_queued *q)
{
    q->next = NULL;
    if (r->first == NULL)
        r->first = q;
    else
        r->last->next = q;
    r->last = q;
}

/* Whether one of these frames is of `source`. */
static bool is_among(const fy_template_queued *q, int source)
{
    while (q != NULL && q->source != source)
        q = q->next;
    return q != NULL;
}

/* A frame was taken: its sender may send more. On another node the sender has to be told. A network
 * tells it of several frames in one message. Called with the lock. */
static void give_credit(template_port *p, fy_lane lane, const fy_template_queued *q)
{
    fy_template_place *source = fy_template_place_of(p->node, q->source);
    if (source != NULL) {
        fy_template_return_credit(&source->sent[lane][p->rank], q->frame.size_bytes);
        return;
    }
    const fy_template_head head = {.kind = FY_TEMPLATE_CREDIT,
                                   .lane = lane,
                                   .source = q->source,
                                   .target = p->rank,
                                   .frame.size_bytes = q->frame.size_bytes};
    unlock(p);
    /* A head alone needs no memory. */
    (void)fy_template_carry(p->job, fy_template_node_of(p->job, q->source), &head, NULL);
    lock(p);
}

/* Hand over at most `budget` frames. No lock is held while `deliver` runs: it may send. A frame
 * that it leaves stays first of its source, and holds back what follows it from there alone. Data
 * from a network are copied out of shared or registered memory before they are checked, and checked
 * before they are delivered: no byte of a peer may crash this rank. */
static int poll(fy_port *port, fy_lane lane, int budget, fy_deliver *deliver, void *context)
{
    template_port *p = state_of(port);
    fy_template_box *b = &p->own->boxes[lane];
    remainder rest = {0};
    int taken = 0;
    lock(p);
    for (fy_template_queued *q = NULL; taken < budget && (q = fy_template_take(b)) != NULL;) {
        fy_verdict verdict = FY_LEAVE;
        if (!is_among(rest.first, q->source)) {
            unlock(p);
            verdict = deliver(context, q->source, &q->frame);
            lock(p);
        }
        if (verdict == FY_LEAVE) {
            template_leave(&rest, q);
            continue;
        }
        b->count--;
        taken++;
        give_credit(p, lane, q);
        free(q);
    }
    box_give_back(b, rest.first, rest.last);
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
    fy_template_place *own = p->own;
    bool woken = own->woken[thread] || own->events_seen[thread] != p->node->events;
    own->woken[thread] = false;
    own->events_seen[thread] = p->node->events;
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
            pthread_cond_wait(&p->own->notices, &p->node->lock);
        else
            error = pthread_cond_timedwait(&p->own->notices, &p->node->lock, &t);
        if (error != 0)
            break;
    }
    unlock(p);
}

static void wake_thread(template_port *p, fy_template_place *target, fy_thread thread)
{
    lock(p);
    target->woken[thread] = true;
    pthread_cond_broadcast(&target->notices);
    unlock(p);
}

static void wake(fy_port *port, fy_thread thread)
{
    template_port *p = state_of(port);
    wake_thread(p, p->own, thread);
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
    return fy_thread_create(&p->helper, run_helper, p) == 0 ? 0 : FERRY_ESYSTEM;
}

static void template_join(fy_port *port)
{
    pthread_join(state_of(port)->helper, NULL);
}

/* Only the ranks of a node share memory. So core's clients ask for each rank, and send frames where
 * the answer is NULL. */
static void *board(fy_port *port, int rank)
{
    fy_template_place *place = fy_template_place_of(state_of(port)->node, rank);
    return place == NULL ? NULL : place->board;
}

static void rouse(fy_port *port, int rank)
{
    template_port *p = state_of(port);
    fy_template_place *place = fy_template_place_of(p->node, rank);
    if (place != NULL)
        wake_thread(p, place, FY_APP);
}

/* LEFT once the peer has closed its port; DEAD once it is certain that it will never answer. A
 * silent peer is alive. */
static fy_peer_state peer(fy_port *port, int rank)
{
    template_port *p = state_of(port);
    lock(p);
    fy_peer_state state = p->node->states[rank];
    unlock(p);
    return state;
}

/* A rank that has left may have sent much before that: core goes on as if it were there until this
 * says that all of it was taken. Exact, or frames are lost. Between nodes the notice that a rank
 * has left may not overtake its frames. */
static bool silent(fy_port *port, int rank)
{
    template_port *p = state_of(port);
    lock(p);
    bool is = !is_among(p->own->boxes[FY_DATA].head, rank) &&
              !is_among(p->own->boxes[FY_CONTROL].head, rank);
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

/* Frames that were sent before are still delivered; every node learns that this rank has left. */
static void close_port(fy_port *port)
{
    template_port *p = state_of(port);
    const fy_template_head head = {.kind = FY_TEMPLATE_LEFT, .source = p->rank};
    lock(p);
    fy_template_note_left(p->node, p->rank);
    unlock(p);
    for (int i = 0; i < p->job->node_count; i++)
        if (&p->job->nodes[i] != p->node)
            (void)fy_template_carry(p->job, &p->job->nodes[i], &head, NULL);
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
            .send = template_send,
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
            .join = template_join,
        },
    .heap =
        {
            .version = FY_HEAP_VERSION,
            .board = board,
            .rouse = rouse,
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
    p->node = fy_template_node_of(job, rank);
    p->own = fy_template_place_of(p->node, rank);
    *out = &p->port;
    return 0;
}
