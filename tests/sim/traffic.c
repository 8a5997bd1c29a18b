/* Goal: nothing hangs and nothing is lost, whatever is sent to objects that move, under each
 * directory, with limits from a few bytes to the defaults. Messages have 0 bytes to 1 MiB, come
 * from handlers and from main programs, and cause answers that multiply. Handlers, main programs
 * and a scheduler move the objects; main programs also carry them with a delay. Method: the seed
 * draws all of that. The oracle stands outside the runtime, in memory that all ranks share, whether
 * they are simulated or processes. It knows what was sent and what was handled last for each
 * (source, object), and compares both after each quiescence. The simulator, or a limit of time,
 * ends a run that hangs.
 *
 * Each source has two streams, from its main program and from its handlers, since a call of the
 * main program may poll before it sends.
 *
 *      traffic [SEED [ROUNDS]]     ferry sim -n N traffic; FERRY_RANKS=N traffic SEED
 */
#include <stdatomic.h>
#include <string.h>

#include "../support/truth.h"
#include "oracle.h"

enum { RANKS_MAX = 16, OBJECTS_MAX = 12, CARRIED_MAX = 16 };
enum { FROM_MAIN, FROM_HANDLER, STREAMS };

/* A message counts at least this, among those of a round: moves take along all that wait. */
enum { LEAST_BYTES = 2048 };

/* The seed draws this for the whole job. */
typedef struct plan {
    uint64_t seed, rounds, steps;
    uint64_t objects;     /* in all */
    uint64_t sizes;       /* how many of the classes of sizes occur */
    uint64_t hops, fan;   /* a message is answered by `fan` others, so many times */
    uint64_t fan_one_in;  /* of the messages that may be answered, one in so many is */
    uint64_t move_one_in; /* handlings after which an object moves */
    uint64_t self_one_in; /* answers that go to the object itself */
    uint64_t track_one_in;
    uint64_t carry_one_in, delay; /* steps of a main program */
    uint64_t data_bytes;          /* of an object */
    uint64_t bytes_max;           /* of all messages */
    bool scheduled;               /* every other object */
} plan;

typedef struct stream {
    atomic_uint sent, seen;
} stream;

/* All ranks' truth. */
typedef struct truth {
    plan plan;
    atomic_uint walked; /* mains that have ended the steps of a round */
    atomic_uint carried;
    atomic_ullong bytes, tracked, ended, moves, refused;
    stream streams[RANKS_MAX][STREAMS][OBJECTS_MAX];
} truth;

static truth *t;

typedef struct thing {
    uint64_t index, size_bytes;
    unsigned char ballast[];
} thing;

/* An object between two ranks: with its rank of origin until the delay is over, then with its
 * target. */
typedef struct parcel {
    uint64_t wait;
    int source, target; /* source -1: it is still there */
    ferry_move_info info;
    void *data;
} parcel;

typedef struct account {
    uint64_t random;
    ferry_handler message, carry;
    ferry_object objects[OBJECTS_MAX];
    parcel parcels[CARRIED_MAX];
    int parcel_count;
} account;

static uint64_t one_in(uint64_t *random, uint64_t count)
{
    return draw(random, count) == 0;
}

/* Limits that the environment does not give are drawn. */
static void choose_limits(uint64_t *random)
{
    static const char *const backlogs[] = {"", "", "1", "64", "256", "4096", "65536"};
    static const char *const waitings[] = {"", "", "", "65536", "1048576", "8388608"};
    static const char *const slots[] = {"", "2", "4", "16"};
    static const char *const bytes[] = {"", "1024", "4096"};
    static const char *const directories[] = {"lazy", "home", "eager"};
    static const char *const schedulers[] = {"ferry", "ferry", "none", "stealing", "diffusion"};
    default_to("FERRY_BACKLOG_BYTES", backlogs[draw(random, 7)]);
    default_to("FERRY_WAITING_BYTES", waitings[draw(random, 6)]);
    default_to("FERRY_RING_SLOTS", slots[draw(random, 4)]);
    default_to("FERRY_RING_BYTES", bytes[draw(random, 3)]);
    default_to("FERRY_DIRECTORY", directories[draw(random, 3)]);
    default_to("FERRY_SCHEDULER", schedulers[draw(random, 5)]);
}

static void choose_plan(uint64_t seed, uint64_t rounds)
{
    uint64_t random = (seed * 2 + 1) * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 8; i++)
        (void)draw(&random, 2);
    choose_limits(&random);
    plan *p = &t->plan;
    p->seed = seed;
    p->rounds = rounds;
    p->steps = CHOOSE(&random, 5, 20, 60);
    p->objects = CHOOSE(&random, 1, 2, 5, OBJECTS_MAX);
    p->sizes = 1 + draw(&random, 6);
    p->hops = draw(&random, 5);
    p->fan = CHOOSE(&random, 1, 1, 2, 3, 200);
    p->fan_one_in = CHOOSE(&random, 1, 2, 4);
    p->move_one_in = CHOOSE(&random, 1, 3, 10, 1000);
    p->self_one_in = CHOOSE(&random, 1, 3, 1000);
    p->track_one_in = CHOOSE(&random, 2, 8, 1000);
    p->carry_one_in = CHOOSE(&random, 5, 20, 1000000);
    p->delay = CHOOSE(&random, 1, 5, 30);
    p->data_bytes = CHOOSE(&random, 0, 0, 100, 3000, 100000);
    p->bytes_max = CHOOSE(&random, 1 << 18, 1 << 20, 4 << 20);
    p->scheduled = one_in(&random, 2);
}

static size_t draw_size(uint64_t *random)
{
    static const uint64_t bounds[] = {64, 2000, 9000, 70000, 300000, (1 << 20) + 1};
    return draw(random, 3) == 0 ? 0 : (size_t)draw(random, bounds[draw(random, t->plan.sizes)]);
}

static unsigned char byte_of(uint32_t number, uint64_t object)
{
    return (unsigned char)(number * 31 + object);
}

static void on_end(ferry *f, void *arg, const ferry_receipt *receipt)
{
    if (arg != NULL)
        wrong(f, "a message failed", (uint64_t)(int64_t)receipt->error, 0);
    atomic_fetch_add(&t->ended, 1);
}

/* Sends one message; FERRY_EAGAIN: the limit of what waits is passed. */
static int send_one(ferry *f, int from, uint64_t object, uint64_t hops)
{
    account *a = ferry_user_data(f);
    size_t size_bytes = draw_size(&a->random);
    stream *s = &t->streams[ferry_rank(f)][from][object];
    uint32_t number = atomic_load(&s->sent);
    if (atomic_fetch_add(&t->bytes, size_bytes + LEAST_BYTES) > t->plan.bytes_max)
        return 0;
    unsigned char *data = malloc(size_bytes + 1);
    if (data == NULL)
        abort();
    memset(data, byte_of(number, object), size_bytes);
    ferry_message message = {.handler = a->message,
                             .word_count = (uint8_t)(3 + draw(&a->random, 2)),
                             .tag = (int32_t)object,
                             .words = {number, (uint64_t)from, hops, 7},
                             .data = data,
                             .size_bytes = size_bytes};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    bool tracked = one_in(&a->random, t->plan.track_one_in);
    track.completed = track.failed = on_end;
    track.failed_arg = a;
    track.arrival = one_in(&a->random, 2);
    int error = ferry_object_send(f, a->objects[object], &message, tracked ? &track : NULL);
    free(data);
    if (error == FERRY_EAGAIN) {
        atomic_fetch_add(&t->refused, 1);
        return error;
    }
    must(f, error, "send");
    atomic_store(&s->sent, number + 1);
    atomic_fetch_add(&t->tracked, tracked);
    return 0;
}

static void answer(ferry *f, account *a, uint64_t index, uint64_t hops)
{
    const plan *p = &t->plan;
    uint64_t count = hops != 0 && one_in(&a->random, p->fan_one_in) ? p->fan : 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t other = draw(&a->random, p->objects);
        uint64_t to = one_in(&a->random, p->self_one_in) ? index : other;
        if (send_one(f, FROM_HANDLER, to, hops - 1) != 0)
            return;
    }
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    account *a = ferry_user_data(f);
    const thing *x = data;
    const unsigned char *bytes = message->data;
    uint64_t index = x->index, from = message->words[1], size_bytes = message->size_bytes;
    if (from >= STREAMS || (uint64_t)message->tag != index)
        wrong(f, "message to another object", from, index);
    uint32_t number = atomic_fetch_add(&t->streams[source][from][index].seen, 1);
    if (message->words[0] != number)
        wrong(f, "message out of order, lost or doubled", message->words[0], number);
    for (size_t i = 0; i < size_bytes; i += i < 64 || i + 64 > size_bytes ? 1 : 61)
        if (bytes[i] != byte_of(number, index))
            wrong(f, "data differ", number, i);
    for (uint64_t i = 0; i < x->size_bytes; i++)
        if (x->ballast[i] != (unsigned char)index)
            wrong(f, "the object differs", index, i);
    if (one_in(&a->random, 4))
        ferry_compute(f, (double)draw(&a->random, 3000) * 1e-9);
    answer(f, a, index, message->words[2]);
    if (one_in(&a->random, t->plan.move_one_in)) {
        must(f, ferry_object_move(f, object, (int)draw(&a->random, (uint64_t)ferry_ranks(f))),
             "move");
        atomic_fetch_add(&t->moves, 1);
    }
}

/* The main program takes an object that is here away, to bring it to another rank later. */
static void pick_up(ferry *f, account *a)
{
    ferry_object object = a->objects[draw(&a->random, t->plan.objects)];
    int ranks = ferry_ranks(f), target = (int)draw(&a->random, (uint64_t)ranks);
    uint64_t wait = draw(&a->random, t->plan.delay);
    parcel p = {.source = -1, .target = target, .wait = wait};
    if (target == ferry_rank(f) || a->parcel_count == CARRIED_MAX ||
        ferry_object_data(f, object) == NULL)
        return;
    atomic_fetch_add(&t->carried, 1);
    int error = ferry_object_uninstall(f, object, p.target, &p.info, &p.data);
    if (error == 0)
        a->parcels[a->parcel_count++] = p;
    else if (error != FERRY_ENOENT)
        must(f, error, "uninstall");
    if (error != 0)
        atomic_fetch_sub(&t->carried, 1);
}

/* Data: the length of the info, the info, the object. */
static void bring(ferry *f, account *a, parcel *p)
{
    const thing *x = p->data;
    size_t data_bytes = sizeof *x + x->size_bytes;
    size_t size_bytes = sizeof(uint64_t) + p->info.size_bytes + data_bytes;
    unsigned char *all = malloc(size_bytes);
    if (all == NULL)
        abort();
    memcpy(all, &(uint64_t){p->info.size_bytes}, sizeof(uint64_t));
    memcpy(all + sizeof(uint64_t), p->info.bytes, p->info.size_bytes);
    memcpy(all + sizeof(uint64_t) + p->info.size_bytes, x, data_bytes);
    const ferry_message message = {.handler = a->carry, .data = all, .size_bytes = size_bytes};
    must(f, ferry_request_send(f, p->target, &message, NULL), "carry");
    free(all);
    free(p->data);
    free(p->info.bytes);
}

static void on_carry(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    const unsigned char *at = message->data;
    parcel p = {.source = source, .wait = draw(&a->random, t->plan.delay)};
    uint64_t info_bytes;
    memcpy(&info_bytes, at, sizeof info_bytes);
    size_t data_bytes = message->size_bytes - sizeof info_bytes - info_bytes;
    if (a->parcel_count == CARRIED_MAX)
        wrong(f, "too many objects are carried", 0, 0);
    p.info = (ferry_move_info){.bytes = malloc(info_bytes), .size_bytes = info_bytes};
    p.data = malloc(data_bytes);
    if (p.info.bytes == NULL || p.data == NULL)
        abort();
    memcpy(p.info.bytes, at + sizeof info_bytes, info_bytes);
    memcpy(p.data, at + sizeof info_bytes + info_bytes, data_bytes);
    a->parcels[a->parcel_count++] = p;
}

/* Brings the parcels further whose delay is over. */
static void carry_on(ferry *f, account *a)
{
    for (int i = 0; i < a->parcel_count; i++) {
        parcel p = a->parcels[i];
        if (p.wait != 0) {
            a->parcels[i].wait--;
            continue;
        }
        int error = p.source >= 0 ? ferry_object_install(f, &p.info, p.data, p.source) : 0;
        if (error == FERRY_EAGAIN)
            continue; /* its last stay here has not ended */
        must(f, error, "install");
        /* Taken out first: sending polls, and others may come. */
        a->parcels[i--] = a->parcels[--a->parcel_count];
        if (p.source < 0) {
            bring(f, a, &p);
            continue;
        }
        free(p.info.bytes);
        atomic_fetch_sub(&t->carried, 1);
    }
}

static void burst(ferry *f, account *a, uint64_t object)
{
    uint64_t count = 1 + draw(&a->random, 40);
    for (uint64_t i = 0; i < count; i++)
        if (send_one(f, FROM_MAIN, object, t->plan.hops) != 0)
            return;
}

static void step(ferry *f, account *a)
{
    uint64_t object = draw(&a->random, t->plan.objects);
    switch (draw(&a->random, 6)) {
    case 0:
        ferry_poll(f);
        break;
    case 1:
        burst(f, a, object);
        break;
    case 2:
        ferry_compute(f, (double)draw(&a->random, 20000) * 1e-9);
        break;
    case 3:
        if (ferry_object_data(f, a->objects[object]) != NULL) {
            int target = (int)draw(&a->random, (uint64_t)ferry_ranks(f));
            int error = ferry_object_move(f, a->objects[object], target);
            if (error != FERRY_ENOENT)
                must(f, error, "move");
        }
        break;
    default:
        (void)send_one(f, FROM_MAIN, object, t->plan.hops);
        break;
    }
    if (one_in(&a->random, t->plan.carry_one_in))
        pick_up(f, a);
    carry_on(f, a);
}

/* Nobody sends between a quiescence and the barrier behind it. */
static void check_all(ferry *f)
{
    for (int rank = 0; rank < ferry_ranks(f); rank++)
        for (int from = 0; from < STREAMS; from++)
            for (uint64_t o = 0; o < t->plan.objects; o++) {
                stream *s = &t->streams[rank][from][o];
                if (atomic_load(&s->sent) != atomic_load(&s->seen))
                    wrong(f, "sent and not handled at quiescence", atomic_load(&s->sent),
                          atomic_load(&s->seen));
            }
}

static void play_round(ferry *f, account *a, uint64_t round)
{
    must(f, ferry_balance_enable(f, round % 2 == 0), "phase");
    for (uint64_t i = 0; i < t->plan.steps; i++)
        step(f, a);
    atomic_fetch_add(&t->walked, 1);
    while (atomic_load(&t->walked) < (unsigned)ferry_ranks(f) * (round + 1) ||
           atomic_load(&t->carried) != 0) {
        carry_on(f, a);
        ferry_wait(f, 20000);
    }
    must(f, ferry_quiesce(f), "quiesce");
    check_all(f);
    must(f, ferry_barrier(f), "barrier");
    atomic_store(&t->bytes, 0);
    must(f, ferry_barrier(f), "barrier");
}

static size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    return sizeof(thing) + ((const thing *)data)->size_bytes;
}

static void create_objects(ferry *f, account *a)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .packed_size = packed_size};
    ferry_object_type type;
    must(f, ferry_object_type_register(f, &ops, &type), "type");
    for (uint64_t i = 0; i < t->plan.objects; i++) {
        if (i % (uint64_t)ferry_ranks(f) != (uint64_t)ferry_rank(f))
            continue;
        thing *x = malloc(sizeof *x + t->plan.data_bytes);
        if (x == NULL)
            abort();
        *x = (thing){.index = i, .size_bytes = t->plan.data_bytes};
        memset(x->ballast, (int)i, t->plan.data_bytes);
        must(f, ferry_object_create(f, type, x, &a->objects[i]), "create");
        if (t->plan.scheduled && i % 2 == 1)
            must(f,
                 ferry_balance_add(f, a->objects[i],
                                   &(ferry_balance_options){sizeof(ferry_balance_options), 1e-6, 0,
                                                            NULL, NULL, 0}),
                 "balance_add");
    }
    must(f,
         ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, a->objects, a->objects,
                         (size_t)t->plan.objects),
         "allreduce");
}

static void tell(void)
{
    uint64_t handled = 0;
    for (int rank = 0; rank < RANKS_MAX; rank++)
        for (int from = 0; from < STREAMS; from++)
            for (int o = 0; o < OBJECTS_MAX; o++)
                handled += atomic_load(&t->streams[rank][from][o].seen);
    printf("traffic: seed %" PRIu64 ": %" PRIu64 " messages, %llu tracked, %llu moves, "
           "%llu refused\n",
           t->plan.seed, handled, atomic_load(&t->tracked), atomic_load(&t->moves),
           atomic_load(&t->refused));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    account *a = calloc(1, sizeof *a);
    if (a == NULL || ferry_ranks(f) > RANKS_MAX)
        return 2;
    a->random = (t->plan.seed * 1000003 + (uint64_t)ferry_rank(f)) * 0x9e3779b97f4a7c15u + 1;
    ferry_user_data_set(f, a);
    must(f, ferry_object_handler_register(f, "message", on_message, &a->message), "handler");
    must(f, ferry_handler_register(f, "carry", on_carry, &a->carry), "handler");
    create_objects(f, a);
    for (uint64_t round = 0; round < t->plan.rounds; round++)
        play_round(f, a, round);
    must(f, ferry_balance_enable(f, false), "phase");
    while (atomic_load(&t->tracked) != atomic_load(&t->ended))
        ferry_wait(f, 1000000);
    must(f, ferry_barrier(f), "barrier");
    if (ferry_rank(f) == 0)
        tell();
    free(a);
    return 0;
}

int main(int argc, char **argv)
{
    bool first;
    const char *seed = argc > 1 ? argv[1] : getenv("FERRY_SIM_SEED");
    t = truth_map(sizeof *t, &first);
    if (first)
        choose_plan(seed == NULL ? 1 : strtoull(seed, NULL, 10),
                    argc > 2 ? strtoull(argv[2], NULL, 10) : 2);
    return ferry_main(argc, argv, rank_main, NULL);
}
