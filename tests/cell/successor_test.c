/* Goal: a rank that joins gets the heap of a dead rank, whose last parcel was released long after
 * all ranks had heard of the death. Method: ranks 0 and 1 of one process and two heaps. Rank 0 has
 * a parcel of rank 1, which is declared dead, and releases it later. Then rank 2 joins in a thread,
 * while rank 0 waits as programs do. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ferry/cell.h>
#include <ferry/member.h>

#include "../support/must.h"
#include "base/error.h"
#include "core/rank.h"
#include "port/shm/layout.h"

enum { BYTES = 1000 };

/* The state of the thread of the rank that joins, and its result. */
typedef struct newcomer {
    fy_segment *segment;
    fy_port *port;
    int error;
    char text[200];
    _Atomic bool done;
} newcomer;

static ferry *open_rank(fy_segment *segment, int rank)
{
    const ferry_options options = {.size = sizeof(options), .scheduler = "none"};
    fy_port *port;
    ferry *f;
    must(fy_shm_join(segment, rank, &port) == 0, "join");
    must(fy_rank_create(port, &options, &f) == 0, "open");
    return f;
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    if (event->died)
        *(bool *)arg = true;
}

static void *join(void *arg)
{
    newcomer *n = arg;
    n->error = fy_shm_join(n->segment, 2, &n->port);
    if (n->error != 0)
        (void)snprintf(n->text, sizeof n->text, "%s", fy_error_text());
    n->done = true;
    return NULL;
}

int main(void)
{
    const fy_shm_options options = {
        .ranks = 2, .ranks_max = 3, .arenas = 2, .heap_bytes = (size_t)4 << 20};
    const ferry_cell cell = {0, 0};
    newcomer n = {.port = NULL};
    bool died = false;
    ferry_parcel parcel;
    pthread_t thread;
    int fd;
    must(fy_segment_create(&options, &fd) == 0 && fy_segment_map(fd, &n.segment) == 0, "segment");
    ferry *zero = open_rank(n.segment, 0), *one = open_rank(n.segment, 1);
    must(ferry_peer_watch(zero, on_peer, &died) == 0, "on_peer");
    must(ferry_parcel_create(one, BYTES, &parcel, NULL) == 0, "create");
    must(ferry_cell_enqueue(one, cell, parcel, FERRY_GIVE, 0) == 0, "enq");
    must(ferry_cell_dequeue(zero, cell, &parcel, 0) == 0, "deq");
    fy_controls_mark(n.segment->base, 3, 1, SHM_DEAD);
    while (!died)
        ferry_poll(zero);
    must(ferry_parcel_release(zero, parcel) == 0, "release");
    must(pthread_create(&thread, NULL, join, &n) == 0, "thread");
    while (!n.done)
        (void)ferry_wait(zero, 1000000);
    must(pthread_join(thread, NULL) == 0, "thread");
    must(n.error == 0, n.text);
    _exit(0); /* the dead rank is not closed */
}
