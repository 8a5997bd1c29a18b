/* Goal: a rank dies long after its last operation on a cell. The memory of the parcel that it
 * locked then has another use by now, and recovery does not touch it. Method: ranks 0 and 1 of one
 * process. Rank 1 works on a parcel of rank 0. The parcel is freed; its memory is allocated again
 * and filled with the value of a lock that rank 1 holds. Then rank 1 is declared dead, and rank 0
 * recovers it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/cell.h>
#include <ferry/memory.h>

#include "../support/must.h"
#include "base/error.h"
#include "core/rank.h"
#include "port/shm/layout.h"
#include "ranks.h"

enum { BYTES = 1000, HEADER_BYTES = 64, WORDS = (BYTES + HEADER_BYTES) / 4, LOCKED = 2 };

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f;
    *(bool *)arg = event->died;
}

/* Rank 1 takes a parcel of rank 0 out of a cell and lets it go. Returns where it was. */
static void *work(ferry *zero, ferry *one)
{
    const ferry_cell cell = {0, 0};
    ferry_parcel parcel;
    void *data;
    must(ferry_parcel_create(zero, BYTES, &parcel, &data) == 0, "create");
    must(ferry_cell_enqueue(zero, cell, parcel, FERRY_GIVE, 0) == 0, "enq");
    must(ferry_cell_dequeue(one, cell, &parcel, 0) == 0, "deq");
    must(ferry_parcel_release(one, parcel) == 0, "release");
    must(ferry_parcel_count(zero) == 0, "the parcel is not freed");
    return data;
}

int main(void)
{
    const fy_shm_options options = {.ranks = 2, .heap_bytes = (size_t)16 << 20};
    fy_segment *segment;
    int fd;
    bool died = false;
    uint32_t *block;
    must(fy_segment_create(&options, &fd) == 0 && fy_segment_map(fd, &segment) == 0, "segment");
    ferry *zero = open_rank(segment, 0, "none"), *one = open_rank(segment, 1, "none");
    char *data = work(zero, one);
    must(ferry_peer_watch(zero, on_peer, &died) == 0, "on_peer");
    must(ferry_alloc(zero, BYTES + HEADER_BYTES, (void **)&block) == 0, "alloc");
    must((char *)block + HEADER_BYTES == data, "the memory is not used again");
    for (size_t i = 0; i < WORDS; i++)
        block[i] = LOCKED;
    fy_controls_mark(segment->base, 2, 1, SHM_DEAD);
    while (!died)
        ferry_poll(zero);
    must(ferry_parcel_count(zero) == 0, "parcels");
    for (size_t i = 0; i < WORDS; i++)
        must(block[i] == LOCKED, "the death of a rank has changed memory that it did not have");
    _exit(0); /* the dead rank is not closed */
}
