/* Pipeline: parcels of memory that pass through the ranks without being copied.
 *
 * Rank 0 makes parcels of 1 MiB and gives each to the cell of rank 1. Each rank takes parcels from
 * its own cell, works on them and gives them to the cell of the next rank. The last rank adds up
 * their first words. An empty parcel says that no more come.
 *
 *     cc pipeline.c $(pkg-config --cflags --libs ferry-data) -o pipeline
 *     ferry run -n 4 ./pipeline */
#include <stdio.h>

#include <ferry/ferry.h>

enum { PARCELS = 50, WORDS = 1 << 17 };

static void check(ferry *f, int error)
{
    if (error < 0)
        ferry_abort(f, 1, ferry_error_message(f));
}

/* Gives a parcel to the next rank. If the cell there is full, this waits. */
static void pass_on(ferry *f, ferry_parcel parcel)
{
    const ferry_cell next = {.rank = ferry_rank(f) + 1, .number = 0};
    check(f, ferry_cell_enqueue(f, next, parcel, FERRY_GIVE, FERRY_FOREVER));
}

static void produce(ferry *f)
{
    for (uint64_t i = 0; i <= PARCELS; i++) {
        ferry_parcel parcel;
        void *data;
        size_t size_bytes = i < PARCELS ? WORDS * sizeof(uint64_t) : 0; /* the last one is empty */
        check(f, ferry_parcel_create(f, size_bytes, &parcel, &data));
        for (size_t w = 0; w < size_bytes / sizeof(uint64_t); w++)
            ((uint64_t *)data)[w] = i;
        pass_on(f, parcel);
    }
}

/* One stage: adds 1 to each word. ferry_parcel_modify copies only if somebody else has the parcel.
 */
static void work(ferry *f, ferry_parcel *parcel)
{
    void *data;
    check(f, ferry_parcel_modify(f, parcel, &data));
    for (size_t w = 0; w < WORDS; w++)
        ((uint64_t *)data)[w]++;
}

static void consume(ferry *f, bool last)
{
    const ferry_cell own = {.rank = ferry_rank(f), .number = 0};
    uint64_t sum = 0;
    for (;;) {
        ferry_parcel parcel;
        size_t size_bytes;
        check(f, ferry_cell_dequeue(f, own, &parcel, FERRY_FOREVER));
        if (ferry_parcel_data(f, parcel, &size_bytes) == NULL)
            ferry_abort(f, 1, ferry_error_message(f));
        if (size_bytes > 0)
            work(f, &parcel);
        if (last && size_bytes > 0)
            sum += *(const uint64_t *)ferry_parcel_data(f, parcel, NULL);
        if (last)
            check(f, ferry_parcel_release(f, parcel)); /* frees it */
        else
            pass_on(f, parcel);
        if (size_bytes == 0)
            break;
    }
    if (last)
        printf("%d parcels, sum %d\n", PARCELS, (int)sum);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (ferry_ranks(f) < 2) {
        fprintf(stderr, "pipeline: needs 2 ranks at least\n");
        return 2;
    }
    check(f, ferry_cell_limit_set(f, 0, 4)); /* a producer that is ahead waits */
    check(f, ferry_barrier(f));
    if (ferry_rank(f) == 0)
        produce(f);
    else
        consume(f, ferry_rank(f) == ferry_ranks(f) - 1);
    return ferry_barrier(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
