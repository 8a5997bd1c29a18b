/* Goal: whatever operation is tracked and whatever becomes of it, it has exactly one end, of the
 * right kind and for the right reason, after at most one submitted. Method: a table of operations
 * from rank 0 to rank 1 (outcome.c) and the outcomes below, each with each. One thread drives both
 * ranks of the job, so it says who polls when and when allocations fail. Memory of rank 1 that is
 * read and written is registered, outside the shared heap: such operations go by frames. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/op.h"
#include "failing.h"
#include "object/object.h"
#include "outcome.h"
#include "port/shm/layout.h"

enum { FAILING_MAX = 128 };

/* The callbacks of the operation have seen this. */
static struct {
    int counts[FERRY_FAILED + 1];
    ferry_receipt last;
    bool has_reason;
    int ended_in_handler; /* ends that rank 0 has when a handler runs, over all handlers */
} seen;

static scene s;

static void see(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)arg;
    seen.counts[receipt->event]++;
    seen.last = *receipt;
    seen.has_reason = receipt->reason[0] != '\0';
}

static const ferry_track watched = {
    .size = sizeof(watched), .submitted = see, .completed = see, .failed = see};

/* Some refusals and failures are lines on standard error too; what the test says is not lost. */
static int saved = -1;

static void silence(void)
{
    int null = open("/dev/null", O_WRONLY);
    saved = dup(2);
    CHECK(saved >= 0 && dup2(null, 2) == 2);
    close(null);
}

static void speak(void)
{
    if (saved < 0)
        return;
    CHECK(dup2(saved, 2) == 2);
    close(saved);
    saved = -1;
}

static int ends(void)
{
    return seen.counts[FERRY_COMPLETED] + seen.counts[FERRY_TIMED_OUT] + seen.counts[FERRY_FAILED];
}

static void prepare(const operation *o, uint32_t ring_slots)
{
    scene_open(&s, ring_slots);
    memset(&seen, 0, sizeof(seen));
    if (o->prepare != NULL)
        o->prepare(&s);
}

static void start(const operation *o, const ferry_track *track)
{
    prepare(o, 0);
    CHECK(o->start(&s, track, false) == 0);
    CHECK(ends() == 0 && seen.counts[FERRY_SUBMITTED] == 0);
}

static void take_part(const operation *o)
{
    if (o->take_part != NULL)
        o->take_part(&s);
}

/* Nothing more comes, whatever happens now; then the job goes. */
static void expect(const operation *o, const char *ending, ferry_event event, int error)
{
    job_settle(&s.job);
    bool right = ends() == 1 && seen.counts[event] == 1 && seen.last.error == error &&
                 seen.counts[FERRY_SUBMITTED] <= o->sends && seen.has_reason == (error != 0) &&
                 (event != FERRY_COMPLETED || seen.counts[FERRY_SUBMITTED] == o->sends);
    if (!right)
        speak();
    if (!right)
        fprintf(stderr,
                "%s, %s: %d submitted, %d completed, %d timed out, %d failed; error %d, not %d\n",
                o->name, ending, seen.counts[0], seen.counts[1], seen.counts[2], seen.counts[3],
                seen.last.error, error);
    bool told = seen.last.local_rank == 0 && (o->rank < 0 || seen.last.rank == o->rank) &&
                (!o->has_local || seen.last.local_address != NULL) &&
                seen.last.remote_address == (uintptr_t)s.far;
    if (!told)
        fprintf(stderr, "%s, %s: the receipt names ranks %d and %d, %p here and 0x%llx there\n",
                o->name, ending, seen.last.local_rank, seen.last.rank, seen.last.local_address,
                (unsigned long long)seen.last.remote_address);
    CHECK(right && told && s.job.f[0]->ops_table.pending == 0);
    job_close(&s.job);
}

static void test_outcome_completed(void **state)
{
    (void)state;
    for (const operation *o = operations; o < operations + operation_count; o++) {
        start(o, &watched);
        take_part(o);
        expect(o, "completes", FERRY_COMPLETED, 0);
    }
}

static void look_for_end(void)
{
    while (fy_progress(s.job.f[0], true) > 0)
        continue;
    seen.ended_in_handler += ends();
}

/* With `arrival` requests and messages to objects have completed when their handler runs, without
 * it they have not; other operations complete as always. */
static void test_outcome_completed_on_arrival(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * operation_count; i++) {
        const operation *o = &operations[i / 2];
        ferry_track track = watched;
        track.arrival = i % 2 != 0;
        start(o, &track);
        s.in_handler = look_for_end;
        take_part(o);
        job_settle(&s.job);
        if (seen.ended_in_handler != (o->arrives && track.arrival))
            fprintf(stderr, "%s: %d ends in its handler\n", o->name, seen.ended_in_handler);
        CHECK(seen.ended_in_handler == (o->arrives && track.arrival));
        expect(o, "completes on arrival", FERRY_COMPLETED, 0);
    }
}

static void look_and_destroy(void)
{
    look_for_end();
    CHECK(ferry_object_destroy(s.job.f[1], s.object) == 0);
}

/* A message that has to wait after another one has arrived as well. Its later outcome is not
 * reported: the handler of the other message destroys the object. */
static void test_outcome_arrives_after_others(void **state)
{
    enum { MESSAGES = 5 };
    (void)state;
    scene_open(&s, 0);
    memset(&seen, 0, sizeof(seen));
    ferry *f = s.job.f[1];
    const ferry_message m = {.handler = s.object_note};
    ferry_track track = watched;
    track.arrival = true;
    CHECK(ferry_object_send(f, s.object, &m, NULL) == 0);
    for (int i = 0; i < MESSAGES; i++)
        CHECK(ferry_object_send(s.job.f[0], s.object, &m, &track) == 0);
    s.in_handler = look_and_destroy;
    silence();
    while (seen.ended_in_handler == 0)
        fy_progress(f, true);
    CHECK(seen.ended_in_handler == MESSAGES);
    job_settle(&s.job);
    speak();
    CHECK(seen.ended_in_handler == MESSAGES && seen.counts[FERRY_COMPLETED] == MESSAGES);
    CHECK(ends() == MESSAGES);
    job_close(&s.job);
}

/* Marks rank 1 dead, and lets rank 0 see it. */
static void kill_target(void)
{
    fy_controls_mark(s.job.segment->base, RANKS, 1, SHM_DEAD);
    s.dead = true;
    while (fy_progress(s.job.f[0], true) > 0 || !ferry_peer_is_gone(s.job.f[0], 1))
        continue;
}

/* The synchronous form returns what a track would be told. Rank 1 has a thread of its own. */
typedef struct player {
    bool dies;         /* as soon as something has come for it */
    atomic_bool ended; /* the call has returned */
    pthread_t thread;
} player;

static void *play(void *arg)
{
    player *p = arg;
    ferry *f = s.job.f[1];
    while (p->dies && !f->head.ops->transport.pending(f->head.port, FY_DATA))
        continue;
    if (p->dies)
        fy_controls_mark(s.job.segment->base, RANKS, 1, SHM_DEAD);
    while (!p->dies && !atomic_load(&p->ended))
        fy_progress(f, true);
    return NULL;
}

static void ignore(ferry *f, int source, const ferry_message *message)
{
    (void)f, (void)source, (void)message;
}

static int call(bool dies, bool wrong)
{
    player p = {.dies = dies};
    ferry_message m = {.handler = s.note};
    if (wrong)
        CHECK(ferry_handler_register(s.job.f[0], "only here", ignore, &m.handler) == 0);
    CHECK(pthread_create(&p.thread, NULL, play, &p) == 0);
    int error = ferry_request_sync(s.job.f[0], 1, &m);
    atomic_store(&p.ended, true);
    CHECK(pthread_join(p.thread, NULL) == 0);
    CHECK(s.job.f[0]->ops_table.pending == 0);
    return error;
}

static void test_outcome_of_the_synchronous_form(void **state)
{
    enum { CALL_COMPLETES, CALL_REFUSED, CALL_LOSES_PEER, CALL_TO_DEAD, CALL_NO_MEMORY, CALLS };
    static const int errors[CALLS] = {0, FERRY_ENOENT, FERRY_EPEER, FERRY_EPEER, FERRY_ENOMEM};
    (void)state;
    for (int i = 0; i < CALLS; i++) {
        const ferry_message m = {.handler = s.note};
        scene_open(&s, 0);
        if (i == CALL_TO_DEAD)
            kill_target();
        failing_all(i == CALL_NO_MEMORY);
        silence();
        int error = i >= CALL_TO_DEAD ? ferry_request_sync(s.job.f[0], 1, &m)
                                      : call(i == CALL_LOSES_PEER, i == CALL_REFUSED);
        speak();
        failing_all(false);
        CHECK(error == errors[i] && s.job.f[0]->ops_table.pending == 0);
        job_close(&s.job);
    }
}

static void test_outcome_refused(void **state)
{
    (void)state;
    silence();
    for (const operation *o = operations; o < operations + operation_count; o++) {
        prepare(o, 0);
        int error = o->start(&s, &watched, true);
        if (o->refusal != 0) {
            CHECK(error == 0);
            expect(o, "is refused", FERRY_FAILED, o->refusal);
            continue;
        }
        CHECK(error == FERRY_EINVAL || error == FERRY_ESTATE);
        job_settle(&s.job);
        CHECK(ends() == 0 && seen.counts[FERRY_SUBMITTED] == 0);
        job_close(&s.job);
    }
    speak();
}

static void test_outcome_peer_dies(void **state)
{
    (void)state;
    for (const operation *o = operations; o < operations + operation_count; o++) {
        start(o, &watched);
        kill_target();
        if (o->waits)
            expect(o, "loses its peer", FERRY_COMPLETED, 0);
        else
            expect(o, "loses its peer", FERRY_FAILED, FERRY_EPEER);
    }
}

/* An operation for a rank that is dead already fails immediately or by its track, unless it asks
 * nothing of that rank. */
static void test_outcome_peer_is_dead(void **state)
{
    (void)state;
    for (const operation *o = operations; o < operations + operation_count; o++) {
        prepare(o, 0);
        kill_target();
        int error = o->start(&s, &watched, false);
        while (fy_progress(s.job.f[0], true) > 0)
            continue;
        bool right = ends() == (error == 0) && seen.counts[FERRY_SUBMITTED] <= 1;
        if (o->to_the_living || o->at_once || s.stayed) /* with its object, here */
            right = right && seen.counts[FERRY_COMPLETED] == 1;
        else
            right = right &&
                    (error == FERRY_EPEER || (error == 0 && (seen.last.error == FERRY_EPEER ||
                                                             seen.last.error == FERRY_ENOENT)));
        if (!right)
            fprintf(stderr, "%s, to the dead: call %d, end %d, %d ends\n", o->name, error,
                    seen.last.error, ends());
        CHECK(right && s.job.f[0]->ops_table.pending == 0);
        job_close(&s.job);
    }
}

static void test_outcome_shut_down(void **state)
{
    (void)state;
    for (const operation *o = operations; o < operations + operation_count; o++) {
        start(o, &watched);
        if (o->waits)
            expect(o, "is here already", FERRY_COMPLETED, 0);
        else {
            fy_ops_cancel(s.job.f[0]);
            expect(o, "is shut down", FERRY_FAILED, FERRY_ECANCELED);
        }
    }
}

/* An event that comes after the end reaches nobody. */
static void test_outcome_cancelled(void **state)
{
    (void)state;
    for (const operation *o = operations; o < operations + operation_count; o++) {
        ferry_op op;
        ferry_track track = watched;
        track.op = &op;
        start(o, &track);
        CHECK(ferry_op_cancel(s.job.f[0], &op) == 0 && op.word == 0);
        take_part(o);
        if (o->at_once)
            expect(o, "has ended already", FERRY_COMPLETED, 0);
        else
            expect(o, "is cancelled", FERRY_FAILED, FERRY_ECANCELED);
    }
}

static void test_outcome_timed_out(void **state)
{
    (void)state;
    for (const operation *o = operations; o < operations + operation_count; o++) {
        ferry_track track = watched;
        track.timed_out = see;
        /* An operation whose message is here already completes in the first poll, however late that
         * is. */
        track.timeout_ns = o->waits ? UINT64_C(3600000000000) : 1000;
        start(o, &track);
        while (ends() == 0)
            fy_progress(s.job.f[0], true);
        take_part(o);
        if (o->waits)
            expect(o, "is here already", FERRY_COMPLETED, 0);
        else
            expect(o, "times out", FERRY_TIMED_OUT, FERRY_ETIMEDOUT);
    }
}

/* The first, second, ... allocation of the call and of what follows fails once: the call fails and
 * nothing is reported, or there is one end. */
static void test_outcome_no_memory_once(void **state)
{
    (void)state;
    silence();
    for (const operation *o = operations; o < operations + operation_count; o++) {
        bool reached = true;
        for (long failing = 0; reached && failing < FAILING_MAX; failing++) {
            prepare(o, 0);
            failing_set(failing);
            int error = o->start(&s, &watched, false);
            job_settle(&s.job);
            reached = failing_reached();
            failing_set(-1);
            if (error == 0)
                take_part(o);
            job_settle(&s.job);
            bool right = (error == 0 || error == FERRY_ENOMEM) && ends() == (error == 0) &&
                         seen.counts[FERRY_SUBMITTED] <= 1 &&
                         (error != 0 || seen.last.error == 0 || seen.last.error == FERRY_ENOMEM);
            if (!right)
                speak();
            if (!right)
                fprintf(stderr, "%s, allocation %ld fails: call %d, end %d, %d ends\n", o->name,
                        failing, error, seen.last.error, ends());
            CHECK(right && s.job.f[0]->ops_table.pending == 0);
            job_close(&s.job);
        }
        CHECK(!reached);
    }
    speak();
}

/* Rank `rank` polls without any memory, then with. */
static void starve(int rank)
{
    ferry *f = s.job.f[rank];
    void *free_packets = f->packets.free_items;
    f->packets.free_items = NULL;
    failing_all(true);
    for (int i = 0; i < 4; i++)
        fy_progress(f, true);
    failing_all(false);
    f->packets.free_items = free_packets;
    job_settle(&s.job);
}

/* Both ends of what goes on lack memory in turn, after the start or after rank 1's part in it. */
static void test_outcome_no_memory_for_long(void **state)
{
    enum { WRONG = 1, HERE = 2, LATER = 4, WAYS = 8 };
    (void)state;
    silence();
    for (int i = 0; i < WAYS * operation_count; i++) {
        const operation *o = &operations[i / WAYS];
        bool wrong = (i & WRONG) != 0, later = (i & LATER) != 0;
        if (wrong && o->refusal == 0)
            continue;
        prepare(o, 0);
        CHECK(o->start(&s, &watched, wrong) == 0);
        if (later)
            fy_progress(s.job.f[1], true);
        if (later && !wrong)
            take_part(o);
        starve((i & HERE) != 0 ? 0 : 1);
        if (!later && !wrong)
            take_part(o);
        job_settle(&s.job);
        int error = seen.last.error == FERRY_ENOMEM ? FERRY_ENOMEM : wrong ? o->refusal : 0;
        expect(o, "waits for memory", error == 0 ? FERRY_COMPLETED : FERRY_FAILED, error);
    }
    speak();
}

/* Handlers use up the room towards rank 0 and then all memory: the end of their operation does not
 * get lost for it. */
static void test_outcome_handlers_take_all_memory(void **state)
{
    enum { SLOTS = 16, REPLIES = 100 };
    (void)state;
    silence();
    for (const operation *o = operations; o < operations + operation_count; o++) {
        prepare(o, SLOTS);
        CHECK(o->start(&s, &watched, false) == 0);
        take_part(o);
        s.replies = REPLIES;
        for (int i = 0; i < 4; i++)
            fy_progress(s.job.f[1], true);
        s.replies = 0;
        failing_all(false);
        int error = seen.last.error;
        expect(o, "outlives its handler", error == 0 ? FERRY_COMPLETED : FERRY_FAILED, error);
    }
    speak();
}

/* A collective that one rank gives up fails on the others, who would wait forever. */
static void test_outcome_collective_fails_for_all(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const ferry_collective barrier = {.size = sizeof(barrier), .kind = FERRY_BARRIER};
        ferry_op mine, theirs;
        const ferry_track timed = {.size = sizeof(timed), .op = &mine, .timeout_ns = i == 0};
        const ferry_track other = {.size = sizeof(other), .op = &theirs};
        scene_open(&s, 0);
        ferry *f = s.job.f[0];
        CHECK(ferry_collective_start(f, &barrier, &timed) == 0);
        if (i == 0)
            CHECK(ferry_op_wait(f, &mine) == FERRY_ETIMEDOUT);
        else
            CHECK(ferry_op_cancel(f, &mine) == 0);
        CHECK(ferry_collective_start(s.job.f[1], &barrier, &other) == 0);
        job_settle(&s.job);
        CHECK(ferry_op_test(s.job.f[1], &theirs) == FERRY_ECANCELED);
        /* The next one is in step. */
        CHECK(ferry_collective_start(f, &barrier, &timed) == 0 || i == 0);
        CHECK(ferry_collective_start(s.job.f[1], &barrier, &other) == 0);
        job_settle(&s.job);
        CHECK(ferry_op_test(s.job.f[1], &theirs) == 0 || i == 0);
        job_close(&s.job);
    }
}

static void destroy_object(void)
{
    CHECK(ferry_object_destroy(s.job.f[1], s.object) == 0);
}

/* An object is destroyed with messages of which there is no memory to tell. */
static void test_outcome_destroyed_without_memory(void **state)
{
    enum { SLOTS = 16, MESSAGES = 12, REPLIES = 100 };
    (void)state;
    scene_open(&s, SLOTS);
    memset(&seen, 0, sizeof(seen));
    ferry *f = s.job.f[1];
    const ferry_message m = {.handler = s.object_note};
    CHECK(ferry_object_send(f, s.object, &m, NULL) == 0); /* the others wait behind this */
    for (int i = 0; i < MESSAGES; i++)
        CHECK(ferry_object_send(s.job.f[0], s.object, &m, &watched) == 0);
    s.in_handler = destroy_object;
    s.replies = REPLIES;
    silence();
    while (ferry_object_count(f) != 0)
        fy_progress(f, true);
    speak();
    CHECK(fy_objects_of(f)->failed.count == MESSAGES);
    failing_all(false);
    job_settle(&s.job);
    CHECK(ends() == MESSAGES && seen.counts[FERRY_FAILED] == MESSAGES);
    CHECK(seen.last.error == FERRY_ENOENT);
    job_close(&s.job);
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
        cmocka_unit_test(test_outcome_no_memory_once),
        cmocka_unit_test(test_outcome_no_memory_for_long),
        cmocka_unit_test(test_outcome_handlers_take_all_memory),
        cmocka_unit_test(test_outcome_arrives_after_others),
        cmocka_unit_test(test_outcome_of_the_synchronous_form),
        cmocka_unit_test(test_outcome_collective_fails_for_all),
        cmocka_unit_test(test_outcome_destroyed_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
