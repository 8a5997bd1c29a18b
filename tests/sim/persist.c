/* Goal: the default scheduler follows loads that persist from step to step. Method: rank 0 begins
 * steps of tiles whose loads are declared. Each rank counts the work of each step that it ran, and
 * the tiles that it ran where they did not run their step before. The argument says which loads:
 * - double: from step CHANGE on the tiles of one rank cost twice as much. Three steps later no rank
 *   has more than LIMIT of the mean of a step.
 * - stationary: tiles cost 1 to 7 units, always the same. From step SETTLED on none moves.
 * - noisy: tiles cost one unit each. Their tasks take up to a fifth longer, as if something else
 *   used the processor. The first task of a tile on another rank takes FIRST_USE units longer, as
 *   the first use of memory does. From step FOUND on at most FEW tiles move.
 * - drift: an eighth of the ring costs eight times as much, and moves on by a tile per step. All
 *   takes no longer than FOLLOWED of the mean of all ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

enum {
    PER_RANK = 16,
    STEPS = 40,
    CHANGE = 15,
    SETTLED = 10,
    HEAVY = 8,
    PART = 8,
    FIRST_USE = 20,
    FOUND = 2,
    FEW = 40
};
static const double UNIT = 50e-6, LIMIT = 1.13, FOLLOWED = 1.1;

typedef enum mode { DOUBLE, STATIONARY, NOISY, DRIFT } mode;

typedef struct tile {
    int rank; /* that ran its last step */
    int64_t at, step;
} tile;

typedef struct job {
    mode mode;
    int64_t tiles, awaited, steps;
    ferry_object *names;
    ferry_handler step, done;
    double work[STEPS];
    int64_t moves[STEPS];
} job;

static uint64_t hash(uint64_t at, uint64_t step)
{
    return (at + 1 + (step << 20)) * UINT64_C(0x9e3779b97f4a7c15) >> 40;
}

static int cost(const job *j, int64_t at, int64_t step)
{
    switch (j->mode) {
    case DOUBLE:
        return at / PER_RANK == 1 && step >= CHANGE ? 2 : 1;
    case STATIONARY:
        return 1 + (int)hash((uint64_t)at, 0) % 7;
    case NOISY:
        return 1;
    case DRIFT:
        break;
    }
    return (at - step + j->tiles) % j->tiles < j->tiles / PART ? HEAVY : 1;
}

/* Units that the task takes besides. */
static double noise(const job *j, const tile *t, int rank)
{
    uint64_t random = hash((uint64_t)t->at, (uint64_t)t->step + 1);
    if (j->mode != NOISY)
        return 0;
    return (double)(random % 64) / 320 + (t->rank != rank ? FIRST_USE : 0);
}

static double load(ferry *f, const void *data, const ferry_message *message)
{
    const tile *t = data;
    (void)message;
    return cost(ferry_user_data(f), t->at, t->step);
}

static void must(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "persist: %s\n", ferry_error_message(f));
    exit(1);
}

/* Rank 0 begins step after step. */
static void begin(ferry *f, job *j)
{
    for (int64_t i = 0; i < j->tiles; i++)
        must(f, ferry_object_send(f, j->names[i], &(ferry_message){.handler = j->step}, NULL));
    j->awaited = j->tiles;
}

static void on_done(ferry *f, int source, const ferry_message *message)
{
    job *j = ferry_user_data(f);
    (void)source, (void)message;
    if (--j->awaited == 0 && ++j->steps < STEPS)
        begin(f, j);
}

static void on_step(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    job *j = ferry_user_data(f);
    tile *t = data;
    int units = cost(j, t->at, t->step);
    (void)object, (void)source, (void)message;
    ferry_compute(f, UNIT * (units + noise(j, t, ferry_rank(f))));
    j->work[t->step] += units;
    j->moves[t->step] += t->rank != ferry_rank(f);
    t->rank = ferry_rank(f);
    t->step++;
    must(f, ferry_request_send(f, 0, &(ferry_message){.handler = j->done}, NULL));
}

/* Makes this rank's tiles and tells every rank all names. */
static void create_tiles(ferry *f, job *j)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "tile", .flat_bytes = sizeof(tile), .load = load};
    ferry_object_type type;
    must(f, ferry_object_type_register(f, &ops, &type));
    must(f, ferry_object_handler_register(f, "step", on_step, &j->step));
    must(f, ferry_handler_register(f, "done", on_done, &j->done));
    for (int i = 0; i < PER_RANK; i++) {
        int64_t at = (int64_t)ferry_rank(f) * PER_RANK + i;
        tile *t = malloc(sizeof *t);
        must(f, t != NULL ? 0 : FERRY_ENOMEM);
        *t = (tile){.rank = ferry_rank(f), .at = at};
        must(f, ferry_object_create(f, type, t, &j->names[at]));
        must(f, ferry_balance_add(f, j->names[at], NULL));
    }
    must(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, j->names, j->names, (size_t)j->tiles));
}

/* Whether the goal is met; the arrays are those of all ranks. */
static bool judge(const ferry *f, const job *j, const double *most, double took)
{
    int ranks = ferry_ranks(f);
    static const int settled[] = {
        [DOUBLE] = CHANGE + 3, [STATIONARY] = SETTLED, [NOISY] = FOUND, [DRIFT] = SETTLED};
    double total = 0, worst = 0;
    int64_t late = 0;
    for (int k = 0; k < STEPS; k++) {
        double ratio = most[k] * ranks / j->work[k];
        total += j->work[k];
        worst = k >= CHANGE + 3 && ratio > worst ? ratio : worst;
        late += k >= settled[j->mode] ? j->moves[k] : 0;
        printf("step %d: work %.0f, most %.2f of the mean, %" PRId64 " moved\n", k, j->work[k],
               ratio, j->moves[k]);
    }
    double followed = took / (UNIT * total / ranks);
    printf("most %.2f of the mean after the change, %" PRId64 " moved late, ratio %.3f\n", worst,
           late, followed);
    return j->mode == DRIFT ? followed <= FOLLOWED
                            : late <= (j->mode == NOISY ? FEW : 0) && worst <= LIMIT;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const char *const modes[] = {"double", "stationary", "noisy", "drift"};
    job j = {.tiles = (int64_t)PER_RANK * ferry_ranks(f)};
    double most[STEPS];
    while (argc == 2 && j.mode < DRIFT && strcmp(argv[1], modes[j.mode]) != 0)
        j.mode++;
    j.names = calloc((size_t)j.tiles, sizeof *j.names);
    must(f, j.names != NULL ? 0 : FERRY_ENOMEM);
    ferry_user_data_set(f, &j);
    create_tiles(f, &j);
    must(f, ferry_balance_enable(f, true));
    uint64_t begin_ns = ferry_now(f);
    if (ferry_rank(f) == 0)
        begin(f, &j);
    must(f, ferry_quiesce(f));
    double took = (double)(ferry_now(f) - begin_ns) * 1e-9;
    must(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_MAX, j.work, most, STEPS));
    must(f, ferry_allreduce(f, FERRY_DOUBLE, FERRY_SUM, j.work, j.work, STEPS));
    must(f, ferry_allreduce(f, FERRY_INT64, FERRY_SUM, j.moves, j.moves, STEPS));
    free(j.names);
    return ferry_rank(f) == 0 && !judge(f, &j, most, took);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
