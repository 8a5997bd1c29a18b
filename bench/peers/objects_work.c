/* The work of messages and migrations alone: three ranks of a job of its own, which one thread
 * polls in turn. Nobody waits and no cache line travels between processors, so that the hand-off,
 * which on two processors is most of the time, hides nothing.
 *
 *   remote    round trips between objects of ranks 0 and 1; requests of the same size
 *   forward   a message from rank 0 by rank 1 to rank 2, and a request back; requests
 *   migrate   an object that takes its next message along; pack, request, unpack
 *   hand      likewise, by its address; a round trip of requests of 8 bytes */
#include <stdlib.h>
#include <unistd.h>

#include "core/options.h"
#include "core/rank.h"
#include "peers/objects_side.h"
#include "port/shm/shm.h"

enum { RANKS = 3 };

typedef struct work {
    state ranks[RANKS];
    fy_segment *segment;
} work;

static void require(int error)
{
    if (error != 0)
        exit(1);
}

static void open_rank(work *w, int rank, const ferry_options *options)
{
    state *s = &w->ranks[rank];
    fy_port *port;
    require(fy_shm_join(w->segment, rank, &port));
    require(fy_rank_create(port, options, &s->f));
    s->rank = rank;
    ferry_user_data_set(s->f, s);
    bench_objects_register(s);
    check(s->f, ferry_object_create(s->f, s->type, bench_item(sizeof(uint64_t)), &s->own));
}

/* Polls all ranks but the one that waits, then that one, until it has seen so many arrivals. */
static void drive(work *w, int ranks, int waiting, uint64_t arrived)
{
    while (w->ranks[waiting].arrived < arrived)
        for (int i = 1; i <= ranks; i++)
            check(w->ranks[0].f, ferry_poll(w->ranks[(waiting + i) % ranks].f));
}

/* Until none of them has anything left to do. */
static void settle(work *w)
{
    for (int quiet = 0; quiet < 2;) {
        int count = 0;
        for (int rank = 0; rank < RANKS; rank++)
            count += fy_progress(w->ranks[rank].f, true);
        quiet = count == 0 ? quiet + 1 : 0;
    }
}

static work *work_of(state *s)
{
    if (s->work)
        return s->work;
    work *w = calloc(1, sizeof *w);
    ferry_options options;
    int fd;
    require(w == NULL);
    require(fy_options_read(NULL, &options));
    const fy_shm_options shm = {.ranks = RANKS,
                                .heap_bytes = (size_t)1 << 30,
                                .ring_slots = options.ring_slots,
                                .ring_bytes = options.ring_bytes};
    require(fy_segment_create(&shm, &fd));
    require(fy_segment_map(fd, &w->segment));
    close(fd);
    for (int rank = 0; rank < RANKS; rank++)
        open_rank(w, rank, &options);
    for (int rank = 0; rank < RANKS; rank++)
        for (int other = 0; other < 2; other++)
            w->ranks[rank].objects[other] = w->ranks[other].own;
    settle(w);
    return s->work = w;
}

void bench_objects_work_end(state *s)
{
    work *w = s->work;
    if (w == NULL)
        return;
    for (int rank = 0; rank < RANKS; rank++)
        fy_rank_destroy(w->ranks[rank].f);
    fy_segment_unmap(w->segment);
    free(w);
    s->work = NULL;
}

static double round_trips(work *w, const bench_job *job, bool objects)
{
    state *s = &w->ranks[0];
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    ferry_message m = bench_message(s, objects ? s->ping : s->pong, job->size_bytes);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, objects ? ferry_object_send(s->f, s->objects[1], &m, NULL)
                            : ferry_request_send(s->f, 1, &m, NULL));
        drive(w, 2, 0, base + i + 1);
    }
    return (double)(bench_now() - start);
}

static double remote(void *context, const bench_job *job)
{
    return round_trips(work_of(context), job, true);
}

static double request(void *context, const bench_job *job)
{
    return round_trips(work_of(context), job, false);
}

/* As many objects of rank 1 as there will be messages, on rank 2: of each rank 0 has heard
 * nothing. */
static ferry_object *moved_objects(work *w, uint64_t count)
{
    ferry *creator = w->ranks[1].f;
    ferry_object *all = calloc(count, sizeof *all);
    require(all == NULL);
    for (uint64_t i = 0; i < count; i++) {
        check(creator, ferry_object_create(creator, w->ranks[1].type, bench_item(sizeof(uint64_t)),
                                           &all[i]));
        check(creator, ferry_object_move(creator, all[i], 2));
        check(creator, ferry_poll(w->ranks[2].f));
    }
    settle(w);
    return all;
}

static double forward(void *context, const bench_job *job)
{
    work *w = work_of(context);
    state *s = &w->ranks[0];
    uint64_t warm = bench_warmup(job), total = warm + job->count, start = 0, base = s->arrived;
    const ferry_message m = {.handler = s->pass};
    ferry_object *all = moved_objects(w, total);
    for (uint64_t i = 0; i < total; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_object_send(s->f, all[i], &m, NULL));
        drive(w, RANKS, 0, base + i + 1);
    }
    uint64_t end = bench_now();
    settle(w);
    for (uint64_t i = 0; i < total; i++) {
        check(s->f, ferry_object_destroy(w->ranks[2].f, all[i]));
        check(s->f, ferry_poll(w->ranks[1].f));
    }
    settle(w);
    free(all);
    return (double)(end - start);
}

static double relay(void *context, const bench_job *job)
{
    work *w = work_of(context);
    state *s = &w->ranks[0];
    uint64_t warm = bench_warmup(job), start = 0, base = s->arrived;
    const ferry_message m = {.handler = s->relay};
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        check(s->f, ferry_request_send(s->f, 1, &m, NULL));
        drive(w, RANKS, 0, base + i + 1);
    }
    return (double)(bench_now() - start);
}

/* An even number of migrations, from rank 0 and back. */
static void travel(work *w, ferry_object object, uint64_t count)
{
    state *s = &w->ranks[0];
    const ferry_message go = {.handler = s->go, .word_count = 1, .words = {2 * count}};
    check(s->f, ferry_object_send(s->f, object, &go, NULL));
    drive(w, 2, 0, s->arrived + count + 1);
}

static double make_travel(work *w, const bench_job *job, ferry_object_type type, item *cargo)
{
    ferry *f = w->ranks[0].f;
    ferry_object object;
    check(f, ferry_object_create(f, type, cargo, &object));
    travel(w, object, bench_warmup(job));
    uint64_t start = bench_now();
    travel(w, object, job->count);
    uint64_t end = bench_now();
    check(f, ferry_object_destroy(f, object));
    settle(w);
    return (double)(end - start);
}

static double migrate(void *context, const bench_job *job)
{
    work *w = work_of(context);
    return make_travel(w, job, w->ranks[0].type, bench_item(job->size_bytes));
}

static double hand_over(void *context, const bench_job *job)
{
    work *w = work_of(context);
    return make_travel(w, job, w->ranks[0].shared_type,
                       bench_shared_item(w->ranks[0].f, job->size_bytes));
}

static double carry(void *context, const bench_job *job)
{
    work *w = work_of(context);
    state *s = &w->ranks[0];
    uint64_t warm = bench_warmup(job), start = 0;
    for (int rank = 0; rank < 2; rank++)
        require((w->ranks[rank].packed = malloc(sizeof(item) + job->size_bytes)) == NULL);
    s->cargo = bench_item(job->size_bytes);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t count = pass ? job->count : warm;
        start = bench_now();
        bench_carry_on(s, 2 * count - 1);
        drive(w, 2, 0, s->arrived + count);
    }
    uint64_t end = bench_now();
    for (int rank = 0; rank < 2; rank++) {
        free(w->ranks[rank].packed);
        w->ranks[rank].packed = NULL;
    }
    free(s->cargo);
    s->cargo = NULL;
    return (double)(end - start);
}

static double tell(void *context, const bench_job *job)
{
    bench_job small = *job;
    small.size_bytes = 8;
    return round_trips(work_of(context), &small, false);
}

void bench_objects_work(bench_team *team, bool reference)
{
    team->kinds[BENCH_WORK_REMOTE] = reference ? request : remote;
    team->kinds[BENCH_WORK_FORWARD] = reference ? relay : forward;
    team->kinds[BENCH_WORK_MIGRATE] = reference ? carry : migrate;
    team->kinds[BENCH_WORK_HAND_OVER] = reference ? tell : hand_over;
}
