/* Messages to objects: on their rank, on another, and on one that the sender does not know of.
 *
 *   local    a call of the handler by a pointer
 *   remote   a request of the same size to the same rank
 *   lend     the same message from memory that cannot be lent, and is copied
 *   forward  requests along the same ranks */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/objects_side.h"

enum { BATCH = 32 };

/* As until, where ranks share a core. */
static void until_waiting(state *s, uint64_t arrived)
{
    while (s->arrived < arrived)
        check(s->f, ferry_wait(s->f, FERRY_FOREVER));
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

ferry_message bench_message(const state *s, ferry_handler handler, size_t size_bytes)
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
    ferry_message m = bench_message(s, s->call, 8);
    if (s->rank)
        return 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_object_send(s->f, s->own, &m, NULL));
        if (i % BATCH == BATCH - 1 || i + 1 == warm + job->count)
            bench_until(s, base + i + 1);
    }
    return (double)(bench_now() - start);
}

static double call(void *context, const bench_job *job)
{
    state *s = context;
    ferry_object_fn *volatile fn = on_call;
    ferry_message m = bench_message(s, s->call, 8);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++)
        fn(s->f, s->own, s->cargo, 0, &m);
    return (double)(bench_now() - start);
}

static void on_ping(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)object;
    (void)data;
    (void)source;
    s->arrived++;
    if (s->rank == 1)
        check(f, ferry_object_send(f, s->objects[0], m, NULL));
}

static void on_pong(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    s->arrived++;
    if (s->rank == 1)
        check(f, ferry_request_send(f, source, m, NULL));
}

double bench_round_trips(state *s, const bench_job *job, bool objects)
{
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    ferry_message m = bench_message(s, objects ? s->ping : s->pong, job->size_bytes);
    if (s->rank == 1)
        bench_until(s, base + warm + job->count);
    for (uint64_t i = 0; i < warm + job->count && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, objects ? ferry_object_send(s->f, s->objects[1], &m, NULL)
                            : ferry_request_send(s->f, 1, &m, NULL));
        bench_until(s, base + i + 1);
    }
    return (double)(bench_now() - start);
}

static double remote(void *context, const bench_job *job)
{
    return bench_round_trips(context, job, true);
}

static double request(void *context, const bench_job *job)
{
    return bench_round_trips(context, job, false);
}

/* Reads all of it, and says that it has. */
static void on_read(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    const uint64_t *words = m->data;
    uint64_t sum = 0;
    (void)object;
    (void)data;
    for (size_t i = 0; i < m->size_bytes / sizeof *words; i++)
        sum += words[i];
    const ferry_message answer = {.handler = s->arrival, .word_count = 1, .words = {sum}};
    check(f, ferry_request_send(f, source, &answer, NULL));
}

static void on_free(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)receipt;
    ++*(uint64_t *)arg;
}

/* Until each message was read and its buffer is free. Memory of ferry_alloc is lent, other is
 * copied. */
static double lend(state *s, const bench_job *job, uint64_t *data)
{
    uint64_t warm = bench_warmup(job), total = warm + job->count, start = 0, base = s->arrived;
    uint64_t submitted = 0;
    const ferry_track track = {
        .size = sizeof(track), .submitted = on_free, .submitted_arg = &submitted};
    const ferry_message m = {.handler = s->read, .data = data, .size_bytes = job->size_bytes};
    for (uint64_t i = 0; i < total && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        data[i % (job->size_bytes / sizeof *data)] = i;
        check(s->f, ferry_object_send(s->f, s->objects[1], &m, &track));
        bench_until(s, base + i + 1);
        while (submitted <= i)
            check(s->f, ferry_poll(s->f));
    }
    uint64_t end = bench_now();
    check(s->f, ferry_barrier(s->f));
    return (double)(end - start);
}

static double lend_shared(void *context, const bench_job *job)
{
    state *s = context;
    void *data;
    check(s->f, ferry_alloc(s->f, job->size_bytes, &data));
    memset(data, 1, job->size_bytes);
    double ns = lend(s, job, data);
    check(s->f, ferry_free(s->f, data));
    return ns;
}

static double lend_copied(void *context, const bench_job *job)
{
    uint64_t *data = calloc(1, job->size_bytes);
    if (!data)
        exit(1);
    double ns = lend(context, job, data);
    free(data);
    return ns;
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
        check(s->f, ferry_object_create(s->f, s->type, bench_item(64), &all[i]));
        check(s->f, ferry_object_move(s->f, all[i], 2));
    }
    check(s->f, ferry_broadcast(s->f, 1, all, count * sizeof *all));
    check(s->f, ferry_quiesce(s->f));
    return all;
}

static uint64_t forwarded(const state *s)
{
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(s->f, &stats);
    return stats.messages_forwarded;
}

/* Each message takes the way 0 -> 1 -> 2, and a request comes back. */
static double forward(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t warm = bench_warmup(job), total = warm + job->count, start = 0, base = s->arrived;
    uint64_t before = forwarded(s); /* behind the quiescence there may be one already */
    ferry_object *all = moved_objects(s, total);
    for (uint64_t i = 0; i < total && s->rank == 0; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_object_send(s->f, all[i], &(ferry_message){.handler = s->pass}, NULL));
        until_waiting(s, base + i + 1);
    }
    uint64_t end = bench_now();
    check(s->f, ferry_quiesce(s->f));
    if (s->rank == 1 && forwarded(s) - before != total) {
        (void)fprintf(stderr, "forward: %llu of %llu messages were forwarded\n",
                      (unsigned long long)(forwarded(s) - before), (unsigned long long)total);
        exit(1);
    }
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

void bench_objects_messages_register(state *s)
{
    ferry *f = s->f;
    check(f, ferry_object_handler_register(f, "call", on_call, &s->call));
    check(f, ferry_object_handler_register(f, "ping", on_ping, &s->ping));
    check(f, ferry_object_handler_register(f, "read", on_read, &s->read));
    check(f, ferry_object_handler_register(f, "pass", on_pass, &s->pass));
    check(f, ferry_handler_register(f, "pong", on_pong, &s->pong));
    check(f, ferry_handler_register(f, "relay", on_relay, &s->relay));
    check(f, ferry_handler_register(f, "arrival", on_arrival, &s->arrival));
}

void bench_objects_messages(bench_team *team, bool reference)
{
    team->kinds[BENCH_LOCAL] = reference ? call : local;
    team->kinds[BENCH_REMOTE] = reference ? request : remote;
    team->kinds[BENCH_LEND] = reference ? lend_copied : lend_shared;
    team->kinds[BENCH_FORWARD] = reference ? relay : forward;
}
