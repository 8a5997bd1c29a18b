/* The binding's table. Each rank has one socket that keeps the borders and the order of what is
 * written to it. A message goes as pieces, those of one message to one rank one after the other,
 * each with a head.
 *
 * All calls that make progress write what waits, then read what has come. The first piece of a
 * message is matched with the oldest receive that wants it, and the rest goes where that says. A
 * message that no receive wants yet is kept in memory. A piece for which there is no memory stays
 * in its buffer, and all that follows in the socket.
 *
 * A socket that nobody reads any more is that of a rank that has ended. Messages to it are
 * dropped and do not fail, as under MPI: such a rank has left the job, or its launcher ends the
 * job and says who was the first. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "port/nodes/loopback/loopback.h"

/* Below what a socket's buffer holds several of; see net.core.wmem_default. */
#define PIECE_BYTES (32u << 10)

enum { NO_MEMORY = 1, TOO_LONG };

enum { TAG_GATHER = -2, READS_MAX = 64, PAUSE_MS = 1 };

/* In front of every piece. */
typedef struct head {
    int32_t source; /* in the job */
    int32_t tag;
    uint64_t size_bytes; /* of the message */
    uint32_t context;    /* of the net */
    uint32_t unused;
} head;

/* A message as it goes out, or a receive until something has come. */
typedef struct transfer {
    struct transfer *next;
    struct wire *wire;
    const unsigned char *from; /* of a send */
    unsigned char *into;       /* of a receive */
    size_t size_bytes;         /* of the message; how many there is room for */
    size_t sent_bytes;
    bool begun; /* its first piece is written */
    bool done;
    int error;
    int32_t source; /* of a receive: in the job; FY_NODES_ANY; then who has sent */
    head head;
} transfer;

typedef struct queue {
    transfer *head, **end;
} queue;

/* A message that no receive has wanted yet. */
typedef struct arrival {
    struct arrival *next;
    head head;
    size_t came_bytes;
    unsigned char data[];
} arrival;

/* The message that comes from a rank. */
typedef struct inflow {
    bool open;
    size_t came_bytes, size_bytes;
    transfer *to; /* at most one of these two; none: it is dropped */
    arrival *kept;
} inflow;

struct fy_nodes_net {
    struct wire *wire;
    int first, rank, ranks; /* number 0 in the job, own number, how many */
    uint32_t context;
};

/* A rank's side. */
typedef struct wire {
    fy_nodes_net all;
    const fy_loopback_job *job;
    int rank;
    queue wanted;    /* receives that nothing has come for, in the order of their calls */
    queue *outflows; /* by rank */
    int busy;        /* outflows with something in them */
    inflow *inflows; /* by rank */
    arrival *arrivals, **arrivals_end;
    size_t piece_bytes; /* of one that is in the buffer and was not taken; else 0 */
    struct {
        head head;
        unsigned char data[PIECE_BYTES];
    } piece;
} wire;

static void loopback_append(queue *q, transfer *t)
{
    t->next = NULL;
    *q->end = t;
    q->end = &t->next;
}

static void loopback_take_out(queue *q, transfer **at)
{
    transfer *t = *at;
    *at = t->next;
    if (q->end == &t->next)
        q->end = at;
}

fy_nodes_net *fy_loopback_net_open(const fy_loopback_job *job, int rank)
{
    wire *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->outflows = calloc((size_t)job->ranks, sizeof(*w->outflows));
    w->inflows = calloc((size_t)job->ranks, sizeof(*w->inflows));
    if (w->outflows == NULL || w->inflows == NULL) {
        free(w->outflows);
        free(w->inflows);
        free(w);
        return NULL;
    }
    w->all = (fy_nodes_net){.wire = w, .rank = rank, .ranks = job->ranks};
    w->job = job;
    w->rank = rank;
    w->wanted.end = &w->wanted.head;
    w->arrivals_end = &w->arrivals;
    for (int i = 0; i < job->ranks; i++)
        w->outflows[i].end = &w->outflows[i].head;
    return &w->all;
}

static void loopback_describe(int error, char *out, size_t size)
{
    static const char *const texts[] = {"", "no memory", "a message is longer than its receive"};
    strncpy(out, texts[error], size - 1);
    out[size - 1] = '\0';
}

static void loopback_place(const fy_nodes_net *net, int *rank, int *ranks)
{
    *rank = net->rank;
    *ranks = net->ranks;
}

static int node(fy_nodes_net *net, fy_nodes_net **out)
{
    const fy_loopback_job *job = net->wire->job;
    fy_nodes_net *near = malloc(sizeof(*near));
    int own = 0;
    if (near == NULL)
        return NO_MEMORY;
    while (own + 1 < job->nodes && fy_loopback_first(job, own + 1) <= net->wire->rank)
        own++;
    int first = fy_loopback_first(job, own);
    *near = (fy_nodes_net){.wire = net->wire,
                           .first = first,
                           .rank = net->wire->rank - first,
                           .ranks = fy_loopback_first(job, own + 1) - first,
                           .context = 1};
    *out = near;
    return 0;
}

/* Writes one piece; false: there is no room now. */
static bool write_piece(transfer *t, int fd)
{
    size_t left = t->size_bytes - t->sent_bytes;
    struct iovec parts[2] = {
        {.iov_base = &t->head, .iov_len = sizeof(t->head)},
        {.iov_base = (void *)(uintptr_t)(t->from + t->sent_bytes),
         .iov_len = left < PIECE_BYTES ? left : PIECE_BYTES},
    };
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET && errno != ECONNREFUSED)
        return false;
    t->begun = true;
    t->sent_bytes += parts[1].iov_len;
    return true;
}

/* Writes as much of a message as there is room for. */
static void write_message(transfer *t, int fd)
{
    bool written = true;
    while (written && (!t->begun || t->sent_bytes < t->size_bytes))
        written = write_piece(t, fd);
    t->done = written;
}

static void wire_write_all(wire *w)
{
    for (int rank = 0; rank < w->job->ranks && w->busy > 0; rank++) {
        queue *q = &w->outflows[rank];
        bool had = q->head != NULL;
        while (q->head != NULL) {
            write_message(q->head, w->job->out[rank]);
            if (!q->head->done)
                break;
            loopback_take_out(q, &q->head);
        }
        w->busy -= had && q->head == NULL;
    }
}

static bool wants(const transfer *t, const head *h)
{
    return t->head.context == h->context && t->head.tag == h->tag &&
           (t->source == FY_NODES_ANY || t->source == h->source);
}

/* The receive has the message that `head` begins. */
static void match(transfer *t, const head *h)
{
    t->source = h->source;
    t->head = *h;
    if (h->size_bytes > t->size_bytes)
        t->error = TOO_LONG;
}

/* Finds out where a message goes that begins. False: there is no memory for it. */
static bool begin_message(wire *w, inflow *in)
{
    const head *h = &w->piece.head;
    *in = (inflow){.size_bytes = h->size_bytes};
    for (transfer **at = &w->wanted.head; *at != NULL; at = &(*at)->next)
        if (wants(*at, h)) {
            in->to = *at;
            loopback_take_out(&w->wanted, at);
            match(in->to, h);
            break;
        }
    if (in->to == NULL) {
        in->kept = malloc(sizeof(*in->kept) + h->size_bytes);
        if (in->kept == NULL)
            return false;
        *in->kept = (arrival){.head = *h};
        *w->arrivals_end = in->kept;
        w->arrivals_end = &in->kept->next;
    }
    in->open = true;
    return true;
}

/* Takes the piece in the buffer. False: there is no memory for it now. */
static bool take_piece(wire *w)
{
    inflow *in = &w->inflows[w->piece.head.source];
    if (!in->open && !begin_message(w, in))
        return false;
    size_t bytes = w->piece_bytes - sizeof(head);
    w->piece_bytes = 0;
    if (in->to != NULL && in->to->error == 0)
        memcpy(in->to->into + in->came_bytes, w->piece.data, bytes);
    else if (in->kept != NULL)
        memcpy(in->kept->data + in->came_bytes, w->piece.data, bytes);
    in->came_bytes += bytes;
    if (in->kept != NULL)
        in->kept->came_bytes = in->came_bytes;
    in->open = in->came_bytes < in->size_bytes;
    if (in->open)
        return true;
    if (in->to != NULL)
        in->to->done = true;
    in->to = NULL;
    in->kept = NULL;
    return true;
}

/* Whether a piece is as one of ours; else it would be written beyond its place. */
static bool loopback_is_sound(const wire *w, size_t bytes)
{
    const head *h = &w->piece.head;
    if (bytes < sizeof(*h) || h->source < 0 || h->source >= w->job->ranks)
        return false;
    const inflow *in = &w->inflows[h->source];
    size_t left = in->open ? in->size_bytes - in->came_bytes : h->size_bytes;
    return bytes - sizeof(*h) <= left;
}

static void loopback_progress(wire *w)
{
    if (w->busy > 0)
        wire_write_all(w);
    for (int reads = 0; reads < READS_MAX; reads++) {
        if (w->piece_bytes == 0) {
            ssize_t bytes = recv(w->job->in[w->rank], &w->piece, sizeof(w->piece), MSG_DONTWAIT);
            if (bytes <= 0 || !loopback_is_sound(w, (size_t)bytes))
                return;
            w->piece_bytes = (size_t)bytes;
        }
        if (!take_piece(w))
            return;
    }
}

static transfer *make_transfer(fy_nodes_net *net, int tag, fy_nodes_request *request)
{
    transfer *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->wire = net->wire;
    t->head = (head){.source = net->wire->rank, .tag = tag, .context = net->context};
    request->word = (uint64_t)(uintptr_t)t;
    return t;
}

static int begin_send(fy_nodes_net *net, const void *data, size_t size_bytes, int rank, int tag,
                      fy_nodes_request *request)
{
    wire *w = net->wire;
    int target = net->first + rank;
    queue *q = &w->outflows[target];
    transfer *t = make_transfer(net, tag, request);
    if (t == NULL)
        return NO_MEMORY;
    t->from = data;
    t->size_bytes = t->head.size_bytes = size_bytes;
    if (q->head == NULL)
        write_message(t, w->job->out[target]);
    if (!t->done) {
        w->busy += q->head == NULL;
        loopback_append(q, t);
        return 0;
    }
    free(t);
    *request = (fy_nodes_request){0};
    return 0;
}

/* Gives a receive what has come of the oldest message that it wants; whether there is one. */
static bool take_arrival(wire *w, transfer *t)
{
    arrival **at = &w->arrivals;
    while (*at != NULL && !wants(t, &(*at)->head))
        at = &(*at)->next;
    arrival *a = *at;
    if (a == NULL)
        return false;
    *at = a->next;
    if (w->arrivals_end == &a->next)
        w->arrivals_end = at;
    match(t, &a->head);
    if (t->error == 0)
        memcpy(t->into, a->data, a->came_bytes);
    inflow *in = &w->inflows[a->head.source];
    t->done = in->kept != a;
    if (!t->done) {
        in->kept = NULL;
        in->to = t;
    }
    free(a);
    return true;
}

static int begin_receive(fy_nodes_net *net, void *data, size_t size_bytes, int rank, int tag,
                         fy_nodes_request *request)
{
    transfer *t = make_transfer(net, tag, request);
    if (t == NULL)
        return NO_MEMORY;
    t->into = data;
    t->size_bytes = size_bytes;
    t->source = rank == FY_NODES_ANY ? FY_NODES_ANY : net->first + rank;
    if (!take_arrival(net->wire, t))
        loopback_append(&net->wire->wanted, t);
    return 0;
}

/* The ranks that take part in a message have numbers of the net of the job: of a net of a node only
 * gathering makes messages, and does not ask whose they are. */
static int take_ended(fy_nodes_request *request, int *source, size_t *size_bytes)
{
    transfer *t = (transfer *)(uintptr_t)request->word;
    if (source != NULL)
        *source = t->source;
    if (size_bytes != NULL)
        *size_bytes = (size_t)t->head.size_bytes;
    int error = t->error;
    free(t);
    *request = (fy_nodes_request){0};
    return error;
}

static int test(fy_nodes_request *request, bool *done, int *source, size_t *size_bytes)
{
    const transfer *t = (const transfer *)(uintptr_t)request->word;
    loopback_progress(t->wire);
    *done = t->done;
    return t->done ? take_ended(request, source, size_bytes) : 0;
}

static int loopback_test_any(fy_nodes_request *const requests[], int count, int *which, int *source,
                             size_t *size_bytes)
{
    const transfer *t = (const transfer *)(uintptr_t)requests[0]->word;
    loopback_progress(t->wire);
    *which = -1;
    for (int i = 0; i < count && *which < 0; i++) {
        t = (const transfer *)(uintptr_t)requests[i]->word;
        *which = t->done ? i : -1;
    }
    return *which < 0 ? 0 : take_ended(requests[*which], source, size_bytes);
}

static void cancel(fy_nodes_request *request)
{
    transfer *t = (transfer *)(uintptr_t)request->word;
    wire *w = t->wire;
    for (transfer **at = &w->wanted.head; *at != NULL; at = &(*at)->next)
        if (*at == t) {
            loopback_take_out(&w->wanted, at);
            break;
        }
    for (int rank = 0; rank < w->job->ranks; rank++)
        if (w->inflows[rank].to == t)
            w->inflows[rank].to = NULL;
    free(t);
    *request = (fy_nodes_request){0};
}

/* Waits for the end of requests; sleeps until something comes, for a moment at most. */
static int wait_all(wire *w, fy_nodes_request *requests, int count)
{
    int error = 0;
    for (int i = 0; i < count; i++)
        while (requests[i].word != 0) {
            bool done;
            int failed = test(&requests[i], &done, NULL, NULL);
            error = error == 0 ? failed : error;
            struct pollfd in = {.fd = w->job->in[w->rank], .events = POLLIN};
            if (!done)
                (void)poll(&in, 1, PAUSE_MS);
        }
    return error;
}

static int allgather(fy_nodes_net *net, const void *mine, size_t size_bytes, void *all)
{
    fy_nodes_request *requests = calloc(2 * (size_t)net->ranks, sizeof(*requests));
    int count = 0, error = requests == NULL ? NO_MEMORY : 0;
    memcpy((unsigned char *)all + (size_t)net->rank * size_bytes, mine, size_bytes);
    for (int rank = 0; rank < net->ranks && error == 0; rank++) {
        if (rank == net->rank)
            continue;
        unsigned char *theirs = (unsigned char *)all + (size_t)rank * size_bytes;
        error = begin_receive(net, theirs, size_bytes, rank, TAG_GATHER, &requests[count++]);
        if (error == 0)
            error = begin_send(net, mine, size_bytes, rank, TAG_GATHER, &requests[count++]);
    }
    if (error == 0)
        error = wait_all(net->wire, requests, count);
    for (int i = 0; i < count; i += 2)
        if (requests[i].word != 0)
            cancel(&requests[i]);
    for (int i = 1; i < count; i += 2)
        (void)wait_all(net->wire, &requests[i], 1);
    free(requests);
    return error;
}

static void close_net(fy_nodes_net *net)
{
    if (net != &net->wire->all)
        free(net);
}

/* All that this rank has sent is written first: then all of it has come where it is read until all
 * are here. */
static void loopback_leave(fy_nodes_net *net)
{
    wire *w = net->wire;
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
    unsigned char mine = 0, *all = malloc((size_t)net->ranks);
    for (loopback_progress(w); w->busy > 0; loopback_progress(w))
        nanosleep(&pause, NULL);
    if (all != NULL)
        (void)allgather(net, &mine, sizeof(mine), all);
    free(all);
    for (arrival *a = w->arrivals, *next; a != NULL; a = next) {
        next = a->next;
        free(a);
    }
    free(w->outflows);
    free(w->inflows);
    free(w);
}

/* The launcher ends the others with this status. */
static void loopback_end_job(int status)
{
    _exit(status);
}

const fy_nodes_binding fy_loopback_binding = {
    .port = "loopback",
    .looks_dear = true,
    .describe = loopback_describe,
    .place = loopback_place,
    .node = node,
    .close = close_net,
    .leave = loopback_leave,
    .allgather = allgather,
    .send = begin_send,
    .receive = begin_receive,
    .test = test,
    .test_any = loopback_test_any,
    .cancel = cancel,
    .abort = loopback_end_job,
    .abort_closing = loopback_end_job,
};
