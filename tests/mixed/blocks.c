/* Distributed arrays. Their blocks change owners: all together, or each as an object, by its
 * handler, its rank or a scheduler. After that a mover fills the ghost cells from where the blocks
 * are now. A cell has its index and how often it was changed. */
#include <ferry/mover_blocks.h>

#include "mixed.h"

enum { PER_MEMBER = 2, WIDTH_MAX = 400, GAMES = 3, STEP = 1 << 20 };

/* The array of a session. */
typedef struct array {
    ferry_floorplan blocks;
    ferry_plan plan;
    ferry_xarray *x;
    ferry_mover *mover;
    ferry_blocks *set;
    int64_t extent;
    size_t total;     /* blocks of all ranks */
    uint64_t changes; /* of each cell */
} array;

static uint64_t value_of(int64_t at, uint64_t changes)
{
    return (uint64_t)at * STEP + changes;
}

/* Each cell that is the block's own, or with `ghosts` each, has the value of its index. */
static void check_grid(ferry *f, const array *y, const ferry_grid *g, bool ghosts)
{
    for (ferry_point p = g->region.low; p.at[0] <= g->region.high.at[0]; p.at[0]++) {
        bool own = p.at[0] > g->region.low.at[0] && p.at[0] < g->region.high.at[0];
        uint64_t expected = value_of((p.at[0] + y->extent) % y->extent, y->changes);
        if ((own || ghosts) && *(uint64_t *)ferry_grid_at(g, p) != expected)
            wrong(f, own ? "a cell differs" : "a ghost cell differs",
                  *(uint64_t *)ferry_grid_at(g, p), expected);
    }
}

static void change_grid(const ferry_grid *g)
{
    ferry_point p = g->region.low;
    for (p.at[0]++; p.at[0] < g->region.high.at[0]; p.at[0]++)
        ++*(uint64_t *)ferry_grid_at(g, p);
}

/* Changes a block once. Then the block may move. */
static void on_block(ferry *f, ferry_object object, void *data, int source,
                     const ferry_message *message)
{
    account *a = ferry_user_data(f);
    const ferry_block_data *b = data;
    (void)source;
    if (message->words[0] != 0)
        change_grid(&b->grids[0]);
    atomic_fetch_add(&t->blocks, 1);
    answer(f, t->plan.hops);
    int rank = one_in(&a->random, 2) ? draw_rank(f, a) : -1;
    if (rank < 0)
        return;
    int error = ferry_object_move(f, object, rank);
    bool may_be = (error == FERRY_EPEER || error == FERRY_ENOMEM) && has(DEATHS);
    if (!may_be)
        must(f, error, "move a block");
}

/* Whether all members have come so far without an error. Collective. */
static int agree_on(ferry *f, int error)
{
    uint64_t failed = error != 0;
    int agreed = allowed(f, ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &failed, &failed, 1),
                         "allreduce for blocks");
    return agreed != 0 ? agreed : failed != 0 ? FERRY_ENOMEM : 0;
}

/* Makes a share of a floor plan of the whole one, which goes. Collective. */
static int take_share(ferry *f, array *y, const ferry_halo *halo)
{
    ferry_floorplan own = {.dims = 1}, share;
    ferry_regions near = {0};
    for (size_t i = 0; i < y->blocks.count; i++)
        if (y->blocks.blocks[i].owner == ferry_rank(f))
            must(f, ferry_floorplan_add(&own, y->blocks.blocks[i].region, 0), "add");
    must(f, ferry_halo_near(&own, halo, &near), "near");
    int error = allowed(f, ferry_floorplan_share(f, &own, &near, &share), "share");
    ferry_regions_fini(&near);
    ferry_floorplan_fini(&own);
    if (error != 0)
        return error;
    ferry_floorplan_fini(&y->blocks);
    y->blocks = share;
    return 0;
}

static int array_make(ferry *f, account *a, array *y, uint64_t *random)
{
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    ferry_mover_options options = FERRY_MOVER_OPTIONS_DEFAULTS;
    int members = ferry_member_count(f), count = PER_MEMBER * members;
    y->extent = count * (1 + (int64_t)draw(random, WIDTH_MAX));
    halo.low = halo.high = ferry_point_of(1, 0, 0);
    halo.domain = ferry_region_sized(1, &y->extent);
    halo.periodic[0] = true;
    must(f, ferry_floorplan_cut(halo.domain, ferry_point_of(count, 1, 1), &y->blocks), "cut");
    for (int i = 0; i < count; i++)
        y->blocks.blocks[i].owner = ferry_member_rank(f, (int)draw(random, (uint64_t)members));
    y->total = (size_t)count;
    int error = has(SHARES) ? take_share(f, y, &halo) : 0;
    if (error != 0)
        return error;
    must(f, ferry_plan_halo(&y->plan, &y->blocks, &halo, ferry_rank(f)), "halo");
    options.messages = one_in(random, 2);
    options.deferred = one_in(random, 2);
    bool check = one_in(random, 2); /* ranks that came, or saw a death, count binds otherwise */
    options.check = check || has(JOINS) || has(DEATHS);
    options.packet_bytes = CHOOSE(random, 0, 8, 64);
    error =
        allowed(f, ferry_xarray_create(f, &y->blocks, sizeof(uint64_t), halo.low, &y->x), "xarray");
    error = agree_on(f, error);
    if (error != 0)
        return error;
    for (size_t i = 0; i < y->x->local_count; i++) {
        const ferry_grid *g = &y->x->grids[i];
        for (ferry_point p = g->region.low; p.at[0] <= g->region.high.at[0]; p.at[0]++)
            *(uint64_t *)ferry_grid_at(g, p) = value_of(p.at[0], 0);
    }
    act(f, a);
    return allowed(f, ferry_mover_bind(f, &y->plan, y->x, y->x, &options, &y->mover), "bind");
}

/* Fills the ghost cells. */
static int fill(ferry *f, account *a, array *y)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    ferry_op op = {0};
    track.op = &op;
    bool tracked = one_in(&a->random, 2);
    int error = allowed(f, ferry_mover_start(y->mover, tracked ? &track : NULL), "mover_start");
    if (error != 0)
        return error;
    act(f, a);
    int ended = tracked ? ferry_op_wait(f, &op) : 0;
    error = allowed(f, ferry_mover_wait(y->mover), "mover_wait");
    if (tracked && ended != error)
        wrong(f, "a movement ends otherwise than its track says", (uint64_t)-ended,
              (uint64_t)-error);
    for (size_t i = 0; i < y->x->local_count && error == 0; i++)
        check_grid(f, y, &y->x->grids[i], true);
    return error;
}

static int remap(ferry *f, array *y, uint64_t *random)
{
    const ferry_floorplan *blocks = &y->x->blocks;
    int members = ferry_member_count(f);
    int32_t *owners = calloc(2 * y->total, sizeof *owners);
    if (owners == NULL)
        abort();
    int32_t *known = owners + y->total;
    for (size_t i = 0; i < y->total; i++)
        owners[i] = ferry_member_rank(f, (int)draw(random, (uint64_t)members));
    for (size_t i = 0; i < blocks->count; i++)
        known[i] = owners[blocks->numbers == NULL ? i : (size_t)blocks->numbers[i]];
    int error = allowed(f, ferry_xarray_remap(y->x, known), "remap");
    for (size_t i = 0; i < y->x->local_count && error == 0; i++)
        if (owners[y->x->local[i]] != ferry_rank(f))
            wrong(f, "a block is elsewhere", (uint64_t)y->x->local[i], 0);
    free(owners);
    return error;
}

/* Messages to blocks that may be anywhere: they move, and are not changed. */
static void disturb(ferry *f, account *a, array *y)
{
    const ferry_message nothing = {.handler = a->block, .word_count = 1};
    for (uint64_t i = 0, count = draw(&a->random, 4); i < count; i++) {
        int32_t block = (int32_t)draw(&a->random, y->total);
        ferry_object object = ferry_blocks_object(y->set, block);
        if (ferry_object_is_none(object))
            continue; /* of a share, and not near */
        int error = ferry_object_send(f, object, &nothing, NULL);
        if (error != FERRY_EAGAIN && (error != FERRY_ENOENT || !has(DEATHS)))
            (void)allowed(f, error, "send to a block");
        if (has(BALANCE) && one_in(&a->random, 3)) {
            error = ferry_balance_add(f, object, NULL);
            if (error != FERRY_ENOENT && error != FERRY_ESTATE)
                (void)allowed(f, error, "balance_add of a block");
        }
        act(f, a);
    }
}

/* The blocks are objects for a while. Each gets one message that changes it. */
static int as_objects(ferry *f, account *a, array *y)
{
    const ferry_message change = {.handler = a->block, .word_count = 1, .words = {1}};
    size_t moved = 0, sum;
    int error = allowed(f, ferry_blocks_create(f, &y->x, 1, &y->set), "blocks_create");
    if (error != 0)
        return error;
    error = allowed(f, ferry_barrier(f), "barrier");
    if (error == 0)
        error = agree_on(f, allowed(f, ferry_blocks_send(y->set, &change), "blocks_send"));
    if (error != 0)
        return error;
    disturb(f, a, y);
    error = allowed(f, ferry_blocks_settle(y->set, &moved), "settle");
    if (error != 0)
        return error;
    y->changes++;
    sum = y->x->local_count;
    error = allowed(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &sum, &sum, 1), "count");
    if (error != 0)
        return error;
    if (sum != y->total)
        wrong(f, "blocks after settling", sum, y->total);
    for (size_t i = 0; i < y->x->local_count; i++)
        check_grid(f, y, &y->x->grids[i], false);
    error = fill(f, a, y);
    if (error != 0)
        return error;
    error = allowed(f, ferry_blocks_destroy(y->set), "blocks_destroy");
    if (error == 0)
        y->set = NULL;
    return error;
}

int blocks_session(ferry *f, account *a, uint64_t *random)
{
    bool nobody;
    int error = nobody_comes(f, &nobody);
    if (error != 0 || !nobody)
        return error;
    array *y = calloc(1, sizeof *y);
    if (y == NULL)
        abort();
    error = array_make(f, a, y, random);
    if (error == 0)
        error = fill(f, a, y);
    for (int i = 0; i < GAMES && error == 0; i++) {
        error = one_in(random, 2) ? remap(f, y, random) : as_objects(f, a, y);
        if (error == 0)
            error = fill(f, a, y);
    }
    int freed = y->mover == NULL ? 0 : ferry_mover_free(y->mover);
    if (freed != 0)
        must(f, freed, "mover_free");
    ferry_floorplan_fini(&y->blocks);
    ferry_plan_fini(&y->plan);
    if (y->set != NULL)
        return error; /* a set that is not destroyed keeps its arrays until the rank closes */
    ferry_xarray_destroy(y->x);
    free(y);
    return error;
}

void blocks_open(ferry *f, account *a)
{
    must(f, ferry_object_handler_register(f, "block", on_block, &a->block), "handler");
}
