#include "cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/busy.h"
#include "../support/random.h"
#include "port/port.h"

#define MS UINT64_C(1000000)

/* A sanitizer looks at each byte. */
#ifdef FERRY_SANITIZED
enum { SIZE_MAX_BYTES = 4 << 20, TO_ALL = 3000 };
#else
enum { SIZE_MAX_BYTES = 16 << 20, TO_ALL = 9000 }; /* TO_ALL: frames of a rank to all others */
#endif

/* Larger ones are left out where the machine is too busy for them. */
#define SIZE_SURE_BYTES ((size_t)1 << 20)

/* Goal: each frame arrives once, unchanged and in order, between all pairs at once, a rank and
 * itself included, on both lanes. Method: numbered frames; the last on the data lane says how many
 * there were on each. */
static void all_to_all(fy_port *port)
{
    tally t = {.port = port, .check_data = true};
    fy_port_info info = fy_info_of(port);
    uint64_t start = port->ops->host.now(port), number = 0;
    for (; !fy_is_enough(port, start, number, TO_ALL / (uint64_t)info.ranks); number++) {
        for (int rank = 0; rank < info.ranks; rank++) {
            fy_frame frame = fy_tally_frame(number, FY_DATA);
            fy_tally_send(&t, FY_DATA, rank, &frame);
            frame = fy_tally_frame(number, FY_CONTROL);
            fy_tally_send(&t, FY_CONTROL, rank, &frame);
        }
    }
    const fy_frame last = {.kind = KIND_LAST, .word_count = 1, .words = {number}};
    for (int rank = 0; rank < info.ranks; rank++)
        fy_tally_send(&t, FY_DATA, rank, &last);
    fy_waits_for(port, "the last frames of all ranks, on both lanes");
    while (t.tellers < (uint64_t)info.ranks || t.count[FY_CONTROL] < t.told)
        fy_tally_poll(&t);
    fy_tally_meet(&t, 1);
    fy_expect(t.count[FY_DATA] == t.told && t.count[FY_CONTROL] == t.told);
    fy_expect(!port->ops->transport.pending(port, FY_DATA) &&
              !port->ops->transport.pending(port, FY_CONTROL));
}

static size_t next_size(size_t size)
{
    return size < 40 ? size + 1 : size * 3 / 2 + size % 7;
}

/* Sends what may stay the caller's, and receives until the port has read it. */
static void send_lent(tally *t, int rank, const fy_frame *frame)
{
    const fy_port_ops *ops = t->port->ops;
    atomic_bool lent = true;
    int error;
    while ((error = ops->transport.send_lent(t->port, FY_APP, FY_DATA, rank, frame, &lent)) ==
           FERRY_EAGAIN)
        fy_tally_poll(t);
    fy_expect(error == 0);
    const char *before = fy_waits_for(t->port, "the port to set *lent to false");
    /* acquire: pairs with the port's release */
    while (atomic_load_explicit(&lent, memory_order_acquire))
        fy_tally_poll(t);
    fy_waits_for(t->port, before);
}

/* Both ranks send growing sizes filled with a pattern, over and over in the same place. */
static void grow(fy_port *port, size_t size_max_bytes, bool lent)
{
    tally t = {.port = port, .check_data = true};
    fy_port_info info = fy_info_of(port);
    unsigned char *data = malloc(size_max_bytes);
    fy_expect(data != NULL);
    uint64_t start = port->ops->host.now(port), number = 0;
    for (size_t size = 0; size <= size_max_bytes; size = next_size(size)) {
        if (size > SIZE_SURE_BYTES && fy_is_late(port, start)) {
            left_out("sizes from %zu to %zu bytes on rank %d", size, size_max_bytes, info.rank);
            break;
        }
        fy_frame frame = fy_tally_frame(number, FY_DATA);
        frame.word_count = (uint8_t)(2 + number % 3);
        for (size_t i = 0; i < size; i++)
            data[i] = fy_pattern(i, number);
        frame.data = data;
        frame.size_bytes = size;
        if (lent)
            send_lent(&t, 1 - info.rank, &frame);
        else
            fy_tally_send(&t, FY_DATA, 1 - info.rank, &frame);
        number++;
    }
    const fy_frame last = {.kind = KIND_LAST, .word_count = 1, .words = {number}};
    fy_tally_send(&t, FY_DATA, 1 - info.rank, &last);
    fy_waits_for(port, "the frames of the other rank, which grow");
    while (t.tellers == 0)
        fy_tally_poll(&t);
    fy_expect(t.count[FY_DATA] == t.told);
    fy_tally_meet(&t, 1);
    free(data);
}

/* Goal: payloads of any size from 0 B to SIZE_MAX_BYTES, with 2 to 4 words, arrive whole. */
static void sizes(fy_port *port)
{
    grow(port, SIZE_MAX_BYTES, false);
}

/* Goal: data that are lent arrive as they were when sent, though they are changed as soon as the
 * port has read them. */
static void lends(fy_port *port)
{
    if (port->ops->transport.send_lent != NULL)
        grow(port, 4 << 20, true);
}

/* Goal: a silent receiver makes its sender wait, not grow; the control lane stays open all the
 * while; nothing is lost. Method: rank 0 sends each size until there is no room, then a control
 * frame, which rank 1 gets although it takes no data; then rank 1 takes all. */
static void flood(fy_port *port)
{
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    const size_t flood_sizes[] = {0, 100, 4000, 100000, 3000000};
    unsigned char *data = calloc(1, 3000000);
    fy_expect(data != NULL);
    uint64_t sent = 0;
    for (uint64_t round = 0; round < 5; round++) {
        fy_frame control = fy_tally_frame(round, FY_CONTROL);
        if (info.rank == 0) {
            size_t bytes = 0;
            fy_frame frame = fy_tally_frame(sent, FY_DATA);
            frame.data = data;
            frame.size_bytes = flood_sizes[round];
            while (port->ops->transport.send(port, FY_APP, FY_DATA, 1, &frame) == 0) {
                bytes += frame.size_bytes;
                frame = fy_tally_frame(++sent, FY_DATA);
                frame.data = data;
                frame.size_bytes = flood_sizes[round];
                fy_expect(sent < 10000000 && bytes < (size_t)64 << 20);
            }
            fy_expect(port->ops->transport.send(port, FY_APP, FY_CONTROL, 1, &control) == 0);
            fy_frame count = {.kind = KIND_LAST};
            fy_expect(port->ops->transport.send(port, FY_APP, FY_CONTROL, 1, &count) == 0);
        } else {
            fy_waits_for(port, "control frames of rank 0, while data frames wait");
            while (t.last <= round)
                fy_tally_look(&t, FY_CONTROL, 16, fy_tally_take);
            fy_expect(t.count[FY_CONTROL] == round + 1);
            fy_waits_for(port, "an end of the data frames of rank 0");
            while (port->ops->transport.pending(port, FY_DATA))
                fy_tally_look(&t, FY_DATA, 16, fy_tally_take);
            fy_tally_send(&t, FY_DATA, 0, &(fy_frame){.kind = KIND_LAST});
        }
        fy_waits_for(port, "a frame of rank 1, which has taken all");
        while (info.rank == 0 && t.last <= round)
            fy_tally_poll(&t);
    }
    free(data);
}

/* A tally that leaves each third frame of a source when it is first delivered. */
typedef struct chooser {
    tally t;              /* first: the context of polls */
    uint64_t refused[64]; /* by source: 1 + the number of the last frame that was left */
    bool left[64];        /* by source: in this poll */
} chooser;

static fy_verdict take_some(void *context, int source, const fy_frame *frame)
{
    chooser *c = context;
    uint64_t number = frame->words[0];
    /* A frame that was left is delivered before those after it. A poll may offer it again. */
    fy_expect(!c->left[source] || number + 1 == c->refused[source]);
    c->left[source] = frame->kind != KIND_LAST && number % 3 == 0 && c->refused[source] <= number;
    if (c->left[source])
        c->refused[source] = number + 1;
    return c->left[source] ? FY_LEAVE : fy_tally_take(context, source, frame);
}

/* Goal: what `deliver` leaves stays first in line, nothing of its source passes it, and other
 * sources are served meanwhile. Method: rank 0 leaves all, then some, and takes all in the end;
 * order is checked by the numbers. */
static void leaving(fy_port *port)
{
    chooser c = {.t = {.port = port}};
    tally *t = &c.t;
    fy_port_info info = fy_info_of(port);
    if (info.rank != 0)
        for (uint64_t number = 0; number < 100; number++) {
            fy_frame frame = fy_tally_frame(number, FY_DATA);
            fy_tally_send(t, FY_DATA, 0, &frame);
        }
    t->leave = info.rank == 0;
    fy_waits_for(port, "pending to say that a frame has come");
    while (t->leave && !port->ops->transport.pending(port, FY_DATA)) {
    }
    for (int i = 0; i < 100 && t->leave; i++)
        fy_expect(fy_tally_look(t, FY_DATA, 16, fy_tally_take) == 0);
    t->leave = false;
    fy_waits_for(port, "the frames that it has left before");
    while (info.rank == 0 && t->count[FY_DATA] < 100 * (uint64_t)(info.ranks - 1)) {
        memset(c.left, 0, sizeof(c.left));
        fy_tally_look(t, FY_DATA, 16, take_some);
    }
    fy_tally_meet(t, 1);
}

/* Rank 0 of `news`: polls one lane only when its word says so. */
static void poll_by_news(tally *t, fy_lane lane, uint64_t wanted, const _Atomic uint64_t *word)
{
    const fy_transport_ops *ops = &t->port->ops->transport;
    uint64_t since = t->port->ops->host.now(t->port);
    for (uint64_t polls = 0; t->count[lane] < wanted;) {
        uint64_t now = t->port->ops->host.now(t->port);
        fy_expect(now - since < 20000 * MS);
        if (atomic_load_explicit(word, memory_order_relaxed) == 0)
            continue;
        since = now;
        t->leave = polls++ % 7 == 0 && ops->pending(t->port, lane);
        (void)fy_tally_look(t, lane, 3, fy_tally_take);
        fy_expect(!t->leave || atomic_load_explicit(word, memory_order_relaxed) != 0);
        t->leave = false;
    }
    int empty = 0;
    for (; atomic_load_explicit(word, memory_order_relaxed) != 0; empty++)
        (void)fy_tally_look(t, lane, 3, fy_tally_take);
    fy_expect(empty < 1000);
}

/* Goal: a port that says where something has come says so of each frame, and no longer says so when
 * all is taken. Method: two ranks send, now and then after a pause, so that their frames come while
 * rank 0 takes the one before. Rank 0 polls only when told, takes few at a time and leaves some. */
static void news(fy_port *port)
{
    enum { FRAMES = 30000 };
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    for (int lane = FY_LANES - 1; lane >= 0; lane--) {
        const _Atomic uint64_t *word = port->ops->transport.news == NULL
                                           ? NULL
                                           : port->ops->transport.news(port, (fy_lane)lane);
        uint64_t pauses = (uint64_t)info.rank;
        if (word != NULL && info.rank == 0)
            poll_by_news(&t, (fy_lane)lane, FRAMES * (uint64_t)(info.ranks - 1), word);
        for (uint64_t number = 0; word != NULL && info.rank != 0 && number < FRAMES; number++) {
            fy_frame frame = fy_tally_frame(number, (fy_lane)lane);
            fy_tally_send(&t, (fy_lane)lane, 0, &frame);
            pauses = pauses * 6364136223846793005u + 1442695040888963407u;
            for (uint64_t i = pauses >> 54; number % 8 != 0 && i > 0; i--)
                __asm__ volatile("" ::: "memory");
        }
    }
    fy_tally_meet(&t, 1);
}

static void delay(fy_port *port, uint64_t ns)
{
    uint64_t end = port->ops->host.now(port) + ns;
    while (port->ops->host.now(port) < end) {
    }
}

/* Goal: no wake-up is lost. Method: two ranks pass a frame to and fro, on a random lane, with
 * random delays around the time that it takes to fall asleep; each waits forever. The rank whose
 * turn it is to send ends it. */
static void wakes(fy_port *port)
{
    enum { ROUNDS = 8000 };
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    uint64_t seed = 88172645463325252u + (uint64_t)info.rank;
    uint64_t sent[FY_LANES] = {0}, got = 0;
    uint64_t start = port->ops->host.now(port);
    for (uint64_t round = 0; t.last == 0; round++) {
        (void)xorshift(&seed);
        if ((round & 1) == (uint64_t)info.rank) {
            if (fy_is_enough(port, start, round, ROUNDS))
                break;
            fy_lane lane = (fy_lane)(seed >> 20 & 1);
            delay(port, seed % 3 == 0 ? seed % 60000 : seed % 2000);
            fy_frame frame = fy_tally_frame(sent[lane]++, lane);
            fy_tally_send(&t, lane, 1 - info.rank, &frame);
            continue;
        }
        got++;
        fy_waits_for(port, "a frame of the other rank: wait does not end when it comes");
        while (t.count[FY_DATA] + t.count[FY_CONTROL] < got && t.last == 0) {
            port->ops->transport.wait(port, FY_APP, UINT64_MAX);
            fy_tally_poll(&t);
        }
    }
    fy_tally_meet(&t, 1);
}

/* Whether one of some waits ends less than LATE_NS after its deadline. On a busy machine the others
 * may end later. */
static bool is_in_time(fy_port *port)
{
    enum { TRIES = 5, LATE_NS = 300 * 1000 * 1000 };
    uint64_t late = UINT64_MAX;
    for (int i = 0; i < TRIES && late >= LATE_NS; i++) {
        uint64_t end = port->ops->host.now(port) + MS;
        while (port->ops->host.now(port) < end)
            port->ops->transport.wait(port, FY_APP, end);
        late = port->ops->host.now(port) - end;
    }
    return late < LATE_NS;
}

/* Goal: a wait ends at its deadline and at `wake`, and does not end long before for no reason. The
 * clock never goes back. Method: wait for 20 ms with nothing to come, in few waits; then wake
 * oneself and wait forever. */
static void deadline(fy_port *port)
{
    enum { WAITS_MAX = 20 }; /* one is usual */
    uint64_t start = port->ops->host.now(port), end = start + 20 * MS;
    int waits = 0;
    fy_waits_for(port, "its waits to end, at their deadlines");
    for (; port->ops->host.now(port) < end; waits++)
        port->ops->transport.wait(port, FY_APP, end);
    fy_expect(waits <= WAITS_MAX);
    fy_expect(port->ops->host.now(port) - start < 10000 * MS);
    fy_expect(is_in_time(port));
    port->ops->transport.wait(port, FY_APP, 0);
    port->ops->transport.wake(port, FY_APP);
    fy_waits_for(port, "its wait to end: it has called wake before");
    port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    fy_expect(port->ops->host.cpu(port) > 0);
    uint64_t before = port->ops->host.now(port), ns = fy_info_of(port).virtual_time ? MS : 0;
    port->ops->host.advance(port, MS);
    fy_expect(port->ops->host.now(port) >= before + ns);
    if (port->ops->host.disk == NULL)
        return;
    for (int i = 0; i < 100; i++) {
        fy_disk_outcome out = {.error = -1};
        bool writes = i % 2 == 1;
        port->ops->host.disk(port, fy_info_of(port).rank, writes, 4096, &out);
        fy_expect(out.error == 0 || out.error == (writes ? ENOSPC : EIO));
        fy_expect(out.damage == 0 || !writes);
    }
}

/* The helper of `helper_answers`: returns each control frame to its source. */
typedef struct helper {
    fy_port *port;
    uint64_t served;
    _Atomic bool stop, joining, ended;
} helper;

static fy_verdict answer(void *context, int source, const fy_frame *frame)
{
    helper *h = context;
    fy_frame back = fy_tally_frame(frame->words[0], FY_CONTROL);
    fy_expect(h->port->ops->transport.send(h->port, FY_HELPER, FY_CONTROL, source, &back) == 0);
    h->served++;
    return FY_TAKEN;
}

static void help(void *arg)
{
    helper *h = arg;
    while (!h->stop) {
        h->port->ops->transport.wait(h->port, FY_HELPER, UINT64_MAX);
        if (!h->stop)
            h->port->ops->transport.poll(h->port, FY_CONTROL, 16, answer, h);
    }
    while (!h->joining) {
        /* a simulated thread goes on when it asks for the time */
        (void)h->port->ops->host.now(h->port);
    }
    delay(h->port, 20 * MS); /* `join` waits for it */
    h->ended = true;
}

/* Goal: while the application thread computes, the helper answers control frames: at once where
 * they wake it, else after a quantum. Method: rank 1's application thread hands the control lane to
 * its helper and does nothing but watch for the end on the data lane; rank 0 asks, waits, asks.
 * Quiet frames are answered with the next other one at the latest. */
static void helper_answers(fy_port *port)
{
    enum { ROUNDS = 3000, ROUNDS_OF_A_QUANTUM = 1000 };
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    if (info.rank == 0) {
        uint64_t start = port->ops->host.now(port), number = 0;
        uint64_t rounds = info.wakes_helper ? ROUNDS : ROUNDS_OF_A_QUANTUM;
        for (; number % 4 != 0 || !fy_is_enough(port, start, number, rounds); number++) {
            fy_frame frame = fy_tally_frame(number, FY_CONTROL);
            frame.quiet = number % 4 != 3;
            fy_tally_send(&t, FY_CONTROL, 1, &frame);
            fy_waits_for(port, "the answer of the helper of rank 1");
            while (!frame.quiet && t.count[FY_CONTROL] <= number) {
                port->ops->transport.wait(port, FY_APP, UINT64_MAX);
                fy_tally_poll(&t);
            }
        }
        const fy_frame last = {.kind = KIND_LAST, .word_count = 1, .words = {number}};
        fy_tally_send(&t, FY_DATA, 1, &last);
        return;
    }
    helper h = {.port = port};
    if (port->ops->host.quantum != NULL) {
        uint64_t quantum = port->ops->host.quantum(port, 0), other = 50000;
        fy_expect(port->ops->host.quantum(port, other) == quantum);
        fy_expect(port->ops->host.quantum(port, 0) == (quantum == 0 ? 0 : other));
    }
    port->ops->transport.serve(port, FY_HELPER);
    fy_expect(port->ops->host.spawn(port, help, &h) == 0);
    /* Frames that came before `serve` wake nobody: the contract asks for a look. */
    port->ops->transport.wake(port, FY_HELPER);
    fy_waits_for(port, "the last data frame of rank 0, while the helper serves the control lane");
    while (t.tellers == 0)
        fy_tally_look(&t, FY_DATA, 16, fy_tally_take);
    port->ops->transport.serve(port, FY_APP);
    h.stop = true;
    port->ops->transport.wake(port, FY_HELPER);
    fy_waits_for(port, "join to return: the helper was woken and ends");
    h.joining = true;
    port->ops->host.join(port);
    fy_expect(h.ended);
    fy_expect(h.served == t.told);
}

/* Goal: a rank that leaves is seen to have left by one who sleeps, after its frames; sending to it
 * fails. Method: all but rank 0 send and return, which closes their ports: half of them before rank
 * 0 looks, the others when it has taken all frames and sleeps. */
static void leaves(fy_port *port)
{
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    fy_frame frame = fy_tally_frame(0, FY_DATA);
    if (info.rank != 0) {
        fy_tally_send(&t, FY_DATA, 0, &frame);
        fy_waits_for(port, "rank 0 to take its frame");
        while (info.rank % 2 == 0 && t.last == 0)
            fy_tally_poll(&t);
        if (info.rank % 2 == 0)
            delay(port, 10 * MS);
        return;
    }
    fy_waits_for(port, "peer to say that rank 1 has left");
    while (port->ops->members.peer(port, 1) != FY_PEER_LEFT)
        port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    fy_waits_for(port, "a frame of each rank, of which some have left");
    while (t.count[FY_DATA] < (uint64_t)(info.ranks - 1))
        fy_tally_poll(&t);
    for (int rank = 2; rank < info.ranks; rank += 2)
        fy_tally_send(&t, FY_DATA, rank, &(fy_frame){.kind = KIND_LAST});
    fy_waits_for(port, "its wait to end: another rank has left, which peer tells");
    for (int rank = 2; rank < info.ranks; rank++)
        while (port->ops->members.peer(port, rank) != FY_PEER_LEFT)
            port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    fy_expect(port->ops->transport.send(port, FY_APP, FY_DATA, 1, &frame) == FERRY_EPEER);
}

/* Goal: a rank that has left is not taken for silent before the last of its frames was taken.
 * Method: all but rank 0 send on both lanes and close their ports; rank 0 leaves everything where
 * it is until it has seen that, then takes a frame at a time. */
static void is_heard_out(fy_port *port)
{
    enum { FRAMES = 2 }; /* so many always find room */
    tally t = {.port = port};
    fy_port_info info = fy_info_of(port);
    if (port->ops->members.silent == NULL)
        return;
    for (uint64_t number = 0; info.rank != 0 && number < FRAMES; number++)
        for (int lane = 0; lane < FY_LANES; lane++) {
            fy_frame frame = fy_tally_frame(number, (fy_lane)lane);
            fy_tally_send(&t, (fy_lane)lane, 0, &frame);
        }
    if (info.rank != 0)
        return;
    t.leave = true;
    fy_waits_for(port, "peer to say that all others have left");
    for (int rank = 1; rank < info.ranks; rank++) {
        while (port->ops->members.peer(port, rank) != FY_PEER_LEFT) {
            port->ops->transport.wait(port, FY_APP, UINT64_MAX);
            fy_tally_poll(&t);
        }
        fy_expect(!port->ops->members.silent(port, rank));
    }
    t.leave = false;
    fy_waits_for(port, "the frames of ranks that have left");
    for (bool all = false; !all;) {
        for (int lane = 0; lane < FY_LANES; lane++)
            fy_tally_look(&t, (fy_lane)lane, 1, fy_tally_take);
        all = true;
        for (int rank = 1; rank < info.ranks; rank++) {
            bool ended = t.next[FY_DATA][rank] == FRAMES && t.next[FY_CONTROL][rank] == FRAMES;
            fy_expect(port->ops->members.silent(port, rank) == ended);
            all = all && ended;
        }
    }
}

/* Goal: wrong arguments are refused. */
static void refusals(fy_port *port)
{
    fy_port_info info = fy_info_of(port);
    fy_frame frame = {.kind = 1};
    fy_expect(port->ops->transport.send(port, FY_APP, FY_DATA, -1, &frame) == FERRY_EINVAL);
    fy_expect(port->ops->transport.send(port, FY_APP, FY_DATA, info.ranks, &frame) == FERRY_EINVAL);
    frame.word_count = FY_FRAME_WORDS + 1;
    fy_expect(port->ops->transport.send(port, FY_APP, FY_DATA, 0, &frame) == FERRY_EINVAL);
}

/* The cases: a name, a function, and how many ranks run it. */
#define CASES(CASE)                                                                                \
    CASE(test_port_has_what_it_says, fy_case_whole, 1)                                             \
    CASE(test_port_delivers_between_all_in_order, all_to_all, 3)                                   \
    CASE(test_port_delivers_between_many, all_to_all, 12)                                          \
    CASE(test_port_delivers_any_size, sizes, 2)                                                    \
    CASE(test_port_delivers_frames_that_are_alike, fy_case_alike, 2)                               \
    CASE(test_port_reads_what_it_is_lent, lends, 2)                                                \
    CASE(test_port_bounds_a_flood, flood, 2)                                                       \
    CASE(test_port_keeps_what_is_left, leaving, 3)                                                 \
    CASE(test_port_names_the_sources_of_new_frames, news, 3)                                       \
    CASE(test_port_takes_what_is_written_into_outlets, fy_case_outlets, 3)                         \
    CASE(test_port_loses_no_wake_up, wakes, 2)                                                     \
    CASE(test_port_keeps_deadlines, deadline, 1)                                                   \
    CASE(test_port_wakes_the_helper, helper_answers, 2)                                            \
    CASE(test_port_tells_who_left, leaves, 3)                                                      \
    CASE(test_port_delivers_all_of_a_rank_that_left, is_heard_out, 3)                              \
    CASE(test_port_shares_memory, fy_case_memory, 2)                                               \
    CASE(test_port_has_boards, fy_case_boards, 3)                                                  \
    CASE(test_port_releases_what_was_kept, fy_case_keeps, 2)                                       \
    CASE(test_port_tells_of_changes, fy_case_changes, 3)                                           \
    CASE(test_port_tells_what_it_does, fy_case_tells, 2)                                           \
    CASE(test_port_refuses_wrong_arguments, refusals, 1)

#define RUN(NAME, CASE, RANKS)                                                                     \
    static void run_##NAME(fy_port *port)                                                          \
    {                                                                                              \
        fy_case_run(#NAME, CASE, port);                                                            \
    }
CASES(RUN)

#define ROW(NAME, CASE, RANKS) {#NAME, run_##NAME, RANKS},
const fy_conformance fy_conformance_cases[] = {CASES(ROW){NULL, NULL, 0}};

void fy_conformance_check_name(const char *name)
{
    const fy_conformance *c = fy_conformance_cases;
    while (name != NULL && c->name != NULL && strcmp(name, c->name) != 0)
        c++;
    if (name == NULL || c->name != NULL)
        return;
    fprintf(stderr, "no case \"%s\"; expected one of:\n", name);
    for (c = fy_conformance_cases; c->name != NULL; c++)
        fprintf(stderr, "  %s\n", c->name);
    exit(2);
}
