/* Readers: rank 0 publishes versions of a parcel in a cell. The other ranks read the parcel where
 * it lies, without copying it. The cell keeps each version until the next one. So rank 0 gets a
 * copy to write in, and a reader keeps the version that it reads.
 *
 *     cc readers.c $(pkg-config --cflags --libs ferry-data) -o readers
 *     ferry run -n 4 ./readers [READS] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ferry/ferry.h>

enum { WORDS = 4096, NUMBER = 0 };

static void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "readers: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
    exit(1);
}

/* Makes the next version out of the last one, and puts it where the old one was. */
static int64_t publish(ferry *f, ferry_cell cell, ferry_parcel *parcel, uint64_t version)
{
    uint64_t before = parcel->word;
    void *data;
    check(f, ferry_parcel_modify(f, parcel, &data));
    for (int i = 0; i < WORDS; i++)
        ((uint64_t *)data)[i] = version;
    check(f, ferry_cell_write(f, cell, *parcel, FERRY_KEEP));
    return parcel->word != before;
}

/* Reads the whole parcel; all words must be of one version, and versions never go back. */
static uint64_t look(ferry *f, ferry_cell cell, uint64_t last)
{
    ferry_parcel parcel;
    check(f, ferry_cell_read(f, cell, &parcel, FERRY_FOREVER));
    const uint64_t *words = ferry_parcel_data(f, parcel, NULL);
    uint64_t version = words[0];
    for (int i = 0; i < WORDS; i++)
        if (words[i] != version || version < last) {
            fprintf(stderr, "readers: a parcel changed while it was read\n");
            exit(1);
        }
    check(f, ferry_parcel_release(f, parcel));
    return version;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const ferry_cell cell = {0, NUMBER};
    long reads = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
    if (reads < 1) {
        fprintf(stderr, "readers: READS is '%s': expected a number from 1\n", argv[1]);
        return 2;
    }
    int64_t counts[2] = {0, 0}; /* reads, copies */
    ferry_parcel parcel = {0};
    if (ferry_rank(f) == 0) {
        check(f, ferry_parcel_create(f, WORDS * sizeof(uint64_t), &parcel, NULL));
        for (int version = 1; version <= reads / 20 + 1; version++) {
            counts[1] += publish(f, cell, &parcel, (uint64_t)version);
            ferry_wait(f, 20000);
        }
    }
    uint64_t version = 0;
    for (int i = 0; i < reads && ferry_rank(f) != 0; i++, counts[0]++)
        version = look(f, cell, version);
    check(f, ferry_barrier(f));
    if (ferry_rank(f) == 0) {
        check(f, ferry_cell_clear(f, cell));
        check(f, ferry_parcel_release(f, parcel));
    }
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, counts, counts, 2));
    if (ferry_rank(f) == 0)
        printf("%" PRId64 " reads of %ld versions; %" PRId64 " copies were made\n", counts[0],
               reads / 20 + 1, counts[1]);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
