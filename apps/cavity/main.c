/* Cavity: a distributed Delaunay triangulation of random points; see cavity.h.
 *
 *     ferry run -n 4 build/apps/cavity [EVENTS] [--check]
 *
 * Each rank inserts EVENTS points in its own tile of a square, several at a time. Before that rank
 * 0 inserts a few points everywhere, so that all ranks hold triangles. --check verifies the mesh;
 * the exit status is 1 if it is wrong. --narrow makes cavities of one triangle only, which gives a
 * mesh that is not Delaunay: the check notices it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cavity.h"
#include "common/parameters.h"

/* As many columns as divide the ranks, near to a square. */
static void cut_tiles(mesher *m)
{
    int ranks = ferry_ranks(m->f);
    m->columns = 1;
    for (int columns = 1; columns * columns <= ranks; columns++)
        if (ranks % columns == 0)
            m->columns = columns;
    m->rows = ranks / m->columns;
}

/* The square as two triangles, on rank 0. */
static void make_square(mesher *m)
{
    const mesh_point a = {0, 0}, b = {SIDE, 0}, c = {SIDE, SIDE}, d = {0, SIDE};
    const triangle_id lower = 1, upper = 2;
    const triangle two[] = {{.id = lower, .beyond = {0, upper, 0}, .corner = {a, b, c}},
                            {.id = upper, .beyond = {0, 0, lower}, .corner = {a, c, d}}};
    m->made = 2;
    store_add(&m->store, &two[0]);
    store_add(&m->store, &two[1]);
}

/* Draws `budget` more points here, and inserts them and those of all other ranks. */
static void insert_points(mesher *m, uint64_t budget, int at_a_time)
{
    const ferry_message message = {.handler = m->draw};
    m->budget += budget;
    for (int i = 0; i < at_a_time; i++)
        check(m->f, ferry_request_send(m->f, ferry_rank(m->f), &message, NULL));
    check(m->f, ferry_quiesce(m->f));
}

/* Rank 0 prints what all did. Returns the exit status. */
static int report(mesher *m, uint64_t points, double seconds, bool checked)
{
    enum { SUMS = sizeof(counts) / sizeof(uint64_t) };
    ferry *f = m->f;
    counts all = m->counts;
    double share = m->counts.inserted == 0
                       ? 0
                       : 100.0 * (double)m->counts.distributed / (double)m->counts.inserted;
    double least = share, most = share;
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &m->counts, &all, SUMS));
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_MIN, &share, &least, 1));
    check(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_MAX, &share, &most, 1));
    bool good = all.wrong == 0 && all.inserted + all.doubled == points;
    if (checked)
        good = good && all.triangles == 2 * all.inserted + 2 &&
               all.compared == 3 * all.triangles - 4 &&
               all.area2 == 2 * (uint64_t)SIDE * (uint64_t)SIDE;
    if (ferry_rank(f) != 0)
        return !good;
    printf(
        "%" PRIu64 " points on %d ranks in %.6f s; %.1f%% of the cavities on several ranks (%.1f "
        "to %.1f%% by rank), %.1f messages for each of these; %" PRIu64 " gave way, %" PRIu64
        " waited; %.1f%% of %" PRIu64 " messages of %d bytes at most\n",
        all.inserted, ferry_ranks(f), seconds,
        all.inserted == 0 ? 0 : 100.0 * (double)all.distributed / (double)all.inserted, least, most,
        all.distributed == 0 ? 0 : (double)all.distributed_messages / (double)all.distributed,
        all.conflicts, all.waits,
        all.messages == 0 ? 0 : 100.0 * (double)all.small / (double)all.messages, all.messages,
        SMALL_BYTES);
    if (checked && good)
        printf("%" PRIu64 " triangles: Delaunay, and the whole square\n", all.triangles);
    else if (!good)
        fprintf(stderr,
                "cavity: the mesh is wrong: %" PRIu64 " places, %" PRIu64
                " triangles where %" PRIu64 " points need %" PRIu64 ", %" PRIu64
                " edges compared\n",
                all.wrong, all.triangles, all.inserted, 2 * all.inserted + 2, all.compared);
    return !good;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long events = 20000, at_a_time = 8, seed = 1;
    bool checked = false;
    mesher m = {.f = f};
    const parameter table[] = {
        {"EVENTS", "points that each rank inserts", 1, 1e8, .whole = &events},
        {"at-a-time", "points of a rank that are inserted together", 1, 1000, .whole = &at_a_time},
        {"seed", "of the points", 0, 1e9, .whole = &seed},
        {"cost", "microseconds of a simulated rank for each new triangle", 0, 1e9,
         .real = &m.cost_us},
        {"check", "verifies the mesh", .flag = &checked},
        {"narrow", "makes cavities of one triangle: the mesh is wrong", .flag = &m.narrow},
        {0}};
    int status = parameters_read(f, argc, argv, "A distributed Delaunay triangulation.", table);
    if (status >= 0)
        return status;
    const int seeds = SEEDS_PER_RANK * ferry_ranks(f);
    ferry_user_data_set(f, &m);
    insert_register(&m);
    cut_tiles(&m);
    m.random = (uint64_t)seed * 65536 + (uint64_t)ferry_rank(f);
    next_random(&m.random);
    m.seeding = true;
    if (ferry_rank(f) == 0)
        make_square(&m);
    check(f, ferry_barrier(f));
    uint64_t start = ferry_now(f);
    insert_points(&m, ferry_rank(f) == 0 ? (uint64_t)seeds : 0, 1);
    m.seeding = false;
    insert_points(&m, (uint64_t)events, (int)at_a_time);
    double seconds = (double)(ferry_now(f) - start) / 1e9;
    if (checked)
        verify(&m);
    status =
        report(&m, (uint64_t)events * (uint64_t)ferry_ranks(f) + (uint64_t)seeds, seconds, checked);
    store_fini(&m.store);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
