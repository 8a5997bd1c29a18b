/* Migration of objects, by the runtime and by hand.
 *
 *   migrate  pack, request with the same bytes, unpack
 *   uninstall, install  a copy of the object in new memory
 *   hand     a request that tells the address */
#include <stdlib.h>
#include <string.h>

#include "peers/objects_side.h"

enum { BATCH = 32, INFO_BYTES_MAX = 256 };

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
    bench_until(s, *arrived);
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
    item *cargo = s->rank == 0 ? bench_item(job->size_bytes) : NULL;
    return make_travel(s, job, s->type, cargo);
}

static double hand_over(void *context, const bench_job *job)
{
    state *s = context;
    item *cargo = s->rank == 0 ? bench_shared_item(s->f, job->size_bytes) : NULL;
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
        check(s->f, ferry_object_create(s->f, s->type, bench_item(job->size_bytes), &objects[i]));
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
        items[i] = bench_item(m->words[1]);
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
    item *from = bench_item(job->size_bytes);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++) {
        item *to = bench_item(job->size_bytes);
        memcpy(to->bytes, from->bytes, job->size_bytes);
        s->sum += to->bytes[0] & 2;
        free(to);
    }
    uint64_t end = bench_now();
    free(from);
    return (double)(end - start);
}

void bench_carry_on(state *s, uint64_t left)
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
        bench_carry_on(s, m->words[0] - 1);
}

static double carry(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), start = 0, arrived = s->arrived;
    s->packed = malloc(sizeof(item) + job->size_bytes);
    if (!s->packed)
        exit(1);
    if (s->rank == 0)
        s->cargo = bench_item(job->size_bytes);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t count = pass ? job->count : warm;
        start = bench_now();
        if (s->rank == 0)
            bench_carry_on(s, 2 * count - 1);
        bench_until(s, arrived += count);
    }
    uint64_t end = bench_now();
    free(s->cargo);
    free(s->packed);
    s->cargo = NULL;
    s->packed = NULL;
    return (double)(end - start);
}

/* The least that a handover needs: word of where the object is. */
static double tell(void *context, const bench_job *job)
{
    bench_job small = *job;
    small.size_bytes = 8;
    return bench_round_trips(context, &small, false);
}

void bench_objects_moves_register(state *s)
{
    ferry *f = s->f;
    check(f, ferry_object_handler_register(f, "go", on_go, &s->go));
    check(f, ferry_handler_register(f, "carry", on_carry, &s->carry));
    check(f, ferry_handler_register(f, "put_in", on_put_in, &s->put_in));
}

void bench_objects_moves(bench_team *team, bool reference)
{
    team->kinds[BENCH_MIGRATE] = reference ? carry : migrate;
    team->kinds[BENCH_UNINSTALL] = reference ? copy : uninstall;
    team->kinds[BENCH_INSTALL] = reference ? copy : install;
    team->kinds[BENCH_HAND_OVER] = reference ? tell : hand_over;
}
