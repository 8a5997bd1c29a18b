/* Filters: images go through a chain of filters, one filter per rank, over cells.
 *
 * Each rank's cell is its inbox. A handler with a high-water mark runs the filter when an image has
 * come; the last rank has a cell of finished ones. The first rank's source is a handler too: when
 * fewer than two images wait for the first filter it makes the next, so no more images exist than
 * the chain can work on. An image stays where it is while its name goes from cell to cell.
 *
 *     ferry run -n 4 build/apps/filters [IMAGES] [--check]
 *
 * --check has the last rank make each image again, put it through all filters by itself and compare
 * every pixel; the exit status is 1 if one differs or an image is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/parameters.h"

enum { SIDE = 256, INBOX = 0, DONE = 1, ENOUGH = 2 };

typedef struct image {
    int32_t number, filters;
    uint8_t pixels[SIDE][SIDE];
} image;

typedef struct stage {
    int made, images; /* the first rank's source */
    int done;         /* the last rank's images */
    uint64_t sum;     /* of their pixels */
    bool check;
    int wrong;    /* images with another pixel than they should have */
    bool *seen;   /* by number: has come */
    image *alone; /* one that this rank filters by itself */
} stage;

/* Each pixel becomes the mean of itself and its neighbours to the right and below. */
static void soften(image *picture)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int right = picture->pixels[y][(x + 1) % SIDE];
            int below = picture->pixels[(y + 1) % SIDE][x];
            picture->pixels[y][x] = (uint8_t)((2 * picture->pixels[y][x] + right + below) / 4);
        }
    picture->filters++;
}

static void draw(image *picture, int number)
{
    picture->number = number;
    picture->filters = 0;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            picture->pixels[y][x] = (uint8_t)(x * y + number);
}

/* Whether `picture` is one that had not come yet, with the pixels it has after all filters. */
static bool is_right(ferry *f, stage *s, const image *picture)
{
    if (picture->number < 0 || picture->number >= s->images || s->seen[picture->number])
        return false;
    s->seen[picture->number] = true;
    draw(s->alone, picture->number);
    for (int i = 0; i < ferry_ranks(f); i++)
        soften(s->alone);
    return memcmp(s->alone, picture, sizeof *picture) == 0;
}

/* The source: the inbox has fewer images than its low-water mark. Runs the filter too. */
static void on_inbox(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    stage *s = arg;
    if (ferry_rank(f) == 0 && count < ENOUGH && s->made < s->images) {
        ferry_parcel parcel;
        void *data;
        check(f, ferry_parcel_create(f, sizeof(image), &parcel, &data));
        draw(data, s->made++);
        check(f, ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, 0));
        return;
    }
    ferry_parcel parcel;
    if (ferry_cell_dequeue(f, cell, &parcel, 0) != 0)
        return;
    void *data;
    check(f, ferry_parcel_modify(f, &parcel, &data)); /* no copy: nobody else has it */
    soften(data);
    bool last = ferry_rank(f) == ferry_ranks(f) - 1;
    const ferry_cell next = {ferry_rank(f) + !last, last ? DONE : INBOX};
    const ferry_track untold = FERRY_TRACK_DEFAULTS;
    check(f, ferry_cell_enqueue_start(f, next, parcel, FERRY_GIVE, &untold));
}

/* Runs before the filter when both are due: its priority is higher. */
static void on_done(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    stage *s = arg;
    (void)count;
    ferry_parcel parcel;
    while (ferry_cell_dequeue(f, cell, &parcel, 0) == 0) {
        const image *picture = ferry_parcel_data(f, parcel, NULL);
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                s->sum += picture->pixels[y][x];
        s->wrong += s->check && !is_right(f, s, picture);
        s->done += picture->filters == ferry_ranks(f);
        check(f, ferry_parcel_release(f, parcel));
    }
}

static void set_handlers(ferry *f, stage *s)
{
    ferry_cell_handler inbox = FERRY_CELL_HANDLER_DEFAULTS, done = FERRY_CELL_HANDLER_DEFAULTS;
    inbox.fn = on_inbox;
    inbox.arg = s;
    inbox.high = 0;
    inbox.low = ferry_rank(f) == 0 ? ENOUGH : 0;
    done.fn = on_done;
    done.arg = s;
    done.high = 0;
    done.priority = 1;
    check(f, ferry_cell_handler_set(f, DONE, &done));
    check(f, ferry_barrier(f));
    check(f, ferry_cell_handler_set(f, INBOX, &inbox));
}

/* Returns the exit status. */
static int report(ferry *f, const stage *s)
{
    int64_t counts[3] = {s->done, (int64_t)s->sum, s->wrong};
    check(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, counts, counts, 3));
    bool good = counts[0] == s->images && counts[2] == 0;
    if (ferry_rank(f) == 0) {
        printf("%" PRId64 " of %d images went through %d filters; mean pixel %.2f%s\n", counts[0],
               s->images, ferry_ranks(f), (double)counts[1] / ((double)counts[0] * SIDE * SIDE),
               good && s->check ? "; each pixel as it should be" : "");
        if (!good)
            fprintf(stderr, "filters: %" PRId64 " of %d images are wrong, %" PRId64 " missing\n",
                    counts[2], s->images, s->images - counts[0]);
    }
    return !good;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long images = 200;
    stage s = {0};
    const parameter table[] = {{"IMAGES", "that go through the filters", 1, 1e6, .whole = &images},
                               {"check", "compares each pixel", .flag = &s.check},
                               {0}};
    int status = parameters_read(f, argc, argv, "A pipeline of filters, one per rank.", table);
    if (status >= 0)
        return status;
    s.images = (int)images;
    s.seen = calloc((size_t)images, sizeof *s.seen);
    s.alone = malloc(sizeof *s.alone);
    if (s.seen == NULL || s.alone == NULL)
        return 1;
    set_handlers(f, &s);
    check(f, ferry_quiesce(f));
    status = report(f, &s);
    free(s.seen);
    free(s.alone);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
