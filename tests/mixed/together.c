/* All members act together here: collectives, groups, windows and two-sided messages. */
#include "mixed.h"

enum { PIECE = 3, MEETING_WAITS = 5000 };

/* The error, if it may be: ranks die. Else 0, or the end of the job. */
int allowed(ferry *f, int error, const char *what)
{
    if (error == 0)
        return 0;
    bool may_be = error == FERRY_EPEER || error == FERRY_EINVAL || error == FERRY_ECANCELED ||
                  error == FERRY_ENOMEM;
    if (!has(DEATHS) || !may_be)
        must(f, error, what);
    return error;
}

int nobody_comes(ferry *f, bool *nobody)
{
    uint64_t coming = (uint64_t)(atomic_load(&t->spawned) - atomic_load(&t->arrived));
    int error = allowed(f, ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &coming, &coming, 1),
                        "allreduce of those that come");
    *nobody = coming == 0;
    return error;
}

static int place_of(const ferry *f, const ferry_group *group)
{
    return group == NULL ? ferry_member_place(f, ferry_rank(f))
                         : ferry_group_place(f, group, ferry_rank(f));
}

static int count_of(const ferry *f, const ferry_group *group)
{
    return group == NULL ? ferry_member_count(f) : ferry_group_count(f, group);
}

static uint64_t sum_of_places(int count)
{
    return (uint64_t)count * (uint64_t)(count - 1) / 2;
}

static void expect(ferry *f, uint64_t value, uint64_t expected, const char *what)
{
    if (value != expected)
        wrong(f, what, value, expected);
}

static int reduce(ferry *f, ferry_group *group, uint64_t salt)
{
    uint64_t own[2] = {(uint64_t)place_of(f, group), salt}, all[2];
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    int count = count_of(f, group);
    what.kind = FERRY_ALLREDUCE;
    what.in = own;
    what.out = all;
    what.count = 2;
    what.type = FERRY_UINT64;
    what.group = group;
    int error = allowed(f, ferry_collective_run(f, &what), "allreduce");
    if (error != 0)
        return error;
    expect(f, all[0], sum_of_places(count), "allreduce");
    expect(f, all[1], salt * (uint64_t)count, "allreduce of other calls");
    return 0;
}

static int gather(ferry *f, uint64_t salt)
{
    uint64_t own[2] = {salt, (uint64_t)ferry_rank(f)}, all[RANKS_MAX][2];
    int error = allowed(f, ferry_allgather(f, own, sizeof own, all), "allgather");
    for (int place = 0; error == 0 && place < ferry_member_count(f); place++) {
        expect(f, all[place][0], salt, "allgather");
        expect(f, all[place][1], (uint64_t)ferry_member_rank(f, place), "allgather's rank");
    }
    return error;
}

static int scan(ferry *f, uint64_t salt)
{
    uint64_t below = 0;
    int place = ferry_member_place(f, ferry_rank(f));
    int error = allowed(f, ferry_scan(f, FERRY_UINT64, FERRY_SUM, &salt, &below, 1), "scan");
    if (error == 0)
        expect(f, below, salt * (uint64_t)place, "scan");
    return error;
}

static int broadcast(ferry *f, uint64_t *random)
{
    static const size_t sizes[] = {8, 3000, 40000, 300000};
    size_t size_bytes = sizes[draw(random, 4)];
    int root = ferry_member_rank(f, (int)draw(random, (uint64_t)ferry_member_count(f)));
    unsigned char *data = calloc(1, size_bytes), value = (unsigned char)(1 + draw(random, 250));
    if (data == NULL)
        abort();
    if (root == ferry_rank(f))
        memset(data, value, size_bytes);
    int error = allowed(f, ferry_broadcast(f, root, data, size_bytes), "broadcast");
    for (size_t i = 0; error == 0 && i < size_bytes; i += 7)
        expect(f, data[i], value, "broadcast");
    free(data);
    return error;
}

static int exchange(ferry *f, uint64_t salt)
{
    uint64_t in[RANKS_MAX][PIECE], out[RANKS_MAX][PIECE];
    size_t sizes[RANKS_MAX];
    int me = ferry_member_place(f, ferry_rank(f)), count = ferry_member_count(f);
    for (int place = 0; place < count; place++) {
        sizes[place] = sizeof in[place];
        for (int i = 0; i < PIECE; i++)
            in[place][i] = salt + (uint64_t)(me * 1000 + place * 10 + i);
    }
    int error = allowed(f, ferry_alltoallv(f, in, sizes, out, sizes), "alltoallv");
    for (int place = 0; error == 0 && place < count; place++)
        for (int i = 0; i < PIECE; i++)
            expect(f, out[place][i], salt + (uint64_t)(place * 1000 + me * 10 + i), "alltoallv");
    return error;
}

/* A collective that is started, while this rank goes on. */
static int start(ferry *f, account *a, uint64_t salt)
{
    uint64_t own = salt + (uint64_t)ferry_member_place(f, ferry_rank(f)), all = 0;
    int count = ferry_member_count(f);
    ferry_collective what = FERRY_COLLECTIVE_DEFAULTS;
    ferry_track track = FERRY_TRACK_DEFAULTS;
    ferry_op op = {0};
    what.kind = FERRY_ALLREDUCE;
    what.in = &own;
    what.out = &all;
    what.count = 1;
    what.type = FERRY_UINT64;
    track.op = &op;
    int error = allowed(f, ferry_collective_start(f, &what, &track), "start");
    if (error != 0)
        return error;
    act(f, a);
    act(f, a);
    error = allowed(f, ferry_op_wait(f, &op), "allreduce that was started");
    if (error == 0)
        expect(f, all, salt * (uint64_t)count + sum_of_places(count), "started allreduce");
    return error;
}

static int collective(ferry *f, account *a, uint64_t *random)
{
    uint64_t salt = draw(random, 1000);
    switch (draw(random, 7)) {
    case 0:
        return allowed(f, ferry_barrier(f), "barrier");
    case 1:
        return gather(f, salt);
    case 2:
        return scan(f, salt);
    case 3:
        return broadcast(f, random);
    case 4:
        return exchange(f, salt);
    case 5:
        return start(f, a, salt);
    default:
        return reduce(f, NULL, salt);
    }
}

static int group_session(ferry *f, account *a, uint64_t *random)
{
    int colours = 1 + (int)draw(random, 3), place = ferry_member_place(f, ferry_rank(f));
    int colour = place % (colours + 1) == colours ? FERRY_NO_COLOUR : place % (colours + 1);
    uint64_t salt = draw(random, 1000);
    ferry_group *group = NULL;
    int error = allowed(f, ferry_group_split(f, NULL, colour, -place, &group), "split");
    if (error != 0 || group == NULL)
        return error;
    for (int i = 0; i < 3 && error == 0; i++) {
        act(f, a);
        error = reduce(f, group, salt);
    }
    ferry_group_free(f, group);
    return error;
}

/* Each member adds to element 0 of each, and puts to an element of its own at the next. */
static int window_epoch(ferry *f, account *a, ferry_window *window, uint64_t epoch)
{
    int count = ferry_member_count(f), me = ferry_member_place(f, ferry_rank(f));
    int next = ferry_member_rank(f, (me + 1) % count), before = (me + count - 1) % count;
    uint64_t one = 1, value = epoch * 100 + (uint64_t)me, got = 0;
    size_t size_bytes = 0;
    const ferry_window_change change = {FERRY_UINT64, FERRY_SUM, &one, 1};
    const ferry_window_value put = {&value, sizeof value};
    /* Without memory the rank still ends the epoch, as the others do. */
    for (int place = 0; place < count; place++) {
        int rank = ferry_member_rank(f, place);
        (void)allowed(f, ferry_window_accumulate(window, rank, 0, &change, NULL), "accumulate");
    }
    (void)allowed(f, ferry_window_put(window, next, 1 + me, &put, NULL), "window put");
    act(f, a);
    int error = allowed(f, ferry_window_fence(window), "fence");
    if (error == FERRY_ENOMEM)
        return allowed(f, ferry_window_fence(window), "fence");
    if (error != 0)
        return error;
    must(f, ferry_window_read(window, 1 + before, &got, sizeof got, &size_bytes), "read");
    if (got != 0 || !has(DEATHS))
        expect(f, got, epoch * 100 + (uint64_t)before, "window put");
    got = 0; /* and stays it, if all were refused: nothing is read */
    must(f, ferry_window_read(window, 0, &got, sizeof got, &size_bytes), "read");
    if (got > epoch * (uint64_t)count || !has(DEATHS))
        expect(f, got, epoch * (uint64_t)count, "accumulates");
    return allowed(f, ferry_window_fence(window), "fence");
}

static int window_session(ferry *f, account *a, uint64_t *random)
{
    ferry_window_options options = FERRY_WINDOW_OPTIONS_DEFAULTS;
    ferry_window *window;
    options.direct = one_in(random, 2);
    int error = allowed(f, ferry_window_create(f, &options, &window), "window");
    if (error != 0)
        return error;
    error = allowed(f, ferry_window_fence(window), "fence");
    for (uint64_t epoch = 1; epoch <= 2 && error == 0; epoch++)
        error = window_epoch(f, a, window, epoch);
    int freed = ferry_window_free(window);
    return error != 0 ? error : allowed(f, freed, "window_free");
}

/* Two-sided messages around the ring of members. */

typedef struct meeting {
    int ended, error;
    size_t size_bytes;
} meeting;

static void on_met(ferry *f, void *arg, const ferry_receipt *receipt)
{
    meeting *m = arg;
    (void)f;
    m->ended++;
    m->error = receipt->error;
    m->size_bytes = receipt->size_bytes;
}

/* Waits for both ends. Where ranks die, the other side may have ended its round. Elsewhere an error
 * ends the job, and a message of the rank to itself may have one end alone. */
static int meet(ferry *f, account *a, meeting *both, ferry_op *ops)
{
    for (int waits = 0; both[0].ended == 0 || both[1].ended == 0; waits++) {
        bool alone = a->deaths != a->agreed_deaths || waits > MEETING_WAITS;
        for (int i = 0; has(DEATHS) && alone && i < 2; i++)
            (void)ferry_op_cancel(f, &ops[i]);
        for (int i = 0; !has(DEATHS) && i < 2; i++)
            must(f, both[i].error, "two-sided");
        (void)ferry_wait(f, 100000);
    }
    for (int i = 0; i < 2; i++) {
        int error = allowed(f, both[i].error, "two-sided");
        if (error != 0)
            return error;
        expect(f, (uint64_t)both[i].ended, 1, "ends of a two-sided message");
        if (ops[i].word != 0)
            must(f, ferry_op_test(f, &ops[i]), "two-sided");
    }
    return 0;
}

static int ring(ferry *f, account *a, uint64_t *random)
{
    static const size_t sizes[] = {0, 40, 3000, 60000, 400000};
    size_t size_bytes = sizes[draw(random, 5)];
    int count = ferry_member_count(f), me = ferry_member_place(f, ferry_rank(f));
    int by = 1 + (int)draw(random, (uint64_t)count), tag = (int)draw(random, 100000);
    int to = ferry_member_rank(f, (me + by) % count);
    int from = ferry_member_rank(f, (me + count * 2 - by) % count);
    unsigned char *out = malloc(size_bytes + 1), *in = calloc(1, size_bytes + 1);
    meeting *both = calloc(2, sizeof *both);
    ferry_op ops[2] = {{0}, {0}};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    if (out == NULL || in == NULL || both == NULL)
        abort();
    memset(out, tag + ferry_rank(f), size_bytes);
    track.completed = track.failed = on_met;
    for (int i = 0; i < 2; i++) {
        bool sends = (me + i) % 2 == 0;
        track.completed_arg = track.failed_arg = &both[sends];
        track.op = &ops[sends];
        int error = sends ? ferry_send(f, to, tag, out, size_bytes, &track)
                          : ferry_receive(f, from, tag, in, size_bytes, &track);
        if (error != 0)
            both[sends] = (meeting){1, error, 0};
        act(f, a);
    }
    int error = meet(f, a, both, ops);
    for (size_t i = 0; error == 0 && i < size_bytes; i += 3)
        expect(f, in[i], (unsigned char)(tag + from), "two-sided data");
    if (error == 0)
        expect(f, both[0].size_bytes, size_bytes, "two-sided size");
    free(out);
    free(in);
    free(both);
    return error;
}

/* One operation, which `random` draws: the same on all members. */
int together(ferry *f, account *a, uint64_t *random)
{
    switch (draw(random, has(LOCKS) || has(BLOCKS) ? 9 : 7)) {
    case 0:
        return has(GROUPS) ? group_session(f, a, random) : 0;
    case 1:
        return has(WINDOWS) ? window_session(f, a, random) : 0;
    case 2:
        return has(TWO_SIDED) ? ring(f, a, random) : 0;
    case 3:
        return has(COLLECTIONS) ? elements_session(f, a, random) : 0;
    case 4:
        return has(STEPS) ? steps_session(f, a, random) : 0;
    case 5:
        if (has(BALANCE))
            return allowed(f, ferry_balance_enable(f, one_in(random, 2)), "phase");
        return 0;
    case 7:
        return has(LOCKS) ? locks_session(f, a, random) : 0;
    case 8:
        return has(BLOCKS) ? blocks_session(f, a, random) : 0;
    default:
        return has(COLLECTIVES) ? collective(f, a, random) : 0;
    }
}
