/* Ferry's objects, and with BENCH_REFERENCE in the environment what each of their operations is
 * compared with:
 *
 *   lookup   a read of one of as many slots, chosen in the same way
 *   update   a write of one
 *   local    a call of the handler by a pointer
 *   remote   a request of the same size to the same rank
 *   forward  requests along the same ranks
 *   migrate  pack, request with the same bytes, unpack
 *   uninstall, install  a copy of the object in new memory
 *   hand     a request that tells the address
 */
#include <ferry/ferry.h>

#include "object/object.h"

#include "common/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 1000000, BATCH = 32, BALLAST_BYTES = 64 << 10, INFO_BYTES_MAX = 256 };

/* An object, or what stands for one in the reference. */
typedef struct item {
    size_t size_bytes;
    unsigned char bytes[];
} item;

typedef struct state {
    ferry *f;
    int rank;
    uint64_t arrived, sum;
    ferry_object_type type, shared_type;
    ferry_handler ping, pass, go, call;                /* of objects */
    ferry_handler pong, relay, carry, arrival, put_in; /* of ranks */
    uint64_t install_ns;
    ferry_object own, objects[2];
    item *cargo;
    unsigned char *packed;
    unsigned char ballast[BALLAST_BYTES];
    fy_entry *slots;
} state;

static void check(ferry *f, int error)
{
    if (error < 0) {
        fprintf(stderr, "bench: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
        exit(1);
    }
}

static void until(state *s, uint64_t arrived)
{
    while (s->arrived < arrived)
        check(s->f, ferry_poll(s->f));
}

/* As until, where ranks share a core. */
static void until_waiting(state *s, uint64_t arrived)
{
    while (s->arrived < arrived)
        check(s->f, ferry_wait(s->f, FERRY_FOREVER));
}

static item *item_create(size_t size_bytes)
{
    item *i = malloc(sizeof *i + size_bytes);
    if (!i)
        exit(1);
    i->size_bytes = size_bytes;
    memset(i->bytes, 1, size_bytes);
    return i;
}

static size_t item_packed_size(ferry *f, const void *data)
{
    (void)f;
    return sizeof(item) + ((const item *)data)->size_bytes;
}

/* Names of objects that rank 1 made, in an order that no cache foresees. */
static ferry_object name_at(uint64_t i)
{
    uint64_t number = i * 7919 % ENTRIES + 1;
    return (ferry_object){(uint64_t)1 << (64 - FY_CREATOR_BITS) | (uint64_t)1 << 32 | number};
}

static void fill_directory(state *s)
{
    fy_entry *entry;
    for (uint64_t i = 0; i < ENTRIES; i++)
        check(s->f, fy_entry_make(fy_objects_of(s->f), name_at(i), &entry));
}

static double lookup(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    if (s->rank)
        return 0;
    fill_directory(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++)
            s->sum += (uint64_t)fy_entry_find(fy_objects_of(s->f), name_at(i))->guess;
    }
    return (double)(bench_now() - start);
}

static double update(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    fy_frame frame = {.kind = FY_KIND_LOCATION, .word_count = 2};
    if (s->rank)
        return 0;
    fill_directory(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++) {
            frame.words[0] = name_at(i).word;
            frame.words[1] = ++s->arrived & UINT32_MAX;
            fy_location_frame(s->f, 1, &frame);
        }
    }
    return (double)(bench_now() - start);
}

static fy_entry *slots_of(state *s)
{
    if (!s->slots)
        s->slots = calloc(ENTRIES + 1, sizeof *s->slots);
    if (!s->slots)
        exit(1);
    return s->slots;
}

static double read_slots(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    fy_entry *slots = slots_of(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++)
            s->sum += (uint64_t)slots[name_at(i).word & UINT32_MAX].guess;
    }
    return (double)(bench_now() - start);
}

static double write_slots(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0;
    fy_entry *slots = slots_of(s);
    for (int pass = 0; pass < 2; pass++) {
        start = bench_now();
        for (uint64_t i = 0; i < job->count; i++) {
            fy_entry *slot = &slots[name_at(i).word & UINT32_MAX];
            slot->guess = 1;
            slot->movement++;
        }
    }
    return (double)(bench_now() - start);
}

static void on_call(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)object;
    (void)data;
    (void)source;
    (void)m;
    s->arrived++;
}

static ferry_message message_of(const state *s, ferry_handler handler, size_t size_bytes)
{
    ferry_message m = {.handler = handler, .word_count = 1};
    if (size_bytes > sizeof m.words) {
        m.data = s->ballast;
        m.size_bytes = size_bytes;
    }
    return m;
}

static double local(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    ferry_message m = message_of(s, s->call, 8);
    if (s->rank)
        return 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_object_send(s->f, s->own, &m, NULL));
        if (i % BATCH == BATCH - 1 || i + 1 == warm + job->count)
            until(s, base + i + 1);
    }
    return (double)(bench_now() - start);
}

static double call(void *context, const bench_job *job)
{
    state *s = context;
    ferry_object_fn *volatile fn = on_call;
    ferry_message m = message_of(s, s->call, 8);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++)
        fn(s->f, s->own, s->cargo, 0, &m);
    return (double)(bench_now() - start);
}

static void on_ping(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    ferry_message reply = *m;
    (void)object;
    (void)data;
    (void)source;
    s->arrived++;
    if (s->rank == 1)
        check(f, ferry_object_send(f, s->objects[0], &reply, NULL));
}

static void on_pong(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    s->arrived++;
    if (s->rank == 1)
        check(f, ferry_request_send(f, source, m, NULL));
}

/* Round trips between an object of rank 0 and one of rank 1, or between the ranks themselves. */
static double round_trips(state *s, const bench_job *job, bool objects)
{
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    ferry_message m = message_of(s, objects ? s->ping : s->pong, job->size_bytes);
    if (s->rank == 1)
        until(s, base + warm + job->count);
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, objects ? ferry_object_send(s->f, s->objects[1], &m, NULL)
                            : ferry_request_send(s->f, 1, &m, NULL));
        until(s, base + i + 1);
    }
    return (double)(bench_now() - start);
}

static double remote(void *context, const bench_job *job)
{
    return round_trips(context, job, true);
}

static double request(void *context, const bench_job *job)
{
    return round_trips(context, job, false);
}

/* What hands over at least: word of where it is. */
static double tell(void *context, const bench_job *job)
{
    bench_job small = *job;
    small.size_bytes = 8;
    return round_trips(context, &small, false);
}

static void on_pass(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)object;
    (void)data;
    (void)source;
    (void)m;
    check(f, ferry_request_send(f, 0, &(ferry_message){.handler = s->arrival}, NULL));
}

static void on_relay(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    ferry_message next = *m;
    (void)source;
    if (s->rank == 2)
        next.handler = s->arrival;
    check(f, ferry_request_send(f, s->rank == 2 ? 0 : 2, &next, NULL));
}

static void on_arrival(ferry *f, int source, const ferry_message *m)
{
    (void)source;
    (void)m;
    ((state *)ferry_user_data(f))->arrived++;
}

/* Objects of rank 1 that have moved to rank 2; rank 0 still believes the creator has them. */
static ferry_object *moved_objects(state *s, uint64_t count)
{
    ferry_object *all = calloc(count, sizeof *all);
    if (!all)
        exit(1);
    for (uint64_t i = 0; i < count && s->rank == 1; i++) {
        check(s->f, ferry_object_create(s->f, s->type, item_create(64), &all[i]));
        check(s->f, ferry_object_move(s->f, all[i], 2));
    }
    check(s->f, ferry_broadcast(s->f, 1, all, count * sizeof *all));
    check(s->f, ferry_quiesce(s->f));
    return all;
}

/* Each message takes the way 0 -> 1 -> 2, and a request comes back. */
static double forward(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), total = warm + job->count, start = 0, base = s->arrived;
    ferry_object *all = moved_objects(s, total);
    for (uint64_t i = 0; i < total && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_object_send(s->f, all[i], &(ferry_message){.handler = s->pass}, NULL));
        until_waiting(s, base + i + 1);
    }
    uint64_t end = bench_now();
    check(s->f, ferry_quiesce(s->f));
    for (uint64_t i = 0; i < total && s->rank == 2; i++)
        check(s->f, ferry_object_destroy(s->f, all[i]));
    check(s->f, ferry_quiesce(s->f));
    free(all);
    return (double)(end - start);
}

static double relay(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_request_send(s->f, 1, &(ferry_message){.handler = s->relay}, NULL));
        until_waiting(s, base + i + 1);
    }
    uint64_t end = bench_now();
    check(s->f, ferry_barrier(s->f));
    return (double)(end - start);
}

/* words[0]: migrations that are left. The object takes its next message along. */
static void on_go(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)data;
    (void)source;
    s->arrived++;
    if (m->words[0] == 0)
        return;
    ferry_message next = {.handler = s->go, .word_count = 1, .words = {m->words[0] - 1}};
    check(f, ferry_object_send(f, object, &next, NULL));
    check(f, ferry_object_move(f, object, !s->rank));
}

/* An even number of migrations, from rank 0 and back; `arrived` becomes what it is then. */
static void travel(state *s, ferry_object object, uint64_t count, uint64_t *arrived)
{
    ferry_message go = {.handler = s->go, .word_count = 1, .words = {2 * count}};
    if (s->rank == 0)
        check(s->f, ferry_object_send(s->f, object, &go, NULL));
    *arrived += count + (s->rank == 0);
    until(s, *arrived);
}

static double make_travel(state *s, const bench_job *job, ferry_object_type type, item *cargo)
{
    ferry_object object = {0};
    uint64_t arrived = s->arrived;
    if (s->rank == 0)
        check(s->f, ferry_object_create(s->f, type, cargo, &object));
    travel(s, object, bench_warmup(job), &arrived);
    uint64_t start = bench_now();
    travel(s, object, job->count, &arrived);
    uint64_t end = bench_now();
    if (s->rank == 0)
        check(s->f, ferry_object_destroy(s->f, object));
    return (double)(end - start);
}

static double migrate(void *context, const bench_job *job)
{
    state *s = context;
    item *cargo = s->rank == 0 ? item_create(job->size_bytes) : NULL;
    return make_travel(s, job, s->type, cargo);
}

/* All its bytes are written before, so that they are memory and not a promise of it. */
static double hand_over(void *context, const bench_job *job)
{
    state *s = context;
    item *cargo = NULL;
    if (s->rank == 0) {
        void *out;
        check(s->f, ferry_alloc(s->f, sizeof *cargo + job->size_bytes, &out));
        cargo = out;
        cargo->size_bytes = job->size_bytes;
        memset(cargo->bytes, 1, job->size_bytes);
    }
    return make_travel(s, job, s->shared_type, cargo);
}

/* Takes `count` objects out on this rank; what tells of them goes to the other in one request.
 * Returns how long the taking out took. */
static uint64_t take_out(state *s, const bench_job *job, uint64_t count)
{
    static unsigned char infos[BATCH * INFO_BYTES_MAX];
    ferry_object objects[BATCH];
    size_t used = 0;
    for (uint64_t i = 0; i < count; i++)
        check(s->f, ferry_object_create(s->f, s->type, item_create(job->size_bytes), &objects[i]));
    ferry_move_info info[BATCH];
    void *data[BATCH];
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < count; i++)
        check(s->f, ferry_object_uninstall(s->f, objects[i], !s->rank, &info[i], &data[i]));
    uint64_t passed = bench_now() - start;
    for (uint64_t i = 0; i < count; i++) {
        if (info[i].size_bytes > INFO_BYTES_MAX)
            exit(1);
        memcpy(infos + used, &info[i].size_bytes, sizeof(size_t));
        memcpy(infos + used + sizeof(size_t), info[i].bytes, info[i].size_bytes);
        used += sizeof(size_t) + (info[i].size_bytes + 7) / 8 * 8;
        free(info[i].bytes);
        free(data[i]);
    }
    const ferry_message m = {.handler = s->put_in,
                             .word_count = 2,
                             .words = {count, job->size_bytes},
                             .data = infos,
                             .size_bytes = used};
    check(s->f, ferry_request_send(s->f, !s->rank, &m, NULL));
    return passed;
}

static void on_put_in(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    const unsigned char *at = m->data;
    ferry_move_info info[BATCH];
    item *items[BATCH];
    uint64_t count = m->words[0] < BATCH ? m->words[0] : BATCH;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&info[i].size_bytes, at, sizeof(size_t));
        info[i].bytes = (void *)(uintptr_t)(at + sizeof(size_t));
        at += sizeof(size_t) + (info[i].size_bytes + 7) / 8 * 8;
        items[i] = item_create(m->words[1]);
    }
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < count; i++)
        check(f, ferry_object_install(f, &info[i], items[i], source));
    s->install_ns += bench_now() - start;
    for (uint64_t i = 0; i < count; i++) {
        ferry_object object;
        memcpy(&object, info[i].bytes, sizeof object); /* the name stands first */
        check(f, ferry_object_destroy(f, object));
    }
}

/* `from` takes objects out, the other rank puts them in. */
static double carry_objects(state *s, const bench_job *job, int from)
{
    uint64_t passed = 0;
    s->install_ns = 0;
    for (uint64_t left = job->count; left > 0;) {
        uint64_t count = left < BATCH ? left : BATCH;
        if (s->rank == from)
            passed += take_out(s, job, count);
        check(s->f, ferry_quiesce(s->f));
        left -= count;
    }
    return (double)(s->rank == from ? passed : s->install_ns);
}

static double uninstall(void *context, const bench_job *job)
{
    return carry_objects(context, job, 0);
}

static double install(void *context, const bench_job *job)
{
    return carry_objects(context, job, 1);
}

/* An object's bytes, copied to new memory. */
static double copy(void *context, const bench_job *job)
{
    state *s = context;
    item *from = item_create(job->size_bytes);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++) {
        item *to = item_create(job->size_bytes);
        memcpy(to->bytes, from->bytes, job->size_bytes);
        s->sum += to->bytes[0] & 2;
        free(to);
    }
    uint64_t end = bench_now();
    free(from);
    return (double)(end - start);
}

/* Packs the cargo and sends it on; what it was here is gone. */
static void carry_on(state *s, uint64_t left)
{
    size_t size_bytes = sizeof(item) + s->cargo->size_bytes;
    memcpy(s->packed, s->cargo, size_bytes);
    free(s->cargo);
    s->cargo = NULL;
    ferry_message m = {.handler = s->carry,
                       .word_count = 1,
                       .words = {left},
                       .data = s->packed,
                       .size_bytes = size_bytes};
    check(s->f, ferry_request_send(s->f, !s->rank, &m, NULL));
}

static void on_carry(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->cargo = malloc(m->size_bytes);
    if (!s->cargo)
        exit(1);
    memcpy(s->cargo, m->data, m->size_bytes);
    s->arrived++;
    if (m->words[0] > 0)
        carry_on(s, m->words[0] - 1);
}

static double carry(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0, arrived = s->arrived;
    s->packed = malloc(sizeof(item) + job->size_bytes);
    if (!s->packed)
        exit(1);
    if (s->rank == 0)
        s->cargo = item_create(job->size_bytes);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t count = pass ? job->count : warm;
        start = bench_now();
        if (s->rank == 0)
            carry_on(s, 2 * count - 1);
        until(s, arrived += count);
    }
    uint64_t end = bench_now();
    free(s->cargo);
    free(s->packed);
    s->cargo = NULL;
    s->packed = NULL;
    return (double)(end - start);
}

static void register_all(state *s)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "item", .packed_size = item_packed_size};
    ferry_object_ops shared = ops;
    ferry *f = s->f;
    shared.flags = FERRY_OBJECT_SHARED;
    check(f, ferry_object_type_register(f, &ops, &s->type));
    check(f, ferry_object_type_register(f, &shared, &s->shared_type));
    check(f, ferry_object_handler_register(f, "ping", on_ping, &s->ping));
    check(f, ferry_object_handler_register(f, "pass", on_pass, &s->pass));
    check(f, ferry_object_handler_register(f, "go", on_go, &s->go));
    check(f, ferry_object_handler_register(f, "call", on_call, &s->call));
    check(f, ferry_handler_register(f, "pong", on_pong, &s->pong));
    check(f, ferry_handler_register(f, "relay", on_relay, &s->relay));
    check(f, ferry_handler_register(f, "carry", on_carry, &s->carry));
    check(f, ferry_handler_register(f, "arrival", on_arrival, &s->arrival));
    check(f, ferry_handler_register(f, "put_in", on_put_in, &s->put_in));
    check(f, ferry_object_create(f, s->type, item_create(64), &s->own));
    for (int rank = 0; rank < ferry_ranks(f) && rank < 2; rank++) {
        s->objects[rank] = s->own;
        check(f, ferry_broadcast(f, rank, &s->objects[rank], sizeof s->objects[rank]));
    }
}

static void choose(bench_team *team, bool reference)
{
    team->kinds[BENCH_LOOKUP] = reference ? read_slots : lookup;
    team->kinds[BENCH_UPDATE] = reference ? write_slots : update;
    team->kinds[BENCH_LOCAL] = reference ? call : local;
    team->kinds[BENCH_REMOTE] = reference ? request : remote;
    team->kinds[BENCH_FORWARD] = reference ? relay : forward;
    team->kinds[BENCH_MIGRATE] = reference ? carry : migrate;
    team->kinds[BENCH_UNINSTALL] = reference ? copy : uninstall;
    team->kinds[BENCH_INSTALL] = reference ? copy : install;
    team->kinds[BENCH_HAND_OVER] = reference ? tell : hand_over;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f, .rank = ferry_rank(f)};
    bench_board *board = bench_board_open();
    (void)argc;
    (void)argv;
    if (!board)
        return 1;
    ferry_user_data_set(f, &s);
    register_all(&s);
    bench_pin(s.rank);
    bench_team team = {.board = board, .rank = s.rank, .context = &s};
    choose(&team, getenv("BENCH_REFERENCE") != NULL);
    bench_team_serve(&team);
    free(s.slots);
    return s.sum == 1 ? 2 : 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
