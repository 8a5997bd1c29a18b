/* Queues: cells without handlers and with small limits. Each parcel has a name and is accounted
 * for: a parcel that came in goes out once, and none goes out whose operation was refused. The
 * operations end by themselves, by a timeout, or because the program cancels them. */
#include "mixed.h"

enum { QUEUE = 1, ATTEMPTS = 6, EXTRA_MAX = 3000, LIMIT_NS = 200000 };
/* The states of a parcel. An operation whose end is unknown may have added it. */
enum { BEGUN = 1, IN = 2, UNKNOWN = 4, REFUSED = 8, OUT = 16 };

typedef enum attempt_kind { NOTHING, PUTS, TAKES, READS } attempt_kind;

/* A parcel's data. */
typedef struct payload {
    uint64_t source, number, size_bytes;
    unsigned char bytes[];
} payload;

typedef struct attempt {
    attempt_kind kind;
    int rank;
    bool keeps;
    uint64_t number; /* of the parcel that it puts */
    ferry_op op;
    ferry_parcel parcel;
} attempt;

typedef struct queue {
    uint64_t made;
    attempt attempts[ATTEMPTS];
} queue;

static unsigned char byte_of(const payload *p)
{
    return (unsigned char)(p->source * 7 + p->number);
}

/* A parcel that this rank got from the queue of `rank` is what its source put there. */
static void check_parcel(ferry *f, int rank, ferry_parcel parcel, bool takes)
{
    size_t size_bytes;
    const payload *p = ferry_parcel_data(f, parcel, &size_bytes);
    if (p == NULL || size_bytes < sizeof *p || p->size_bytes != size_bytes - sizeof *p ||
        p->source >= RANKS_MAX || p->number >= PARCELS)
        wrong(f, "a parcel of a queue is none", (uint64_t)rank, size_bytes);
    for (size_t i = 0; i < p->size_bytes; i++)
        if (p->bytes[i] != byte_of(p))
            wrong(f, "a parcel of a queue differs", p->source, p->number);
    queued *q = &t->parcels[p->source][p->number];
    unsigned before = atomic_fetch_or(&q->state, takes ? OUT : 0);
    if (atomic_load(&q->cell) != rank + 1 || (before & REFUSED) != 0)
        wrong(f, "a parcel is in another queue, or was refused", p->source, p->number);
    if (takes && (before & OUT) != 0)
        wrong(f, "a parcel was taken twice", p->source, p->number);
    atomic_fetch_add(&t->taken, takes);
    must(f, ferry_parcel_release(f, parcel), "release");
}

/* Whether an operation on the queue of `rank` may end so. */
static bool may_be(const ferry *f, int rank, int error)
{
    return error == 0 || error == FERRY_ETIMEDOUT || (has(DEATHS) && error != FERRY_EINVAL) ||
           (error == FERRY_EPEER && is_leaving(rank)) ||
           (error == FERRY_ECANCELED && is_leaving(ferry_rank(f)));
}

/* The operation has ended with `error`, or was cancelled. */
static void finish(ferry *f, attempt *x, int error)
{
    if (!may_be(f, x->rank, error) && error != FERRY_ECANCELED)
        must(f, error, "queue");
    if (x->kind == PUTS) {
        atomic_fetch_or(&t->parcels[ferry_rank(f)][x->number].state, error == 0 ? IN : UNKNOWN);
        if (x->keeps)
            must(f, ferry_parcel_release(f, x->parcel), "release what was kept");
    } else {
        if (error == 0 && x->parcel.word == 0)
            wrong(f, "an operation gave no parcel", (uint64_t)x->rank, x->kind);
        if (x->parcel.word != 0)
            check_parcel(f, x->rank, x->parcel, x->kind == TAKES);
    }
    x->kind = NOTHING;
}

/* Makes a parcel for the queue of `rank`. False: there is no memory, or no name. */
static bool make(ferry *f, account *a, int rank, attempt *x)
{
    size_t extra = draw(&a->random, EXTRA_MAX);
    void *data;
    if (a->queue->made == PARCELS)
        return false;
    int error = ferry_parcel_create(f, sizeof(payload) + extra, &x->parcel, &data);
    if (error == FERRY_ENOMEM && has(DEATHS))
        return false;
    must(f, error, "parcel");
    payload *p = data;
    x->number = a->queue->made++;
    *p = (payload){(uint64_t)ferry_rank(f), x->number, extra};
    memset(p->bytes, byte_of(p), extra);
    queued *q = &t->parcels[ferry_rank(f)][x->number];
    atomic_store(&q->cell, rank + 1);
    atomic_store(&q->state, BEGUN);
    return true;
}

/* Changes a parcel that is on its way: the queue gets the data as they were. */
static void scribble(ferry *f, attempt *x)
{
    void *data;
    int error = ferry_parcel_modify(f, &x->parcel, &data);
    if (error == FERRY_ENOMEM && has(DEATHS))
        return;
    must(f, error, "modify");
    memset(data, 0xee, sizeof(payload));
}

static void put(ferry *f, account *a, int rank, attempt *x, const ferry_track *track)
{
    if (!make(f, a, rank, x))
        return;
    x->kind = PUTS;
    x->keeps = one_in(&a->random, 2);
    int error = ferry_cell_enqueue_start(f, (ferry_cell){rank, QUEUE}, x->parcel,
                                         x->keeps ? FERRY_KEEP : FERRY_GIVE, track);
    if (error == 0 && x->keeps && one_in(&a->random, 2))
        scribble(f, x);
    if (error == 0)
        return;
    if (error == FERRY_ETIMEDOUT || !may_be(f, rank, error))
        must(f, error, "enqueue_start");
    atomic_fetch_or(&t->parcels[ferry_rank(f)][x->number].state, REFUSED);
    must(f, ferry_parcel_release(f, x->parcel), "release");
    x->kind = NOTHING;
}

static void take(ferry *f, account *a, int rank, attempt *x, const ferry_track *track)
{
    const ferry_cell cell = {rank, QUEUE};
    x->kind = one_in(&a->random, 4) ? READS : TAKES;
    int error = x->kind == READS ? ferry_cell_read_start(f, cell, &x->parcel, track)
                                 : ferry_cell_dequeue_start(f, cell, &x->parcel, track);
    if (error == 0)
        return;
    if (error == FERRY_ETIMEDOUT || !may_be(f, rank, error))
        must(f, error, "dequeue_start");
    x->kind = NOTHING;
}

/* The same in one call, which may wait. */
static void put_and_wait(ferry *f, account *a, int rank)
{
    attempt x = {.rank = rank};
    if (!make(f, a, rank, &x))
        return;
    int error = ferry_cell_enqueue(f, (ferry_cell){rank, QUEUE}, x.parcel, FERRY_GIVE,
                                   draw(&a->random, 3) * 10000);
    if (error != FERRY_EAGAIN && !may_be(f, rank, error))
        must(f, error, "enqueue");
    bool is_known = error == FERRY_EAGAIN || (error == FERRY_ETIMEDOUT && !has(DEATHS));
    atomic_fetch_or(&t->parcels[ferry_rank(f)][x.number].state, error == 0 ? IN
                                                                : is_known ? REFUSED
                                                                           : UNKNOWN);
    if (error != 0)
        must(f, ferry_parcel_release(f, x.parcel), "release");
}

static void take_and_wait(ferry *f, account *a, int rank)
{
    ferry_parcel parcel;
    int error =
        ferry_cell_dequeue(f, (ferry_cell){rank, QUEUE}, &parcel, draw(&a->random, 3) * 10000);
    if (error != FERRY_EAGAIN && !may_be(f, rank, error))
        must(f, error, "dequeue");
    if (error == 0)
        check_parcel(f, rank, parcel, true);
}

static void begin(ferry *f, account *a, attempt *x)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    int rank = draw_rank(f, a);
    if (rank < 0)
        return;
    *x = (attempt){.rank = rank};
    track.op = &x->op;
    track.timeout_ns = 1 + draw(&a->random, LIMIT_NS);
    switch (draw(&a->random, 6)) {
    case 0:
        put_and_wait(f, a, rank);
        break;
    case 1:
        take_and_wait(f, a, rank);
        break;
    case 2:
    case 3:
        take(f, a, rank, x, &track);
        break;
    default:
        put(f, a, rank, x, &track);
        break;
    }
}

/* Begins an operation, or looks at one, or gives it up. */
void queues_act(ferry *f, account *a)
{
    attempt *x = &a->queue->attempts[draw(&a->random, ATTEMPTS)];
    if (x->kind == NOTHING) {
        begin(f, a, x);
    } else if (one_in(&a->random, 3)) {
        must(f, ferry_op_cancel(f, &x->op), "cancel");
        finish(f, x, FERRY_ECANCELED);
    } else {
        int error = ferry_op_test(f, &x->op);
        if (error != FERRY_EAGAIN)
            finish(f, x, error);
    }
}

/* Waits until all operations of this rank have ended. */
void queues_settle(ferry *f, account *a)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        attempt *x = &a->queue->attempts[i];
        if (x->kind != NOTHING)
            finish(f, x, ferry_op_wait(f, &x->op));
    }
}

/* The job is over: the parcels that came into this rank's queue are there, or were taken. */
void queues_close(ferry *f, account *a)
{
    const int me = ferry_rank(f);
    ferry_parcel parcel;
    int error;
    while ((error = ferry_cell_dequeue(f, (ferry_cell){me, QUEUE}, &parcel, 0)) == 0)
        check_parcel(f, me, parcel, true);
    if (error != FERRY_EAGAIN)
        must(f, error, "dequeue the rest");
    for (int source = 0; source < RANKS_MAX && !has(DEATHS); source++)
        for (int i = 0; i < PARCELS; i++) {
            const queued *q = &t->parcels[source][i];
            unsigned state = atomic_load(&q->state);
            if (atomic_load(&q->cell) == me + 1 && (state & (IN | OUT)) == IN)
                wrong(f, "a parcel was lost", (uint64_t)source, (uint64_t)i);
        }
    free(a->queue);
}

void queues_open(ferry *f, account *a)
{
    a->queue = calloc(1, sizeof *a->queue);
    if (a->queue == NULL)
        abort();
    must(f, ferry_cell_limit_set(f, QUEUE, CHOOSE(&a->random, 1, 2, 5, 100)), "limit");
}
