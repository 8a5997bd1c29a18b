/* Puts, gets, atomic updates and cells. Each rank has two regions, one in its shared heap and one
 * registered. In each round a rank puts to each region at most once, into a slot of its own. */
#include "mixed.h"

enum { CELL = 0, PIECES_MAX = 40 };

static uint64_t fixed_of(int rank, uint64_t i)
{
    return (uint64_t)rank * 1000 + i * i;
}

static unsigned char stamp_of(uint64_t round, int source)
{
    return (unsigned char)(round * 37 + (uint64_t)source + 1);
}

/* An operation with a track: its memory, until it ends. */
typedef struct transfer {
    int rank;
    uint64_t *got; /* of a get: values `first` to FIXED of the rank's region */
    uint64_t first;
    ferry_parcel out; /* of a cell's operation */
    bool enqueues, dequeues;
    _Alignas(uint64_t) unsigned char data[];
} transfer;

static void check_parcel(ferry *f, ferry_parcel parcel)
{
    size_t size_bytes;
    const unsigned char *bytes = ferry_parcel_data(f, parcel, &size_bytes);
    if (bytes == NULL || size_bytes == 0)
        wrong(f, "a parcel has no data", size_bytes, 0);
    for (size_t i = 0; i < size_bytes; i++)
        if (bytes[i] != (unsigned char)size_bytes)
            wrong(f, "a parcel differs", size_bytes, i);
    must(f, ferry_parcel_release(f, parcel), "release");
}

static void finish(ferry *f, transfer *x, int error)
{
    account *a = ferry_user_data(f);
    if (x->dequeues)
        a->dequeues--;
    else
        a->done++;
    if (error != 0 && !has(DEATHS) && !is_leaving(x->rank) && error != FERRY_ETIMEDOUT &&
        (error != FERRY_ECANCELED || !is_leaving(ferry_rank(f))))
        must(f, error, "transfer");
    for (uint64_t i = 0; error == 0 && x->got != NULL && x->first + i < FIXED; i++)
        if (x->got[i] != fixed_of(x->rank, x->first + i))
            wrong(f, "a get differs", x->got[i], fixed_of(x->rank, x->first + i));
    if (x->dequeues && (error == 0) != (x->out.word != 0))
        wrong(f, "a tracked dequeue has a parcel, or none", x->out.word, (uint64_t)-error);
    if (x->dequeues && x->out.word != 0) {
        atomic_fetch_add(&t->places[x->rank].parcels_out, 1);
        check_parcel(f, x->out);
    }
    if (x->enqueues && error == 0)
        atomic_fetch_add(&t->places[x->rank].parcels_in, 1);
    if (x->enqueues && error == FERRY_ECANCELED)
        atomic_fetch_add(&t->places[x->rank].parcels_unknown, 1);
    free(x);
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    finish(f, arg, receipt->error);
}

static transfer *begin(ferry *f, int rank, size_t data_bytes, ferry_track *track)
{
    account *a = ferry_user_data(f);
    transfer *x = calloc(1, sizeof *x + data_bytes);
    if (x == NULL)
        abort();
    x->rank = rank;
    *track = (ferry_track)FERRY_TRACK_DEFAULTS;
    track->completed = track->failed = on_end;
    track->completed_arg = track->failed_arg = x;
    a->started++;
    return x;
}

/* Takes back an operation that the call refused. False: it was not refused. */
static bool is_refused(ferry *f, transfer *x, int error)
{
    account *a = ferry_user_data(f);
    if (error == 0)
        return false;
    if (error != FERRY_EAGAIN && !has(DEATHS) && !(error == FERRY_EPEER && is_leaving(x->rank)))
        must(f, error, "transfer begins");
    if (x->dequeues)
        a->dequeues--;
    else
        a->started--;
    free(x);
    return true;
}

/* Cuts a range into pieces of random sizes, some of them empty. Returns how many. */
static size_t cut(account *a, ferry_piece whole, ferry_piece pieces[PIECES_MAX])
{
    const size_t most = CHOOSE(&a->random, 16, 700, 5000);
    size_t count = 0;
    for (size_t at = 0; count < PIECES_MAX && at < whole.size_bytes; count++) {
        size_t left = whole.size_bytes - at, size = draw(&a->random, most);
        if (size > left || count == PIECES_MAX - 1)
            size = left;
        pieces[count] =
            (ferry_piece){(char *)whole.target + at, (const char *)whole.source + at, size};
        at += size;
    }
    return count;
}

static void put(ferry *f, account *a, int rank, int which)
{
    region *r = atomic_load(&t->places[rank].regions[which]);
    size_t size_bytes = draw_size(&a->random) % SLOT_BYTES;
    int me = ferry_rank(f), parity = (int)(a->round & 1);
    ferry_track track;
    if (a->round == 0 || a->put_round[which][rank] == a->round)
        return;
    a->put_round[which][rank] = a->round;
    transfer *x = begin(f, rank, size_bytes, &track);
    memset(x->data, stamp_of(a->round, me), size_bytes);
    ferry_piece pieces[PIECES_MAX];
    const ferry_piece whole = {r->slots[parity][me], x->data, size_bytes};
    int error = one_in(&a->random, 2)
                    ? ferry_put(f, rank, whole.target, x->data, size_bytes, &track)
                    : ferry_put_vector(f, rank, pieces, cut(a, whole, pieces), &track);
    if (is_refused(f, x, error))
        return;
    put_record *record = &t->places[rank].puts[which][parity][me];
    atomic_store(&record->size_bytes, (unsigned)size_bytes);
    atomic_store(&record->round, (unsigned)a->round);
}

static void get(ferry *f, account *a, int rank, int which)
{
    region *r = atomic_load(&t->places[rank].regions[which]);
    ferry_track track;
    transfer *x = begin(f, rank, sizeof r->fixed, &track);
    uint64_t first = draw(&a->random, FIXED);
    x->first = first;
    x->got = (uint64_t *)(void *)x->data;
    size_t size_bytes = (FIXED - first) * sizeof(uint64_t);
    ferry_piece pieces[PIECES_MAX];
    const ferry_piece whole = {x->got, &r->fixed[first], size_bytes};
    int error = one_in(&a->random, 2)
                    ? ferry_get(f, rank, x->got, whole.source, size_bytes, &track)
                    : ferry_get_vector(f, rank, pieces, cut(a, whole, pieces), &track);
    (void)is_refused(f, x, error);
}

static void add(ferry *f, account *a, int rank, int which)
{
    region *r = atomic_load(&t->places[rank].regions[which]);
    uint64_t value = draw(&a->random, 100);
    const ferry_atomic what = {.verb = FERRY_FETCH_ADD, .target = &r->counter, .operand = value};
    int error = ferry_atomic_update(f, rank, &what, NULL, NULL);
    if (error == 0)
        atomic_fetch_add(&t->places[rank].added[which], value);
    else if (error != FERRY_EAGAIN && !has(DEATHS) && !is_leaving(rank))
        must(f, error, "atomic");
}

void memory_act(ferry *f, account *a, int from)
{
    int rank = draw_rank(f, a), which = (int)draw(&a->random, REGIONS);
    (void)from;
    if (rank < 0 || atomic_load(&t->places[rank].regions[which]) == NULL)
        return;
    switch (draw(&a->random, 3)) {
    case 0:
        put(f, a, rank, which);
        break;
    case 1:
        get(f, a, rank, which);
        break;
    default:
        add(f, a, rank, which);
        break;
    }
}

/* Cells. */

/* Takes all parcels of this rank's cell, if `left` is not lower; then some may stay. */
static void on_parcels(ferry *f, ferry_cell cell, size_t count, void *arg)
{
    account *a = arg;
    ferry_parcel parcel;
    (void)count;
    do {
        int error = ferry_cell_dequeue(f, cell, &parcel, 0);
        if (error == FERRY_EAGAIN)
            return; /* another rank was faster */
        must(f, error, "dequeue");
        atomic_fetch_add(&mine(f)->parcels_out, 1);
        check_parcel(f, parcel);
    } while (one_in(&a->random, 2));
}

static void enqueue(ferry *f, account *a, int rank)
{
    size_t size_bytes = 1 + draw_size(&a->random) % SLOT_BYTES;
    ferry_track track;
    ferry_parcel parcel;
    void *data;
    int error = ferry_parcel_create(f, size_bytes, &parcel, &data);
    if (error == FERRY_ENOMEM && has(DEATHS))
        return;
    must(f, error, "parcel");
    memset(data, (int)(unsigned char)size_bytes, size_bytes);
    transfer *x = begin(f, rank, 0, &track);
    x->enqueues = true;
    error = ferry_cell_enqueue_start(f, (ferry_cell){rank, CELL}, parcel, FERRY_GIVE, &track);
    if (is_refused(f, x, error))
        must(f, ferry_parcel_release(f, parcel), "release");
}

/* Takes a parcel of another rank, if there is one: `now` without waiting, else within a while. */
static void dequeue(ferry *f, account *a, int rank)
{
    ferry_track track;
    transfer *x = begin(f, rank, 0, &track);
    x->dequeues = true;
    a->started--;
    a->dequeues++;
    track.timeout_ns = 1 + draw(&a->random, 100000);
    (void)is_refused(f, x, ferry_cell_dequeue_start(f, (ferry_cell){rank, CELL}, &x->out, &track));
}

void cell_act(ferry *f, account *a, int from)
{
    int rank = draw_rank(f, a);
    if (rank < 0)
        return;
    if (from == FROM_MAIN && one_in(&a->random, 4))
        dequeue(f, a, rank);
    else
        enqueue(f, a, rank);
}

/* All ranks are between a quiescence and the agreement on the next round. */
void memory_check(ferry *f, account *a)
{
    rank_truth *p = mine(f);
    if (a->started != a->done)
        wrong(f, "transfers have begun, and ended", a->started, a->done);
    for (int which = 0; which < REGIONS && !has(DEATHS); which++) {
        region *r = atomic_load(&p->regions[which]);
        if (r == NULL)
            continue;
        if (r->counter != atomic_load(&p->added[which]))
            wrong(f, "atomic updates differ", r->counter, atomic_load(&p->added[which]));
        for (int source = 0; source < RANKS_MAX; source++) {
            const put_record *record = &p->puts[which][a->round & 1][source];
            if (atomic_load(&record->round) != a->round || is_leaving(source))
                continue;
            const unsigned char *slot = r->slots[a->round & 1][source];
            for (unsigned i = 0; i < atomic_load(&record->size_bytes); i++)
                if (slot[i] != stamp_of(a->round, source))
                    wrong(f, "a put differs", (uint64_t)source, i);
        }
    }
    unsigned in = atomic_load(&p->parcels_in), out = atomic_load(&p->parcels_out);
    if (!has(DEATHS) && (in > out || in + atomic_load(&p->parcels_unknown) < out))
        wrong(f, "parcels that came, and were taken", in, out);
}

static void region_fill(ferry *f, account *a, int which, region *r)
{
    r->counter = 0;
    for (uint64_t i = 0; i < FIXED; i++)
        r->fixed[i] = fixed_of(ferry_rank(f), i);
    (void)a;
    atomic_store(&mine(f)->regions[which], r);
}

void memory_open(ferry *f, account *a)
{
    const ferry_cell_handler handler = {
        .size = sizeof handler, .fn = on_parcels, .arg = a, .high = 0};
    void *memory;
    if (has(MEMORY)) {
        int error = ferry_alloc(f, sizeof(region), &memory);
        if (error == 0)
            region_fill(f, a, HEAP, memory);
        else if (!has(DEATHS))
            must(f, error, "alloc");
        a->registered = calloc(1, sizeof(region));
        if (a->registered == NULL)
            abort();
        must(f, ferry_memory_register(f, a->registered, sizeof(region)), "register");
        region_fill(f, a, REGISTERED, a->registered);
    }
    if (has(CELLS))
        must(f, ferry_cell_handler_set(f, CELL, &handler), "cell handler");
}
