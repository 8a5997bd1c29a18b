/* Goal: when memory fails inside a mover call, the call fails on every rank, nothing hangs or
 * leaks, and the next one works. Method: a session of two ranks shares a floor plan, binds, moves,
 * binds and moves over indices, gives blocks to other ranks, makes them objects, and writes and
 * reads a file. It is repeated with the first, second, ... allocation of the mover layer failing,
 * on one rank and then on the other, until none is left to fail; with whole floor plans and with
 * shares. Where a sanitizer makes this slow, each eleventh allocation fails, and with TESTS_WHOLE
 * all. The layer is linked into this program with its allocations renamed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ferry/mover_blocks.h>
#include <ferry/mover_file.h>

#include "cells.h"

#ifdef FERRY_SANITIZED
enum { STRIDE = 11 };
#else
enum { STRIDE = 1 };
#endif

void *failing_malloc(size_t size);
void *failing_calloc(size_t count, size_t size);
void *failing_realloc(void *old, size_t size);
int failing_alloc(ferry *f, size_t size, void **out);

static long countdown = -1; /* allocations until the one that fails; negative: none does */

static bool reached; /* it has failed */

static bool fails(void)
{
    bool now = countdown >= 0 && countdown-- == 0;
    reached |= now;
    return now;
}

void *failing_malloc(size_t size)
{
    return fails() ? NULL : malloc(size);
}

void *failing_calloc(size_t count, size_t size)
{
    return fails() ? NULL : calloc(count, size);
}

void *failing_realloc(void *old, size_t size)
{
    return fails() ? NULL : realloc(old, size);
}

int failing_alloc(ferry *f, size_t size, void **out)
{
    return fails() ? FERRY_ENOMEM : ferry_alloc(f, size, out);
}

typedef struct session {
    ferry_handler handler;
    const char *path;
    bool hdf5; /* there is a plug-in for it */
    bool shares;
    ferry_floorplan blocks;
    ferry_halo halo;
    ferry_xarray *x;
    ferry_mover *m, *sums;
    ferry_mover *out, *back; /* over indices, of line */
    ferry_grid line;
    ferry_blocks *set;
} session;

/* Whether a call that every rank makes worked; an error on one is one on all. */
static bool worked(ferry *f, int error)
{
    uint64_t failed = error != 0;
    CHECK(error == 0 || error == FERRY_ENOMEM || error == FERRY_EINVAL);
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &failed, &failed, 1) == 0);
    CHECK(failed == 0 || failed == (uint64_t)ferry_ranks(f));
    return failed == 0;
}

/* As worked, for calls that each rank makes for itself. */
static bool all_worked(ferry *f, int error)
{
    uint64_t failed = error != 0;
    CHECK(error == 0 || error == FERRY_ENOMEM);
    CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &failed, &failed, 1) == 0);
    return failed == 0;
}

static bool bind(ferry *f, session *s)
{
    ferry_plan plan = {0};
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    bool good = all_worked(f, ferry_plan_halo(&plan, &s->blocks, &s->halo, ferry_rank(f)));
    options.check = true;
    good = good && worked(f, ferry_mover_bind(f, &plan, s->x, s->x, &options, &s->m));
    options.operation.reduction = FERRY_SUM;
    options.ordered = options.messages = true;
    good = good && worked(f, ferry_mover_bind(f, &plan, s->x, s->x, &options, &s->sums));
    ferry_plan_fini(&plan);
    return good;
}

/* Without agreement of all ranks a neighbour may have its mover before this one fails. It learns of
 * it when it moves. */
static bool bind_and_move_once(ferry *f, session *s)
{
    ferry_plan plan = {0};
    ferry_mover *m = NULL;
    bool good = all_worked(f, ferry_plan_halo(&plan, &s->blocks, &s->halo, ferry_rank(f)));
    if (good) {
        int error = ferry_mover_bind(f, &plan, s->x, s->x, NULL, &m);
        if (error == 0)
            error = ferry_mover_start(m, NULL);
        if (error == 0)
            error = ferry_mover_wait(m);
        good = worked(f, error);
    }
    CHECK(ferry_mover_free(m) == 0);
    ferry_plan_fini(&plan);
    return good;
}

static bool move(ferry *f, const session *s, int round)
{
    fill(s->x, round);
    CHECK(ferry_mover_start(s->m, NULL) == 0 && ferry_mover_wait(s->m) == 0);
    check_halo(f, s->x, &s->halo, round);
    CHECK(ferry_mover_start(s->sums, NULL) == 0 && ferry_mover_wait(s->sums) == 0);
    return true;
}

enum { BLOCKS = 4 };                /* of 4 rows of 16 */
enum { OWN = 3000, GHOSTS = 2100 }; /* links that are direct */

/* A ghost is an element of another rank, or, the last ten, of this one. */
static ferry_ghost ghost_of(ferry *f, int64_t i)
{
    const int other = (ferry_rank(f) + 1) % ferry_ranks(f);
    return (ferry_ghost){
        .local = OWN + i, .remote = 7 * i % OWN, .owner = i < GHOSTS - 10 ? other : ferry_rank(f)};
}

/* How many ghosts element `i` has: 7 and OWN have no common factor. */
static int64_t ghosts_of(int64_t i)
{
    int64_t count = 0;
    for (int64_t g = 0; g < GHOSTS; g++)
        count += 7 * g % OWN == i;
    return count;
}

static bool bind_indices(ferry *f, session *s)
{
    const int64_t extent = OWN + GHOSTS;
    ferry_ghost items[GHOSTS];
    for (int64_t i = 0; i < GHOSTS; i++)
        items[i] = ghost_of(f, i);
    ferry_ghosts ghosts = {.items = items, .count = GHOSTS};
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    options.check = true;
    if (!all_worked(
            f, ferry_grid_alloc(f, ferry_region_sized(1, &extent), sizeof(double), &s->line)) ||
        !worked(f, ferry_mover_bind_ghosts(f, &ghosts, &s->line, &s->line, &options, &s->out)))
        return false;
    ghosts.back = true;
    options.operation.reduction = FERRY_SUM;
    options.ordered = options.messages = true;
    return worked(f, ferry_mover_bind_ghosts(f, &ghosts, &s->line, &s->line, &options, &s->back));
}

static bool move_indices(ferry *f, const session *s)
{
    double *line = s->line.data;
    for (int64_t i = 0; i < OWN + GHOSTS; i++)
        line[i] = i < OWN ? (double)(i + ferry_rank(f) * OWN) : -1;
    CHECK(ferry_mover_start(s->out, NULL) == 0 && ferry_mover_wait(s->out) == 0);
    for (int64_t i = 0; i < GHOSTS; i++) {
        const ferry_ghost ghost = ghost_of(f, i);
        CHECK(line[ghost.local] == (double)(ghost.remote + ghost.owner * OWN));
        line[ghost.local] = 1;
    }
    CHECK(ferry_mover_start(s->back, NULL) == 0 && ferry_mover_wait(s->back) == 0);
    for (int64_t i = 0; i < OWN; i += 97)
        CHECK(line[i] == (double)(i + ferry_rank(f) * OWN + ghosts_of(i)));
    return true;
}

/* A share of a floor plan, from this rank's blocks alone. In every second session it is what all
 * that follows uses. */
static bool share(ferry *f, session *s)
{
    ferry_floorplan own = {.dims = 2}, out = {0};
    ferry_regions near = {0};
    int error = 0;
    for (size_t i = 0; i < s->blocks.count && error == 0; i++)
        if (s->blocks.blocks[i].owner == ferry_rank(f))
            error = ferry_floorplan_add(&own, s->blocks.blocks[i].region, 0);
    if (error == 0)
        error = ferry_halo_near(&own, &s->halo, &near);
    bool good = all_worked(f, error) && worked(f, ferry_floorplan_share(f, &own, &near, &out));
    CHECK(!good || out.total == s->blocks.count);
    if (good && s->shares) {
        const ferry_floorplan whole = s->blocks;
        s->blocks = out;
        out = whole;
    }
    ferry_floorplan_fini(&own);
    ferry_floorplan_fini(&out);
    ferry_regions_fini(&near);
    return good;
}

static void nothing(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    (void)data;
    (void)source;
    (void)message;
    CHECK(ferry_object_move(f, object, (ferry_rank(f) + 1) % ferry_ranks(f)) == 0);
}

static bool move_once(ferry_mover *m)
{
    return ferry_mover_start(m, NULL) == 0 && ferry_mover_wait(m) == 0;
}

/* Whether the movers can still move. A change of owners does not fail if one cannot follow; then it
 * fails on both ranks when it moves. */
static bool followed(ferry *f, const session *s)
{
    const bool first = worked(f, move_once(s->m) ? 0 : FERRY_ENOMEM);
    return worked(f, move_once(s->sums) ? 0 : FERRY_ENOMEM) && first;
}

/* Settles until it works: what failed once is done by the next call. All ranks get the same error
 * and a message. A whole floor plan changes only if the call succeeds. */
static bool settle(ferry *f, const session *s)
{
    const int before = s->x->blocks.blocks[0].owner;
    size_t moved = 0;
    int error = ferry_blocks_settle(s->set, &moved);
    (void)worked(f, error);
    if (error) {
        CHECK(error == FERRY_ENOMEM && ferry_error_message(f)[0] != '\0');
        CHECK(s->shares || s->x->blocks.blocks[0].owner == before);
        CHECK(ferry_blocks_settle(s->set, &moved) == 0);
    }
    CHECK(moved == BLOCKS);
    CHECK(s->shares || s->x->blocks.blocks[0].owner == (before + 1) % ferry_ranks(f));
    return followed(f, s);
}

static bool change_owners(ferry *f, session *s)
{
    int32_t owners[64];
    for (size_t i = 0; i < s->blocks.count; i++)
        owners[i] = (s->blocks.blocks[i].owner + 1) % ferry_ranks(f);
    const int before = s->x->blocks.blocks[0].owner;
    const bool good = worked(f, ferry_xarray_remap(s->x, owners));
    CHECK(s->shares || (s->x->blocks.blocks[0].owner == before) == !good);
    if (!good || !followed(f, s) || !move(f, s, 2))
        return false;
    const ferry_message message = {.handler = s->handler};
    if (!worked(f, ferry_blocks_create(f, &s->x, 1, &s->set)))
        return false;
    CHECK(ferry_blocks_send(s->set, &message) == 0);
    if (!settle(f, s))
        return false;
    return move(f, s, 3);
}

static bool write_and_read(ferry *f, const session *s)
{
    ferry_floorplan blocks = {0};
    size_t bytes;
    if (!worked(f, ferry_checkpoint_write(s->x, s->path)))
        return false;
    int error = ferry_checkpoint_plan(f, s->path, &blocks, &bytes);
    ferry_floorplan_fini(&blocks);
    if (!all_worked(f, error) || !all_worked(f, ferry_checkpoint_read(s->path, s->x)) ||
        !worked(f, ferry_vtk_write(s->x, s->path, NULL)))
        return false;
    return !s->hdf5 || (worked(f, ferry_dataset_write(s->x, s->path, NULL)) &&
                        worked(f, ferry_dataset_read(s->path, NULL, s->x)));
}

static void remove_files(ferry *f, const session *s)
{
    char name[600];
    CHECK(ferry_barrier(f) == 0);
    for (size_t i = 0; i < BLOCKS && ferry_rank(f) == 0; i++) {
        (void)snprintf(name, sizeof name, "%s_%zu.vti", s->path, i);
        (void)unlink(name);
    }
    (void)snprintf(name, sizeof name, "%s.pvti", s->path);
    if (ferry_rank(f) == 0) {
        (void)unlink(name);
        (void)unlink(s->path);
    }
}

/* Everything once; ends early at a failure, and frees all. */
static bool play(ferry *f, session *s)
{
    int64_t extents[2] = {16,
                          2100}; /* links that are staged, and with the third dimension direct */
    s->halo = (ferry_halo)FERRY_HALO_DEFAULTS;
    s->halo.domain = ferry_region_sized(2, extents);
    s->halo.low = s->halo.high = ferry_point_all(1);
    s->halo.periodic[0] = true;
    int error = ferry_floorplan_tile(s->halo.domain, ferry_point_of(4, 2100, 0), &s->blocks);
    if (error == 0)
        error = ferry_floorplan_map_cyclic(&s->blocks, ferry_ranks(f), 1);
    bool good = all_worked(f, error) && share(f, s);
    if (good)
        error = ferry_xarray_create(f, &s->blocks, sizeof(double), s->halo.low, &s->x);
    good = good && all_worked(f, error) && bind(f, s) && move(f, s, 1) &&
           bind_and_move_once(f, s) && bind_indices(f, s) && move_indices(f, s) &&
           change_owners(f, s) && write_and_read(f, s);
    countdown = -1;
    CHECK(ferry_blocks_destroy(s->set) == 0);
    CHECK(ferry_mover_free(s->sums) == 0 && ferry_mover_free(s->m) == 0);
    CHECK(ferry_mover_free(s->back) == 0 && ferry_mover_free(s->out) == 0);
    CHECK(ferry_free(f, s->line.data) == 0);
    ferry_xarray_destroy(s->x);
    remove_files(f, s);
    ferry_floorplan_fini(&s->blocks);
    *s = (session){.handler = s->handler, .path = s->path, .hdf5 = s->hdf5, .shares = s->shares};
    return good;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    char path[512];
    session s = {.path = path, .hdf5 = argc > 2};
    (void)snprintf(path, sizeof path, "%s/mover_failure", argc > 1 ? argv[1] : ".");
    CHECK(ferry_object_handler_register(f, "nothing", nothing, &s.handler) == 0);
    CHECK(play(f, &s));
    long failures = 0, stride = getenv("TESTS_WHOLE") == NULL ? STRIDE : 1;
    for (int victim = 0; victim < 2 * ferry_ranks(f); victim++) {
        uint64_t failed = 1;
        s.shares = victim >= ferry_ranks(f);
        for (long n = victim % stride; failed; n += stride) {
            countdown = ferry_rank(f) == victim % ferry_ranks(f) ? n : -1;
            reached = false;
            (void)play(f, &s);
            failed = reached;
            CHECK(ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &failed, &failed, 1) == 0);
            failures += (long)failed;
        }
    }
    if (ferry_rank(f) == 0)
        printf("%ld failures\n", failures);
    CHECK(failures > 100 && play(f, &s));
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
