/* Goal: any mix of operations leaves the values that its rules give. Method: a stream of random
 * numbers that all ranks share draws windows over groups, their first values, and rounds of
 * operations in the three kinds of epochs (plan.c). No round has two operations whose order matters
 * and is not given. So every rank works out all arrays, all results and all errors beforehand, and
 * compares them with what it finds.
 *
 * Run as random [WINDOWS [SEED]]. Without SEED it is that of the simulator. */
#include "plan.h"

enum { PAUSE_NS = 100000 };

/* Says which operation went wrong, and ends the job. */
static _Noreturn void bad(const job *j, const op *o, const char *what, int64_t got)
{
    fprintf(stderr,
            "round of kind %d, operation %d at element %" PRId64 " of rank %d, %zu bytes, expected "
            "error %d\n",
            (int)j->kind, (int)o->verb, o->index, j->members[o->target], o->given.size, o->error);
    if (got == FERRY_ENOMEM)
        must(j->f, FERRY_ENOMEM, what);
    wrong(j->f, what, (uint64_t)got, (uint64_t)o->step);
}

static void op_start(job *j, op *o)
{
    const int rank = j->members[o->target];
    ferry_track track = FERRY_TRACK_DEFAULTS;
    track.op = &o->handle;
    const ferry_track *tracked = o->tracked ? &track : NULL;
    const ferry_window_value given = {o->given.data, o->given.size};
    const ferry_window_change change = {o->type, o->reduction, o->given.data, o->count};
    const ferry_window_swap swap = {o->compared.data, o->given.data, o->given.size};
    o->seen = need(j->f, o->verb == GET ? o->room : o->given.size);
    o->seen_size = SIZE_MAX;
    const ferry_window_target target = {o->seen, o->room, &o->seen_size};
    /* Every second one as an operation on many elements that has one. */
    const ferry_window_put_piece put = {o->index, given};
    const ferry_window_get_piece get = {o->index, target};
    bool many = ((uint64_t)o->index ^ (uint64_t)o->step) % 2 != 0;
    switch (o->verb) {
    case PUT:
        o->told = many ? ferry_window_put_vector(j->window, rank, &put, 1, tracked)
                       : ferry_window_put(j->window, rank, o->index, &given, tracked);
        break;
    case ACCUMULATE:
        o->told = ferry_window_accumulate(j->window, rank, o->index, &change, tracked);
        break;
    case FETCH:
        o->told = ferry_window_fetch(j->window, rank, o->index, &change, o->seen, tracked);
        break;
    case SWAP:
        o->told = ferry_window_compare_swap(j->window, rank, o->index, &swap, o->seen, tracked);
        break;
    default:
        o->told = many ? ferry_window_get_vector(j->window, rank, &get, 1, tracked)
                       : ferry_window_get(j->window, rank, o->index, &target, tracked);
    }
    if (o->told != 0 && o->told != o->error)
        bad(j, o, "the call fails", o->told);
}

static void op_check(job *j, op *o)
{
    if (o->told == 0 && o->tracked) {
        int error = ferry_op_wait(j->f, &o->handle);
        if (error != o->error)
            bad(j, o, "the operation ends otherwise", error);
    }
    if (o->verb == GET && o->seen_size != o->before.size)
        bad(j, o, "a get tells another size", (int64_t)o->seen_size);
    if (o->error == 0 && o->verb != PUT && o->verb != ACCUMULATE && o->before.size > 0 &&
        memcmp(o->seen, o->before.data, o->before.size) != 0)
        bad(j, o, "another value was found", o->seen[0]);
    j->total++;
}

/* Operations `first` to `end` of this rank are done, and the call that ended them said `error`. */
static void ended(job *j, int first, int end, int me, int error)
{
    bool expected = error == 0;
    const op *failed = NULL;
    for (int i = first; i < end; i++) {
        op *o = &j->ops[i];
        if (o->origin != me)
            continue;
        op_check(j, o);
        if (o->tracked || o->told != 0 || o->error == 0)
            continue;
        failed = o;
        expected |= error == o->error;
    }
    if (!expected)
        must(j->f, error, "the epoch ends with an error of no operation");
    if (error == 0 && failed != NULL)
        bad(j, failed, "the epoch does not tell the error", error);
}

static void round_fence(job *j, int me)
{
    for (int i = 0; i < j->op_count; i++)
        if (j->ops[i].origin == me)
            op_start(j, &j->ops[i]);
    int error = ferry_window_fence(j->window);
    ended(j, 0, j->op_count, me, error);
}

static void round_start(job *j, int me)
{
    int origins[RANKS_MAX], targets[RANKS_MAX], origin_count = 0, target_count = 0;
    for (int i = 0; i < j->count; i++) {
        if (j->opened[i][me])
            origins[origin_count++] = j->members[i];
        if (j->opened[me][i])
            targets[target_count++] = j->members[i];
    }
    must(j->f, ferry_window_post(j->window, origins, origin_count), "post");
    must(j->f, ferry_window_start(j->window, targets, target_count), "start");
    for (int i = 0; i < j->op_count; i++)
        if (j->ops[i].origin == me)
            op_start(j, &j->ops[i]);
    int error = ferry_window_complete(j->window), done = 0;
    ended(j, 0, j->op_count, me, error);
    if (origin_count % 2 == 0)
        must(j->f, ferry_window_wait(j->window), "wait");
    else
        while (done == 0) {
            done = ferry_window_test(j->window);
            must(j->f, done < 0 ? done : 0, "test");
            if (done == 0)
                (void)ferry_wait(j->f, PAUSE_NS);
        }
}

static void round_lock(job *j, int me)
{
    int first = 0, target = -1, step = 0;
    for (int i = 0; i <= j->op_count; i++) {
        const op *o = i < j->op_count ? &j->ops[i] : NULL;
        if (o != NULL && o->origin != me)
            continue;
        if (target >= 0 && (o == NULL || o->step / STEPS != step / STEPS)) {
            ended(j, first, i, me, ferry_window_unlock(j->window, target));
            target = -1;
        } else if (target >= 0 && o->step != step) {
            ended(j, first, i, me, ferry_window_flush(j->window, target));
            first = i;
        }
        if (o == NULL)
            break;
        if (target < 0) {
            ferry_window_lock_kind kind = (ferry_window_lock_kind)(o->step / STEPS % 2);
            target = j->members[o->target];
            must(j->f, ferry_window_lock(j->window, kind, target), "lock");
            first = i;
        }
        step = o->step;
        op_start(j, &j->ops[i]);
    }
}

static void meet(job *j)
{
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    what.kind = FERRY_BARRIER;
    what.group = j->group;
    must(j->f, ferry_collective_run(j->f, &what), "barrier");
}

/* Compares the array of this rank with its model. */
static void array_check(job *j, int me)
{
    static const char call[] = "reading an element";
    const model *m = &j->models[me];
    if (ferry_window_length(j->window) != (uint64_t)m->length)
        wrong(j->f, "the array has another length", ferry_window_length(j->window),
              (uint64_t)m->length);
    unsigned char *found = need(j->f, LARGE);
    for (int64_t i = 0; i < m->length; i++) {
        size_t size;
        must(j->f,
             ferry_window_read(j->window, i - (i % 2 == 0 ? 0 : m->length), found, LARGE, &size),
             call);
        if (size != m->elements[i].size)
            wrong(j->f, "an element has another size", (uint64_t)i, size);
        if (size > 0 && memcmp(found, m->elements[i].data, size) != 0)
            wrong(j->f, "an element has another value", (uint64_t)i, size);
    }
    free(found);
}

static void window_create(job *j, int me)
{
    const model *m = &j->models[me];
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window_value *values = need(j->f, (size_t)m->length * sizeof(*values));
    for (int64_t i = 0; i < m->length; i++)
        values[i] = (ferry_window_value){m->elements[i].data, m->elements[i].size};
    options.group = j->group;
    options.direct = j->direct;
    options.values = values;
    options.count = (size_t)m->length;
    must(j->f, ferry_window_create(j->f, &options, &j->window), "create");
    free(values);
    must(j->f, ferry_window_fence(j->window), "the first fence");
}

/* Draws the members, in any order, and makes their group. The place of this rank, or -1. */
static int members_draw(job *j)
{
    const int ranks = ferry_ranks(j->f);
    int place = -1;
    for (int i = 0; i < ranks; i++)
        j->members[i] = i;
    j->count = ranks;
    j->group = NULL;
    if (draw(&j->random, 3) == 0)
        return ferry_rank(j->f);
    j->count = 1 + (int)draw(&j->random, (uint64_t)ranks);
    for (int i = 0; i < j->count; i++) {
        int other = i + (int)draw(&j->random, (uint64_t)(ranks - i)), rank = j->members[other];
        j->members[other] = j->members[i];
        j->members[i] = rank;
        if (rank == ferry_rank(j->f))
            place = i;
    }
    must(j->f, ferry_group_create(j->f, NULL, j->members, j->count, &j->group), "group");
    return place;
}

static void window_run(job *j, int me)
{
    j->direct = draw(&j->random, 2) == 0;
    models_draw(j);
    window_create(j, me);
    for (int round = 0; round < ROUNDS; round++) {
        round_plan(j);
        if (j->kind == FENCE)
            round_fence(j, me);
        else if (j->kind == START)
            round_start(j, me);
        else
            round_lock(j, me);
        meet(j);
        array_check(j, me);
        meet(j);
        round_free(j);
    }
    must(j->f, ferry_window_free(j->window), "free");
    models_free(j);
    ferry_group_free(j->f, j->group);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *simulated = getenv("FERRY_SIM_SEED");
    const char *seed = argc > 2 ? argv[2] : simulated != NULL ? simulated : "1";
    const int windows = argc > 1 ? atoi(argv[1]) : 4;
    uint64_t total = 0;
    if (ferry_ranks(f) > RANKS_MAX)
        wrong(f, "too many ranks for the test", (uint64_t)ferry_ranks(f), RANKS_MAX);
    for (int i = 0; i < windows; i++) {
        job *j = need(f, sizeof(*j));
        j->f = f;
        const uint64_t number = (uint64_t)strtoull(seed, NULL, 10) * 1000 + (uint64_t)i;
        j->random = (number * 2 + 1) * 0x9e3779b97f4a7c15u;
        int me = members_draw(j);
        if (me >= 0)
            window_run(j, me);
        total += j->total;
        free(j);
    }
    must(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &total, &total, 1), "the count");
    if (total == 0)
        wrong(f, "no operation was made", total, 0);
    if (ferry_rank(f) == 0)
        printf("random: seed %s: %" PRIu64 " operations of %d windows\n", seed, total, windows);
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
