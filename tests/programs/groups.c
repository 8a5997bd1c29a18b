/* Goal: every collective over every group gives what its header says, also when groups overlap, are
 * made of each other, and ranks die. Method: a stream of random numbers that all ranks share picks
 * groups, calls, roots, counts per place and the form (waiting or started); each value says where
 * it comes from and where it goes. Where ranks may die each call ends with 0 or FERRY_EPEER.
 *
 * Run as groups [ROUNDS [SEED [VALUES_MAX]]]; under the simulator ranks may die. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../support/check.h"

enum { GROUPS = 5, CALLS = 12, RANKS_MAX = 64 };

typedef struct team {
    ferry_group *handle; /* NULL: all members */
    bool usable;         /* this rank is in it */
    int size, ranks[RANKS_MAX];
} team;

typedef struct call {
    ferry_collective what;
    const team *team;
    uint64_t salt;
    ferry_op op;
    bool started;
    size_t in_counts[RANKS_MAX], out_counts[RANKS_MAX];
    uint64_t *in, *out;
} call;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state += 0x9e3779b97f4a7c15u;
    return mix(*state) % below;
}

static uint64_t value(uint64_t salt, int from, int to, size_t i)
{
    return mix(salt * 1000003 + (uint64_t)from * 4099 + (uint64_t)to * 65537 + i * 127);
}

/* Values of the piece that place `from` has for place `to`: the same on all ranks. */
static size_t count(const call *c, size_t most, int from, int to)
{
    switch (c->what.kind) {
    case FERRY_GATHERV:
    case FERRY_ALLGATHERV:
        return value(c->salt, from, 77, 0) % (most + 1);
    case FERRY_SCATTERV:
    case FERRY_REDUCE_SCATTER:
        return value(c->salt, 77, to, 0) % (most + 1);
    case FERRY_ALLTOALLV:
        return value(c->salt, from, to, 1) % (most + 1);
    default:
        return most;
    }
}

/* x -> ax + b: composition is associative, not commutative. */
static void compose(void *arg, void *into, const void *low, const void *high, size_t values)
{
    (void)arg;
    for (size_t i = 0; i < values; i++) {
        uint64_t l = ((const uint64_t *)low)[i], h = ((const uint64_t *)high)[i];
        uint32_t a = (uint32_t)l * (uint32_t)h;
        uint32_t b = (uint32_t)(l >> 32) * (uint32_t)h + (uint32_t)(h >> 32);
        ((uint64_t *)into)[i] = (uint64_t)b << 32 | a;
    }
}

/* The combined values of the places below `end`, for `to`. */
static uint64_t combined(const call *c, int end, int to, size_t i)
{
    uint64_t all = value(c->salt, 0, to, i);
    for (int place = 1; place < end; place++) {
        uint64_t more = value(c->salt, place, to, i);
        if (c->what.combine != NULL)
            compose(NULL, &all, &all, &more, 1);
        else
            all += more;
    }
    return all;
}

static bool is_of_all(ferry_collective_kind kind) /* `in` has a piece for each place */
{
    return kind == FERRY_SCATTER || kind == FERRY_SCATTERV || kind == FERRY_ALLTOALL ||
           kind == FERRY_ALLTOALLV || kind == FERRY_REDUCE_SCATTER;
}

static bool is_to_all(ferry_collective_kind kind) /* `out` has a piece of each place */
{
    return kind == FERRY_GATHER || kind == FERRY_GATHERV || kind == FERRY_ALLGATHER ||
           kind == FERRY_ALLGATHERV || kind == FERRY_ALLTOALL || kind == FERRY_ALLTOALLV;
}

static int place_in(const team *t, int rank)
{
    for (int i = 0; i < t->size; i++)
        if (t->ranks[i] == rank)
            return i;
    return -1;
}

/* The counts that this rank gives, and its data. */
static void fill(ferry *f, call *c, size_t most)
{
    int self = place_in(c->team, ferry_rank(f)), size = c->team->size;
    ferry_collective_kind kind = c->what.kind;
    size_t in = 0, out = 0, at = 0;
    for (int place = 0; place < size; place++) {
        c->in_counts[place] = count(c, most, self, place);
        c->out_counts[place] = count(c, most, place, self);
        in += c->in_counts[place];
        out += c->out_counts[place];
    }
    c->what.count = kind == FERRY_SCATTERV || kind == FERRY_REDUCE_SCATTER
                        ? count(c, most, 0, self)
                        : count(c, most, self, 0);
    in = is_of_all(kind) ? in : c->what.count;
    out = is_to_all(kind) ? out : c->what.count;
    c->what.in = c->in = malloc((in + 1) * sizeof(*c->in));
    c->what.out = c->out = malloc((out + 1) * sizeof(*c->out));
    check(f, c->in != NULL && c->out != NULL, "memory");
    for (int place = 0; place < (is_of_all(kind) ? size : 1); place++)
        for (size_t i = 0, n = is_of_all(kind) ? c->in_counts[place] : in; i < n; i++)
            c->in[at++] = value(c->salt, self, is_of_all(kind) ? place : 0, i);
    for (size_t i = 0; i <= out; i++)
        c->out[i] = kind == FERRY_BROADCAST && i < in ? c->in[i] : 7;
    bool sends = kind == FERRY_ALLTOALLV || kind == FERRY_REDUCE_SCATTER || kind == FERRY_SCATTERV;
    c->what.in_counts = sends ? c->in_counts : NULL;
    c->what.out_counts = is_to_all(kind) && kind >= FERRY_GATHERV ? c->out_counts : NULL;
}

static void verify(ferry *f, const call *c)
{
    const team *t = c->team;
    ferry_collective_kind kind = c->what.kind;
    int self = place_in(t, ferry_rank(f)), root = place_in(t, c->what.root);
    size_t n = c->what.count, at = 0;
    bool good = true;
    if (is_to_all(kind)) {
        bool mine = (kind != FERRY_GATHER && kind != FERRY_GATHERV) || self == root;
        bool own = kind == FERRY_ALLTOALL || kind == FERRY_ALLTOALLV;
        for (int place = 0; place < t->size && mine; place++)
            for (size_t i = 0; i < c->out_counts[place]; i++)
                good = c->out[at++] == value(c->salt, place, own ? self : 0, i) && good;
        check(f, good && c->out[at] == 7, "pieces");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t wanted = 7;
        if (kind == FERRY_BROADCAST)
            wanted = value(c->salt, root, 0, i);
        if (kind == FERRY_ALLREDUCE || (kind == FERRY_REDUCE && self == root))
            wanted = combined(c, t->size, 0, i);
        if (kind == FERRY_SCAN_INCLUSIVE || (kind == FERRY_SCAN && self > 0))
            wanted = combined(c, self + (kind == FERRY_SCAN_INCLUSIVE), 0, i);
        if (kind == FERRY_SCATTER || kind == FERRY_SCATTERV)
            wanted = value(c->salt, root, self, i);
        if (kind == FERRY_REDUCE_SCATTER)
            wanted = combined(c, t->size, self, i);
        good = (kind == FERRY_BARRIER || c->out[i] == wanted) && good;
    }
    check(f, good && c->out[n] == 7, "values");
}

/* In the simulator the shared heap may refuse too. */
static bool is_expected(int error)
{
    return error == 0 || error == FERRY_EPEER ||
           (error == FERRY_ENOMEM && getenv("FERRY_SIM_SEED") != NULL);
}

static void finish(ferry *f, call *c, int error)
{
    check(f, is_expected(error), "a collective failed");
    if (error == 0)
        verify(f, c);
    free(c->in);
    free(c->out);
}

static team team_of_all(ferry *f)
{
    team t = {.usable = true, .size = ferry_member_count(f)};
    for (int i = 0; i < t.size; i++)
        t.ranks[i] = ferry_member_rank(f, i);
    return t;
}

static void expect_team(ferry *f, const team *t)
{
    check(f, ferry_group_count(f, t->handle) == t->size, "count");
    for (int i = 0; i < t->size; i++)
        check(f,
              ferry_group_rank(f, t->handle, i) == t->ranks[i] &&
                  ferry_group_place(f, t->handle, t->ranks[i]) == i,
              "places");
    check(f, ferry_group_rank(f, t->handle, t->size) == -1, "no such place");
}

/* A group of some of `parent`, by list or by colour; all ranks know who is in it. */
static void make_team(ferry *f, const team *parent, uint64_t *common, team *t)
{
    uint64_t salt = draw(common, UINT64_MAX), colours = 1 + draw(common, 3);
    bool by_list = draw(common, 2) == 0;
    int own = (int)(value(salt, ferry_rank(f), 5, 0) % colours), error;
    *t = (team){.handle = NULL};
    if (by_list)
        own = 0;
    /* By descending place: the keys are the negative ones. */
    for (int i = parent->size; i-- > 0;)
        if ((int)(value(salt, parent->ranks[i], 5, 0) % colours) == own)
            t->ranks[t->size++] = parent->ranks[i];
    if (!parent->usable)
        return;
    if (by_list)
        error = ferry_group_create(f, parent->handle, t->ranks, t->size, &t->handle);
    else
        error =
            ferry_group_split(f, parent->handle, own, -place_in(parent, ferry_rank(f)), &t->handle);
    check(f, is_expected(error), "a group was not made");
    t->usable = error == 0 && t->handle != NULL;
    check(f, error != 0 || t->usable == (place_in(t, ferry_rank(f)) >= 0), "who is in the group");
    if (t->usable)
        expect_team(f, t);
}

static void run_round(ferry *f, uint64_t seed, size_t values_max)
{
    uint64_t common = seed, own = mix(seed + (uint64_t)ferry_rank(f));
    team teams[GROUPS];
    call *calls = calloc(CALLS, sizeof(*calls));
    check(f, calls != NULL, "memory");
    teams[0] = team_of_all(f);
    for (int i = 1; i < GROUPS; i++)
        make_team(f, &teams[draw(&common, 2) == 0 ? 0 : draw(&common, (uint64_t)i)], &common,
                  &teams[i]);
    for (int i = 0; i < CALLS; i++) {
        call *c = &calls[i];
        c->team = &teams[draw(&common, GROUPS)];
        uint64_t kind = draw(&common, FERRY_ALLTOALLV + 1), root = draw(&common, RANKS_MAX);
        size_t most = (size_t)draw(&common, (uint64_t)1 << draw(&common, 18));
        bool started = draw(&common, 3) == 0, composed = draw(&common, 2) == 0;
        c->salt = draw(&common, UINT64_MAX);
        if (!c->team->usable || c->team->size == 0)
            continue;
        most = most % (values_max + 1);
        c->what = (ferry_collective){.size = sizeof(c->what),
                                     .kind = (ferry_collective_kind)kind,
                                     .group = c->team->handle,
                                     .root = c->team->ranks[root % (uint64_t)c->team->size],
                                     .type = FERRY_UINT64,
                                     .reduction = FERRY_SUM};
        if (composed) {
            c->what.combine = compose;
            c->what.value_bytes = sizeof(uint64_t);
        }
        fill(f, c, most);
        const ferry_track track = {.size = sizeof(track), .op = &c->op};
        c->started = started;
        if (started)
            check(f, ferry_collective_start(f, &c->what, &track) == 0, "start");
        else
            finish(f, c, ferry_collective_run(f, &c->what));
        if (draw(&own, 4) == 0)
            (void)ferry_poll(f);
    }
    for (int i = 1; i < GROUPS; i++) /* started calls go on */
        if (teams[i].usable)
            ferry_group_free(f, teams[i].handle);
    for (int i = 0; i < CALLS; i++)
        if (calls[i].started)
            finish(f, &calls[i], ferry_op_wait(f, &calls[i].op));
    free(calls);
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)arg, (void)event;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    size_t values_max = argc > 3 ? strtoull(argv[3], NULL, 10) : 131072;
    const char *simulated = getenv("FERRY_SIM_SEED");
    if (simulated != NULL)
        seed = strtoull(simulated, NULL, 10);
    check(f, ferry_ranks(f) <= RANKS_MAX, "too many ranks");
    check(f, ferry_peer_watch(f, on_peer, NULL) == 0, "on_peer");
    for (long round = 0; round < rounds; round++) {
        run_round(f, mix(seed * 1000 + (uint64_t)round), values_max);
        check(f, ferry_quiesce(f) == 0, "quiesce");
    }
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
