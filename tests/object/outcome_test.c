/* Goal: whatever operation is tracked and whatever becomes of it, it has exactly one end, of the
 * right sort and for the right reason, after at most one submitted. Method: a table of operations
 * from rank 0 to rank 1 and one of fates, each with each, on a job of two ranks that one thread
 * drives, so that it says who polls when and when allocations fail. Memory of rank 1 that is read
 * and written is registered, outside the shared heap: such operations go by frames. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing.h"
#include "port/shm/layout.h"
#include "ranks.h"

enum { RANKS = 2, LONG_BYTES = 100000, SHORT_BYTES = 40, WORDS = 16, TAG = 5, FAILING_MAX = 64 };

typedef struct scene {
    test_job job;
    ferry_handler note, only_here, memory_note, object_note;
    ferry_object object, destroyed;
    uint64_t theirs[WORDS]; /* registered on rank 1 */
    uint64_t wild[WORDS];   /* nowhere */
    uint64_t mine[WORDS], old;
    void *remote;
    char out[LONG_BYTES], in[LONG_BYTES];
    int counts[4];
    ferry_receipt last;
    bool has_reason;
} scene;

static void see(ferry *f, void *arg, const ferry_receipt *receipt)
{
    scene *s = arg;
    (void)f;
    s->counts[receipt->event]++;
    s->last = *receipt;
    s->has_reason = receipt->reason[0] != '\0';
}

static void note(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

static void memory_note(ferry *f, int peer, void *address, size_t size_bytes, uint64_t argument)
{
    (void)f, (void)peer, (void)address, (void)size_bytes, (void)argument;
}

static void object_note(ferry *f, ferry_object object, void *data, int source,
                        const ferry_message *message)
{
    (void)f, (void)object, (void)data, (void)source, (void)message;
}

static void survive(ferry *f, void *arg, const ferry_peer_event *event)
{
    (void)f, (void)arg, (void)event;
}

static void create(ferry *f, ferry_object_type type, ferry_object *out)
{
    void *data = NULL;
    CHECK(posix_memalign(&data, sizeof(void *), SHORT_BYTES) == 0);
    memset(data, 0, SHORT_BYTES);
    CHECK(ferry_object_create(f, type, data, out) == 0);
}

static void scene_open(scene *s)
{
    static const ferry_object_ops ops = {.size = sizeof(ops), .flat_bytes = SHORT_BYTES};
    ferry_object_type type;
    memset(s, 0, sizeof(*s));
    job_open(&s->job, RANKS, 0, 0);
    for (int i = 0; i < RANKS; i++) {
        ferry *f = s->job.f[i];
        CHECK(ferry_on_peer(f, survive, NULL) == 0);
        CHECK(ferry_handler_register(f, "note", note, &s->note) == 0);
        CHECK(ferry_memory_handler_register(f, "memory", memory_note, &s->memory_note) == 0);
        CHECK(ferry_object_type_register(f, &ops, &type) == 0);
        CHECK(ferry_object_handler_register(f, "object", object_note, &s->object_note) == 0);
    }
    ferry *f = s->job.f[1];
    CHECK(ferry_memory_register(f, s->theirs, sizeof(s->theirs)) == 0);
    create(f, type, &s->object);
    create(f, type, &s->destroyed);
    CHECK(ferry_object_destroy(f, s->destroyed) == 0);
    job_settle(&s->job);
}

/* What rank 0 starts; `wrong`: so that it is refused. */
typedef int start_fn(scene *s, const ferry_track *track, bool wrong);

static ferry_message message_of(scene *s, bool wrong)
{
    if (wrong)
        CHECK(ferry_handler_register(s->job.f[0], "only here", note, &s->only_here) == 0);
    return (ferry_message){
        .handler = wrong ? s->only_here : s->note, .data = s->out, .size_bytes = SHORT_BYTES};
}

static int request(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = message_of(s, wrong);
    return ferry_request_send(s->job.f[0], 1, &m, track);
}

static int broadcast(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = message_of(s, wrong);
    return ferry_request_broadcast(s->job.f[0], &m, track);
}

static uint64_t *there(scene *s, bool wrong)
{
    return wrong ? s->wild : s->theirs;
}

static int put(scene *s, const ferry_track *track, bool wrong)
{
    return ferry_put(s->job.f[0], 1, there(s, wrong), s->mine, SHORT_BYTES, track);
}

static int get(scene *s, const ferry_track *track, bool wrong)
{
    return ferry_get(s->job.f[0], 1, s->mine, there(s, wrong), SHORT_BYTES, track);
}

static int put_vector(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_piece pieces[] = {{s->theirs, s->mine, 8}, {there(s, wrong) + 4, s->mine + 4, 16}};
    return ferry_put_vector(s->job.f[0], 1, pieces, 2, track);
}

static int get_vector(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_piece pieces[] = {{s->mine, s->theirs, 8}, {s->mine + 4, there(s, wrong) + 4, 16}};
    return ferry_get_vector(s->job.f[0], 1, pieces, 2, track);
}

static const ferry_stride stride = {.count = 4, .target_bytes = 16, .source_bytes = 16};

static int put_strided(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_strided what = {there(s, wrong), s->mine, 8, 1, &stride};
    return ferry_put_strided(s->job.f[0], 1, &what, track);
}

static int get_strided(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_strided what = {s->mine, there(s, wrong), 8, 1, &stride};
    return ferry_get_strided(s->job.f[0], 1, &what, track);
}

static int put_run(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_memory_call call = {.handler = s->memory_note};
    const ferry_transfer what = {there(s, wrong), s->mine, SHORT_BYTES, &call, &call};
    return ferry_put_run(s->job.f[0], 1, &what, track);
}

static int get_run(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_memory_call call = {.handler = s->memory_note};
    const ferry_transfer what = {s->mine, there(s, wrong), SHORT_BYTES, &call, &call};
    return ferry_get_run(s->job.f[0], 1, &what, track);
}

static int atomic(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_atomic what = {.verb = FERRY_FETCH_ADD, .target = there(s, wrong), .operand = 1};
    return ferry_atomic_update(s->job.f[0], 1, &what, &s->old, track);
}

static int remote_alloc(scene *s, const ferry_track *track, bool wrong)
{
    size_t size_bytes = wrong ? (size_t)1 << 40 : 64;
    return ferry_remote_alloc(s->job.f[0], 1, size_bytes, &s->remote, track);
}

static int remote_free(scene *s, const ferry_track *track, bool wrong)
{
    void *block = s->wild;
    if (!wrong)
        CHECK(ferry_alloc(s->job.f[1], 64, &block) == 0);
    return ferry_remote_free(s->job.f[0], 1, block, track);
}

static int object_send(scene *s, const ferry_track *track, bool wrong)
{
    const ferry_message m = {.handler = s->object_note, .data = s->out, .size_bytes = SHORT_BYTES};
    return ferry_object_send(s->job.f[0], wrong ? s->destroyed : s->object, &m, track);
}

/* The other side's part, which is not what is looked at. */
static int meet(scene *s, size_t size_bytes, const ferry_track *track, bool wrong)
{
    static const ferry_track nobody = {.size = sizeof(nobody)};
    int error = ferry_receive(s->job.f[1], 0, TAG, s->in, size_bytes - wrong, &nobody);
    return error != 0 ? error : ferry_send(s->job.f[0], 1, TAG, s->out, size_bytes, track);
}

static int send_short(scene *s, const ferry_track *track, bool wrong)
{
    return meet(s, SHORT_BYTES, track, wrong);
}

static int send_long(scene *s, const ferry_track *track, bool wrong)
{
    return meet(s, LONG_BYTES, track, wrong);
}

static int receive(scene *s, size_t size_bytes, const ferry_track *track, bool wrong)
{
    int error = ferry_send(s->job.f[1], 0, TAG, s->out, size_bytes,
                           &(ferry_track){.size = sizeof(ferry_track)});
    return error != 0 ? error
                      : ferry_receive(s->job.f[0], 1, TAG, s->in, size_bytes - wrong, track);
}

static int receive_short(scene *s, const ferry_track *track, bool wrong)
{
    return receive(s, SHORT_BYTES, track, wrong);
}

static int receive_long(scene *s, const ferry_track *track, bool wrong)
{
    return receive(s, LONG_BYTES, track, wrong);
}

static const struct operation {
    const char *name;
    start_fn *start;
    int refusal;
    int rank;       /* of the receipt */
    bool waits;     /* for nothing but what rank 1 has done already: a death does not undo that */
    bool has_local; /* its receipt names memory here */
} operations[] = {
    {"request", request, FERRY_ENOENT, 1, false, true},
    {"broadcast", broadcast, FERRY_ENOENT, -1, false, false},
    {"put", put, FERRY_ERANGE, 1, false, true},
    {"get", get, FERRY_ERANGE, 1, false, true},
    {"put_vector", put_vector, FERRY_ERANGE, 1, false, false},
    {"get_vector", get_vector, FERRY_ERANGE, 1, false, false},
    {"put_strided", put_strided, FERRY_ERANGE, 1, false, false},
    {"get_strided", get_strided, FERRY_ERANGE, 1, false, false},
    {"put_run", put_run, FERRY_ERANGE, 1, false, true},
    {"get_run", get_run, FERRY_ERANGE, 1, false, true},
    {"atomic", atomic, FERRY_ERANGE, 1, false, true},
    {"remote_alloc", remote_alloc, FERRY_ENOMEM, 1, false, true},
    {"remote_free", remote_free, FERRY_EINVAL, 1, true, false},
    {"object_send", object_send, FERRY_ENOENT, 1, false, false},
    {"send_short", send_short, FERRY_ETOOLONG, 1, false, true},
    {"send_long", send_long, FERRY_ETOOLONG, 1, false, true},
    {"receive_short", receive_short, FERRY_ETOOLONG, 1, true, true},
    {"receive_long", receive_long, FERRY_ETOOLONG, 1, false, true},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static ferry_track track_of(scene *s)
{
    return (ferry_track){.size = sizeof(ferry_track),
                         .submitted = see,
                         .submitted_arg = s,
                         .completed = see,
                         .completed_arg = s,
                         .failed = see,
                         .failed_arg = s};
}

static int ends(const scene *s)
{
    return s->counts[FERRY_COMPLETED] + s->counts[FERRY_TIMED_OUT] + s->counts[FERRY_FAILED];
}

/* Nothing more comes, whatever happens now; then the job goes. */
static void expect(scene *s, const struct operation *o, const char *fate, ferry_event event,
                   int error)
{
    job_settle(&s->job);
    bool right = ends(s) == 1 && s->counts[event] == 1 && s->last.error == error &&
                 s->counts[FERRY_SUBMITTED] <= 1 && s->has_reason == (error != 0);
    if (!right)
        fprintf(stderr,
                "%s, %s: %d submitted, %d completed, %d timed out, %d failed; error %d, not %d\n",
                o->name, fate, s->counts[0], s->counts[1], s->counts[2], s->counts[3],
                s->last.error, error);
    bool told = s->last.local_rank == 0 && (o->rank < 0 || s->last.rank == o->rank) &&
                (!o->has_local || s->last.local_address != NULL);
    if (!told)
        fprintf(stderr, "%s, %s: the receipt names ranks %d and %d and %p\n", o->name, fate,
                s->last.local_rank, s->last.rank, s->last.local_address);
    CHECK(right && told);
    job_close(&s->job);
}

static void start(scene *s, const struct operation *o, const ferry_track *track, bool wrong)
{
    scene_open(s);
    CHECK(o->start(s, track, wrong) == 0);
    CHECK(ends(s) == 0 && s->counts[FERRY_SUBMITTED] == 0);
}

static scene s;

static void test_outcome_completed(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        const ferry_track track = track_of(&s);
        start(&s, o, &track, false);
        expect(&s, o, "completes", FERRY_COMPLETED, 0);
    }
}

/* An operation of which only its target knows when it arrives completes as always with `arrival`;
 * so does a message to an object. */
static void test_outcome_completed_on_arrival(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        ferry_track track = track_of(&s);
        track.arrival = true;
        start(&s, o, &track, false);
        expect(&s, o, "completes on arrival", FERRY_COMPLETED, 0);
    }
}

/* Some refusals are lines on standard error too. */
static int silence(void)
{
    int saved = dup(2), null = open("/dev/null", O_WRONLY);
    CHECK(saved >= 0 && dup2(null, 2) == 2);
    close(null);
    return saved;
}

static void speak(int saved)
{
    CHECK(dup2(saved, 2) == 2);
    close(saved);
}

static void test_outcome_refused(void **state)
{
    (void)state;
    int saved = silence();
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        const ferry_track track = track_of(&s);
        scene_open(&s);
        CHECK(o->start(&s, &track, true) == 0);
        expect(&s, o, "is refused", FERRY_FAILED, o->refusal);
    }
    speak(saved);
}

/* Marks rank 1 dead, and lets rank 0 see it. */
static void kill_target(void)
{
    fy_controls_mark(s.job.segment->base, RANKS, 1, SHM_DEAD);
    for (int i = 0; i < 6; i++)
        fy_progress(s.job.f[0], true);
}

static void test_outcome_peer_dies(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        const ferry_track track = track_of(&s);
        start(&s, o, &track, false);
        kill_target();
        if (o->waits)
            expect(&s, o, "loses its peer", FERRY_COMPLETED, 0);
        else
            expect(&s, o, "loses its peer", FERRY_FAILED, FERRY_EPEER);
    }
}

static void test_outcome_peer_is_dead(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        const ferry_track track = track_of(&s);
        if (o->start == broadcast || o->start == receive_short || o->start == receive_long ||
            o->start == send_short || o->start == send_long || o->start == remote_free)
            continue; /* goes to whoever is left, or begins on the dead rank here */
        scene_open(&s);
        kill_target();
        int error = o->start(&s, &track, false);
        CHECK(error == FERRY_EPEER || error == 0);
        for (int i = 0; i < 6; i++)
            fy_progress(s.job.f[0], true);
        CHECK(ends(&s) == (error == 0) && s.counts[FERRY_COMPLETED] == 0);
        CHECK(error != 0 || s.last.error == FERRY_EPEER || s.last.error == FERRY_ENOENT);
        job_close(&s.job);
    }
}

static void test_outcome_shut_down(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        const ferry_track track = track_of(&s);
        start(&s, o, &track, false);
        if (o->waits)
            expect(&s, o, "is here already", FERRY_COMPLETED, 0);
        else {
            fy_ops_cancel(s.job.f[0]);
            expect(&s, o, "is shut down", FERRY_FAILED, FERRY_ECANCELED);
        }
    }
}

static void test_outcome_cancelled(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        ferry_op op;
        ferry_track track = track_of(&s);
        track.op = &op;
        start(&s, o, &track, false);
        CHECK(ferry_op_cancel(s.job.f[0], &op) == 0 && op.word == 0);
        if (o->start == remote_free) /* done on the spot, in the shared heap */
            expect(&s, o, "has ended already", FERRY_COMPLETED, 0);
        else
            expect(&s, o, "is cancelled", FERRY_FAILED, FERRY_ECANCELED);
    }
}

static void test_outcome_timed_out(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        ferry_track track = track_of(&s);
        track.timed_out = see;
        track.timed_out_arg = &s;
        /* What is here already completes in the first poll, however late that is. */
        track.timeout_ns = o->waits ? UINT64_C(3600000000000) : 1000;
        start(&s, o, &track, false);
        while (ends(&s) == 0)
            fy_progress(s.job.f[0], true);
        if (o->waits)
            expect(&s, o, "is here already", FERRY_COMPLETED, 0);
        else
            expect(&s, o, "times out", FERRY_TIMED_OUT, FERRY_ETIMEDOUT);
    }
}

/* The first, second, ... allocation of the call and of what follows fails once: the call fails and
 * nothing is reported, or there is one end. */
static void test_outcome_no_memory_here(void **state)
{
    (void)state;
    for (const struct operation *o = operations; o < operations + OPERATIONS; o++) {
        bool reached = true;
        for (long failing = 0; reached && failing < FAILING_MAX; failing++) {
            const ferry_track track = track_of(&s);
            scene_open(&s);
            failing_set(failing);
            int error = o->start(&s, &track, false);
            job_settle(&s.job);
            reached = failing_reached();
            failing_set(-1);
            job_settle(&s.job);
            CHECK(error == 0 || error == FERRY_ENOMEM);
            CHECK(ends(&s) == (error == 0) && s.counts[FERRY_SUBMITTED] <= 1);
            CHECK(error != 0 || s.last.error == 0 || s.last.error == FERRY_ENOMEM);
            CHECK(s.job.f[0]->ops_table.pending == 0);
            job_close(&s.job);
        }
        CHECK(!reached);
    }
}

/* Rank 1 polls without memory, for the operation's end among others, then with. */
static void starve_target(void)
{
    void *free_packets = s.job.f[1]->packets.free_items;
    s.job.f[1]->packets.free_items = NULL;
    failing_all(true);
    for (int i = 0; i < 4; i++)
        fy_progress(s.job.f[1], true);
    failing_all(false);
    s.job.f[1]->packets.free_items = free_packets;
    job_settle(&s.job);
}

static void test_outcome_no_memory_there(void **state)
{
    (void)state;
    int saved = silence();
    for (int i = 0; i < 2 * OPERATIONS; i++) {
        const struct operation *o = &operations[i / 2];
        const ferry_track track = track_of(&s);
        bool wrong = i % 2 == 1;
        scene_open(&s);
        CHECK(o->start(&s, &track, wrong) == 0);
        starve_target();
        int error = s.last.error == FERRY_ENOMEM ? FERRY_ENOMEM : wrong ? o->refusal : 0;
        expect(&s, o, "waits for memory", error == 0 ? FERRY_COMPLETED : FERRY_FAILED, error);
    }
    speak(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcome_completed),
        cmocka_unit_test(test_outcome_completed_on_arrival),
        cmocka_unit_test(test_outcome_refused),
        cmocka_unit_test(test_outcome_peer_dies),
        cmocka_unit_test(test_outcome_peer_is_dead),
        cmocka_unit_test(test_outcome_shut_down),
        cmocka_unit_test(test_outcome_cancelled),
        cmocka_unit_test(test_outcome_timed_out),
        cmocka_unit_test(test_outcome_no_memory_here),
        cmocka_unit_test(test_outcome_no_memory_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
