/* Measures the parameters of `ferry model` besides those of the network, on two ranks. Each is the
 * median of many samples. docs/model.md says how each is measured. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/calibrate.h"
#include "port/port.h"

enum {
    SAMPLES = 400,
    QUICK_SAMPLES = 50,
    POLLS = 64, /* per sample */
    OBJECTS = 64,
    BUSY_MS = 400,
    QUICK_BUSY_MS = 100,
};

typedef struct samples {
    uint64_t ns[SAMPLES];
    int count;
} samples;

typedef struct costs {
    ferry *f;
    int wanted; /* samples of each kind */
    int busy_ms;
    ferry_handler carry, run, busy;
    ferry_object_type type;
    samples unpack, install, decide, answer;
    uint64_t carried; /* how many objects have come */
    uint64_t ran_ns;  /* when the last empty task of this round ran; 0: none has run */
} costs;

static void costs_keep(samples *s, int wanted, uint64_t ns)
{
    if (s->count < wanted)
        s->ns[s->count++] = ns;
}

static int costs_compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

uint64_t calibrate_median(uint64_t *values, int count)
{
    if (count == 0)
        return 1;
    qsort(values, (size_t)count, sizeof *values, costs_compare);
    uint64_t middle = values[count / 2];
    return middle > 0 ? middle : 1;
}

static void on_run(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    costs *c = ferry_user_data(f);
    (void)object;
    (void)data;
    (void)source;
    (void)message;
    uint64_t now_ns = ferry_now(f);
    if (c->ran_ns != 0)
        costs_keep(&c->decide, c->wanted, now_ns - c->ran_ns);
    c->ran_ns = now_ns;
}

/* A long task. While it sleeps, only the helper of its rank can answer. */
static void on_busy(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    const costs *c = ferry_user_data(f);
    struct timespec rest = {.tv_sec = c->busy_ms / 1000,
                            .tv_nsec = (long)(c->busy_ms % 1000) * 1000000};
    (void)object;
    (void)data;
    (void)source;
    (void)message;
    while (nanosleep(&rest, &rest) != 0)
        continue;
}

/* An object has come: its data, then the bytes that ferry_object_install needs. */
static void on_carry(ferry *f, int source, const ferry_message *message)
{
    costs *c = ferry_user_data(f);
    uint64_t start = ferry_now(f);
    void *data = malloc(CALIBRATE_TASK_BYTES);
    if (data == NULL)
        calibrate_must(FERRY_ENOMEM, "unpack");
    else
        memcpy(data, message->data, CALIBRATE_TASK_BYTES);
    costs_keep(&c->unpack, c->wanted, ferry_now(f) - start);
    char *bytes = (char *)(uintptr_t)message->data + CALIBRATE_TASK_BYTES;
    ferry_move_info info = {.bytes = bytes, .size_bytes = message->size_bytes};
    info.size_bytes -= CALIBRATE_TASK_BYTES;
    start = ferry_now(f);
    calibrate_must(ferry_object_install(f, &info, data, source), "install");
    costs_keep(&c->install, c->wanted, ferry_now(f) - start);
    c->carried++;
}

static ferry_object costs_create(ferry *f, const costs *c)
{
    ferry_object object;
    void *data = calloc(1, CALIBRATE_TASK_BYTES);
    if (data == NULL)
        calibrate_must(FERRY_ENOMEM, "object");
    calibrate_must(ferry_object_create(f, c->type, data, &object), "object");
    return object;
}

/* Rank 0 takes objects out and carries them to rank 1. */
static void measure_moves(ferry *f, costs *c, calibrate_costs *out)
{
    samples uninstall = {0}, pack = {0};
    for (int i = 0; i < c->wanted && ferry_rank(f) == 0; i++) {
        ferry_object object = costs_create(f, c);
        ferry_move_info info;
        void *data;
        uint64_t start = ferry_now(f);
        calibrate_must(ferry_object_uninstall(f, object, 1, &info, &data), "uninstall");
        costs_keep(&uninstall, c->wanted, ferry_now(f) - start);
        start = ferry_now(f);
        char *buffer = malloc(CALIBRATE_TASK_BYTES + info.size_bytes);
        if (buffer == NULL)
            calibrate_must(FERRY_ENOMEM, "pack");
        memcpy(buffer, data, CALIBRATE_TASK_BYTES);
        costs_keep(&pack, c->wanted, ferry_now(f) - start);
        memcpy(buffer + CALIBRATE_TASK_BYTES, info.bytes, info.size_bytes);
        ferry_message message = {.handler = c->carry,
                                 .data = buffer,
                                 .size_bytes = CALIBRATE_TASK_BYTES + info.size_bytes};
        calibrate_must(ferry_request_send(f, 1, &message, NULL), "send");
        free(buffer);
        free(info.bytes);
        free(data);
        ferry_poll(f);
    }
    while (ferry_rank(f) == 1 && c->carried < (uint64_t)c->wanted)
        ferry_wait(f, 1000000);
    calibrate_must(ferry_quiesce(f), "quiesce");
    out->uninstall = calibrate_median(uninstall.ns, uninstall.count);
    out->pack = calibrate_median(pack.ns, pack.count);
    /* Rank 1 has measured the other half. */
    uint64_t there[2] = {calibrate_median(c->unpack.ns, c->unpack.count),
                         calibrate_median(c->install.ns, c->install.count)};
    calibrate_must(ferry_broadcast(f, 1, there, sizeof there), "broadcast");
    out->unpack = there[0];
    out->install = there[1];
}

static uint64_t measure_poll(ferry *f, int wanted)
{
    samples s = {0};
    for (int i = 0; i < wanted; i++) {
        uint64_t start = ferry_now(f);
        for (int k = 0; k < POLLS; k++)
            ferry_poll(f);
        costs_keep(&s, wanted, (ferry_now(f) - start) / POLLS);
    }
    calibrate_must(ferry_barrier(f), "barrier");
    return calibrate_median(s.ns, s.count);
}

typedef struct turns {
    sem_t here, there;
    int count;
} turns;

static void *take_turns(void *argument)
{
    turns *t = argument;
    for (int i = 0; i < t->count; i++) {
        while (sem_wait(&t->there) != 0)
            continue;
        sem_post(&t->here);
    }
    return NULL;
}

/* The cost of a thread switch: two threads take turns on one processor, two switches per turn. */
static uint64_t measure_change(const ferry *f, int wanted)
{
    turns t = {.count = wanted};
    samples s = {0};
    pthread_t thread;
    cpu_set_t before, one;
    int processor = sched_getcpu();
    bool pinned = processor >= 0 && sched_getaffinity(0, sizeof before, &before) == 0;
    CPU_ZERO(&one);
    if (pinned)
        CPU_SET((size_t)processor, &one);
    pinned = pinned && sched_setaffinity(0, sizeof one, &one) == 0;
    sem_init(&t.here, 0, 0);
    sem_init(&t.there, 0, 0);
    if (pthread_create(&thread, NULL, take_turns, &t) != 0)
        calibrate_must(FERRY_ENOMEM, "thread");
    for (int i = 0; i < wanted; i++) {
        uint64_t start = ferry_now(f);
        sem_post(&t.there);
        while (sem_wait(&t.here) != 0)
            continue;
        costs_keep(&s, wanted, (ferry_now(f) - start) / 2);
    }
    pthread_join(thread, NULL);
    sem_destroy(&t.here);
    sem_destroy(&t.there);
    if (pinned)
        sched_setaffinity(0, sizeof before, &before);
    return calibrate_median(s.ns, s.count);
}

/* Runs empty tasks of many objects. The time from one task to the next is a scheduler's choice. */
static void measure_choices(ferry *f, costs *c)
{
    ferry_object objects[OBJECTS];
    const ferry_message message = {.handler = c->run};
    for (int i = 0; i < OBJECTS && ferry_rank(f) == 0; i++) {
        objects[i] = costs_create(f, c);
        calibrate_must(ferry_balance_add(f, objects[i], NULL), "balance");
    }
    for (int k = 0; k * OBJECTS < c->wanted; k++) {
        for (int i = 0; i < OBJECTS && ferry_rank(f) == 0; i++)
            calibrate_must(ferry_object_send(f, objects[i], &message, NULL), "send");
        c->ran_ns = 0;
        calibrate_must(ferry_quiesce(f), "quiesce");
    }
}

/* Rank 0 asks the helper of rank 1 while rank 1 runs a task. */
static void measure_answers(ferry *f, costs *c)
{
    ferry_object object = costs_create(f, c);
    ferry_message message = {.handler = ferry_rank(f) == 0 ? c->run : c->busy};
    calibrate_must(ferry_balance_add(f, object, NULL), "balance");
    calibrate_must(ferry_balance_enable(f, true), "balance");
    calibrate_must(ferry_barrier(f), "barrier");
    uint64_t end_ns = ferry_now(f) + (uint64_t)c->busy_ms * 900000;
    if (ferry_rank(f) == 1)
        calibrate_must(ferry_object_send(f, object, &message, NULL), "send");
    uint64_t begin_ns = ferry_now(f) + 10000000; /* then rank 1 is in its task */
    while (ferry_rank(f) == 0 && ferry_now(f) < begin_ns)
        ferry_poll(f);
    while (ferry_rank(f) == 0 && ferry_now(f) < end_ns && c->answer.count < c->wanted) {
        calibrate_asking *asking = calibrate_asking_here();
        uint64_t answers = asking->answers;
        asking->wanted = true;
        calibrate_must(ferry_object_send(f, object, &message, NULL), "send");
        while (asking->answers == answers && ferry_now(f) < end_ns)
            ferry_poll(f);
        if (asking->answers != answers)
            costs_keep(&c->answer, c->wanted, asking->answer_ns);
    }
    calibrate_must(ferry_quiesce(f), "quiesce");
    calibrate_must(ferry_balance_enable(f, false), "balance");
}

static void costs_prepare(ferry *f, costs *c)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "calibrate", .flat_bytes = CALIBRATE_TASK_BYTES};
    ferry_user_data_set(f, c);
    calibrate_must(ferry_scheduler_register(f, &calibrate_scheduler), "scheduler");
    calibrate_must(ferry_balance_choose(f, calibrate_scheduler.name), "scheduler");
    calibrate_must(ferry_object_type_register(f, &ops, &c->type), "register");
    calibrate_must(ferry_handler_register(f, "carry", on_carry, &c->carry), "register");
    calibrate_must(ferry_object_handler_register(f, "run", on_run, &c->run), "register");
    calibrate_must(ferry_object_handler_register(f, "busy", on_busy, &c->busy), "register");
    calibrate_must(ferry_barrier(f), "barrier");
}

void calibrate_costs_measure(ferry *f, bool quick, calibrate_costs *out)
{
    costs *c = calloc(1, sizeof *c);
    if (c == NULL) {
        calibrate_must(FERRY_ENOMEM, "samples");
        return;
    }
    c->wanted = quick ? QUICK_SAMPLES : SAMPLES;
    c->busy_ms = quick ? QUICK_BUSY_MS : BUSY_MS;
    costs_prepare(f, c);
    out->poll = measure_poll(f, c->wanted);
    out->change = measure_change(f, c->wanted);
    measure_moves(f, c, out);
    measure_choices(f, c);
    out->decide = calibrate_median(c->decide.ns, c->decide.count);
    measure_answers(f, c);
    out->answer = calibrate_median(c->answer.ns, c->answer.count);
    free(c);
}

void calibrate_costs_write(FILE *out, const calibrate_costs *c)
{
    /* The query takes a start-up to arrive. The rest, until the answer was read, is `reply`. On a
     * busy machine every round trip waits for a processor, and the rest may be less than a poll. */
    uint64_t reply = c->answer > c->startup + c->poll ? c->answer - c->startup : c->poll;
    const struct line {
        const char *name;
        uint64_t ns;
    } lines[] = {{"startup", c->startup}, {"poll", c->poll},     {"switch", c->change},
                 {"reply", reply},        {"decide", c->decide}, {"uninstall", c->uninstall},
                 {"pack", c->pack},       {"unpack", c->unpack}, {"install", c->install}};
    fprintf(out, "# For ferry model: medians\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        fprintf(out, "%s %lluns\n", lines[i].name, (unsigned long long)lines[i].ns);
    fprintf(
        out,
        "request-bytes %zu\n"
        "quantum 0s # a message wakes the helper\n"
        "# For ferry model: of the program, not of the machine\n"
        "task-bytes %d\nmessages 0\nmessage-bytes 0\nmessage-work 0s\nneighbours 4\noverlap 0s\n",
        offsetof(fy_frame, data), CALIBRATE_TASK_BYTES);
}
