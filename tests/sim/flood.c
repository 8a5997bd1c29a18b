/* Goal: memory stays bounded when ranks flood one that is slow, and when handlers answer a peer
 * that takes no answers; nothing is lost meanwhile. Method: all ranks send requests to the first,
 * many times what the bound holds. They send as fast as they can, or at a pace at which they never
 * find their ring full and so never poll. The handler answers each. The simulator watches the
 * memory in use (ferry sim --memory). As processes, each limits its private memory, so that an
 * allocation beyond it fails, and watches the most memory that it ever had resident. The program
 * counts.
 *
 * Run as ferry sim -n N --memory BYTES flood REQUESTS BYTES [PACE_US], or as FERRY_RANKS=N flood
 * REQUESTS BYTES PACE_US LIMIT_KIB. With `held` after that, the requests are empty, and the second
 * of two ranks takes no answers before the first has handled all: they wait on the first. */
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../object/resident.h"
#include "oracle.h"

enum { BYTES_MAX = 4096 };

typedef struct counts {
    ferry_handler request, answer;
    uint64_t requests, answers;
    size_t size_bytes;
    uint64_t held;             /* requests after which the others go on; 0: nobody is held */
    _Atomic uint64_t *handled; /* here: rank 0 writes when it has handled them */
} counts;

static const unsigned char data[BYTES_MAX];

/* Empty, with the place where this rank waits. */
static void send_held(ferry *f)
{
    const counts *c = ferry_user_data(f);
    const ferry_message message = {
        .handler = c->request, .word_count = 1, .words = {(uintptr_t)c->handled}};
    must(f, ferry_request_send(f, 0, &message, NULL), "request");
}

static void send_to(ferry *f, int rank, ferry_handler handler)
{
    const counts *c = ferry_user_data(f);
    const ferry_message message = {.handler = handler, .data = data, .size_bytes = c->size_bytes};
    must(f, ferry_request_send(f, rank, &message, NULL), "request");
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    counts *c = ferry_user_data(f);
    c->requests++;
    ferry_compute(f, 2e-6);
    send_to(f, source, c->answer);
    const uint64_t one = 1;
    if (c->requests == c->held)
        must(f, ferry_put(f, source, (void *)(uintptr_t)message->words[0], &one, sizeof one, NULL),
             "put");
}

static void on_answer(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    ((counts *)ferry_user_data(f))->answers++;
}

static void send_all(ferry *f, uint64_t count, double pace_s)
{
    for (uint64_t i = 0; i < count; i++) {
        if (pace_s > 0)
            ferry_compute(f, pace_s);
        send_to(f, 0, ((const counts *)ferry_user_data(f))->request);
    }
}

/* The second rank polls only when the first has handled all. */
static void send_all_held(ferry *f, uint64_t count)
{
    const counts *c = ferry_user_data(f);
    if (ferry_rank(f) == 0)
        return;
    for (uint64_t i = 0; i < count; i++)
        send_held(f);
    while (atomic_load(c->handled) == 0)
        sched_yield();
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc < 3)
        return 2;
    uint64_t count = strtoull(argv[1], NULL, 10);
    double pace_s = argc > 3 ? strtod(argv[3], NULL) / 1e6 : 0;
    bool holds = argc > 5 && strcmp(argv[5], "held") == 0;
    counts c = {.size_bytes = strtoul(argv[2], NULL, 10), .held = holds ? count : 0};
    void *handled = NULL;
    if (holds) {
        must(f, ferry_alloc(f, sizeof *c.handled, &handled), "alloc");
        c.handled = handled;
        atomic_init(c.handled, 0);
    }
    ferry_user_data_set(f, &c);
    must(f, ferry_handler_register(f, "request", on_request, &c.request), "handler");
    must(f, ferry_handler_register(f, "answer", on_answer, &c.answer), "handler");
    must(f, ferry_barrier(f), "barrier");
    uint64_t limit_kib = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    uint64_t before_kib = resident_kib_max();
    if (limit_kib != 0 && !private_kib_limit(limit_kib)) {
        fprintf(stderr, "flood: the memory of rank %d cannot be limited\n", ferry_rank(f));
        return WRONG_STATUS;
    }
    if (holds)
        send_all_held(f, count);
    else
        send_all(f, count, pace_s);
    must(f, ferry_quiesce(f), "quiesce");
    uint64_t requests = count * ((uint64_t)ferry_ranks(f) - holds);
    uint64_t answers = holds && ferry_rank(f) == 0 ? 0 : count;
    uint64_t grown_kib = resident_kib_max() - before_kib;
    if (limit_kib != 0)
        printf("rank %d: %" PRIu64 " KiB more\n", ferry_rank(f), grown_kib);
    if (limit_kib != 0 && (before_kib == 0 || grown_kib > limit_kib)) {
        fprintf(stderr, "flood: rank %d: %" PRIu64 " KiB more, at most %" PRIu64 "\n",
                ferry_rank(f), grown_kib, limit_kib);
        return WRONG_STATUS;
    }
    if (c.answers == answers && c.requests == (ferry_rank(f) == 0 ? requests : 0))
        return 0;
    fprintf(stderr, "oracle: rank %d: %" PRIu64 " requests, %" PRIu64 " answers\n", ferry_rank(f),
            c.requests, c.answers);
    return WRONG_STATUS;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
