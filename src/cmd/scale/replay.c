/* Runs the recorded tasks as a program in the simulator. Objects begin on their first ranks, or
 * where the task runs that creates them, and the scheduler moves them. The k-th message to a
 * handler of an object starts the k-th task of that handler, from whatever sender it comes. So an
 * object that counted the messages of its neighbours does so again. A task takes its recorded time,
 * then creates its objects and sends its messages. The program's messages are sent phase by phase,
 * with a quiescence after each phase. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "base/env.h"
#include "cmd/cmd.h"
#include "cmd/scale/scale.h"

/* A message to an object that no task has created yet. */
typedef struct early {
    struct early *after;
    uint64_t task;
    uint32_t bytes;
} early;

/* All ranks share this, since they are simulated in one process. */
typedef struct common {
    scale_plan *plan;
    early **early;   /* lists, one for each object */
    uint32_t *begun; /* tasks of a handler of an object; by the first of them */
} common;

/* The state of a rank. */
typedef struct player {
    scale_plan *plan;
    early **early;
    uint32_t *begun;
    scale_root *roots; /* sent here, by phase */
    uint64_t count, root_count, ran;
    ferry_object_type type;
    ferry_handler handler;
} player;

/* Keeps a message until its object is created. */
static int keep_early(const player *p, uint32_t object, uint32_t bytes, uint64_t task)
{
    early *e = malloc(sizeof *e);
    if (e == NULL)
        return FERRY_ENOMEM;
    *e = (early){p->early[object], task, bytes};
    p->early[object] = e;
    return 0;
}

static int send_to(ferry *f, const player *p, uint32_t object, uint32_t bytes, uint64_t task)
{
    if (scale_names(p->plan)[object] == 0)
        return keep_early(p, object, bytes, task);
    void *data = bytes == 0 ? NULL : calloc(1, bytes);
    if (bytes != 0 && data == NULL)
        return FERRY_ENOMEM;
    const ferry_message message = {
        .handler = p->handler, .words = {task}, .word_count = 1, .data = data, .size_bytes = bytes};
    const ferry_object target = {scale_names(p->plan)[object]};
    int error = ferry_object_send(f, target, &message, NULL);
    free(data);
    return error;
}

static size_t unit_bytes(const scale_plan *plan)
{
    return plan->bytes > 0 ? (size_t)plan->bytes : 1;
}

static int replay_create(ferry *f, const player *p, uint64_t index)
{
    ferry_object object;
    void *data = calloc(1, unit_bytes(p->plan));
    if (data == NULL)
        return FERRY_ENOMEM;
    int error = ferry_object_create(f, p->type, data, &object);
    if (error != 0) {
        free(data);
        return error;
    }
    scale_names(p->plan)[index] = object.word;
    error = ferry_balance_add(f, object, NULL);
    for (early *e; error == 0 && (e = p->early[index]) != NULL; free(e)) {
        p->early[index] = e->after;
        error = send_to(f, p, (uint32_t)index, e->bytes, e->task);
    }
    return error;
}

static void on_task(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    (void)object;
    (void)data;
    (void)source;
    player *p = ferry_user_data(f);
    const scale_object *objects = scale_objects(p->plan);
    const scale_task *tasks = scale_tasks(p->plan);
    uint32_t first = tasks[message->words[0]].first;
    const scale_task *task = &tasks[first + p->begun[first]++];
    p->ran++;
    ferry_compute(f, (double)task->ns * 1e-9);
    int error = 0;
    for (uint32_t i = task->creates; i != SCALE_NONE && error == 0; i = objects[i].after)
        error = replay_create(f, p, i);
    for (uint64_t i = task->first_send; i < task[1].first_send && error == 0; i++) {
        const scale_send *send = &scale_sends(p->plan)[i];
        error = send_to(f, p, send->object, send->bytes, send->task);
    }
    if (error != 0)
        fprintf(stderr, "ferry scale: rank %d: %s\n", ferry_rank(f), ferry_strerror(error));
}

/* The load that the scheduler of the traced run was told for the task of this message. */
static double load_of(ferry *f, const void *data, const ferry_message *message)
{
    (void)data;
    const scale_plan *plan = ((const player *)ferry_user_data(f))->plan;
    uint64_t task = message != NULL ? message->words[0] : plan->tasks;
    return task < plan->tasks ? scale_tasks(plan)[task].load : 1;
}

static int rank_of(double place, int ranks)
{
    int rank = (int)(place * ranks + 1e-9);
    return rank < ranks ? rank : ranks - 1;
}

/* The first object whose place is on `rank` or a later one. */
static uint64_t first_object(const scale_plan *plan, int rank, int ranks)
{
    uint64_t low = 0, high = plan->objects;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (rank_of(scale_objects(plan)[middle].place, ranks) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first message of the program for an object from `object` on. */
static uint64_t first_own_root(const scale_plan *plan, uint64_t object)
{
    uint64_t low = 0, high = plan->own_roots;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (scale_roots(plan)[middle].object < object)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first message of the program that `rank` or a later one sends to an object elsewhere. */
static uint64_t first_far_root(const scale_plan *plan, int rank, int ranks)
{
    uint64_t low = plan->own_roots, high = plan->roots;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (rank_of((double)scale_roots(plan)[middle].sender / plan->ranks, ranks) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int by_phase(const void *left, const void *right)
{
    const scale_root *a = left, *b = right;
    int by = (a->phase > b->phase) - (a->phase < b->phase);
    by = by != 0 ? by : (a->object > b->object) - (a->object < b->object);
    return by != 0 ? by : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Takes the messages that this rank sends as the program, by phase. */
static int take_roots(player *p, uint64_t first, int rank, int ranks)
{
    const scale_root *all = scale_roots(p->plan);
    uint64_t own = first_own_root(p->plan, first);
    uint64_t own_count = first_own_root(p->plan, first + p->count) - own;
    uint64_t far = first_far_root(p->plan, rank, ranks);
    uint64_t far_count = first_far_root(p->plan, rank + 1, ranks) - far;
    p->root_count = own_count + far_count;
    p->roots = calloc(p->root_count + 1, sizeof *p->roots);
    if (p->roots == NULL)
        return FERRY_ENOMEM;
    memcpy(p->roots, all + own, own_count * sizeof *all);
    memcpy(p->roots + own_count, all + far, far_count * sizeof *all);
    qsort(p->roots, p->root_count, sizeof *p->roots, by_phase);
    return 0;
}

static int create_all(ferry *f, player *p)
{
    int rank = ferry_rank(f), ranks = ferry_ranks(f);
    uint64_t first = first_object(p->plan, rank, ranks);
    p->count = first_object(p->plan, rank + 1, ranks) - first;
    int error = take_roots(p, first, rank, ranks);
    for (uint64_t i = first; i < first + p->count && error == 0; i++)
        if (!scale_objects(p->plan)[i].late)
            error = replay_create(f, p, i);
    return error;
}

static int send_root(ferry *f, const player *p, const scale_root *root)
{
    return send_to(f, p, root->object, root->bytes, root->task);
}

/* Runs all phases. Sets the times, over all ranks, of the first message and of the last end. */
static int run_all(ferry *f, player *p, uint64_t span_ns[2])
{
    int error = ferry_barrier(f); /* every rank has made its objects: all names are in the plan */
    if (error == 0) /* after that, since ranks that wait for others would ask for work */
        error = ferry_balance_enable(f, true);
    span_ns[0] = ferry_now(f);
    uint64_t i = 0;
    for (uint32_t phase = 0; phase < p->plan->phases && error == 0; phase++) {
        for (; i < p->root_count && p->roots[i].phase == phase && error == 0; i++)
            error = send_root(f, p, &p->roots[i]);
        if (error == 0)
            error = ferry_quiesce(f);
    }
    span_ns[1] = ferry_now(f);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_MIN, &span_ns[0], &span_ns[0], 1);
    return error != 0 ? error
                      : ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &span_ns[1], &span_ns[1], 1);
}

/* Rank 0 writes the results to the plan. */
static int replay_tell(ferry *f, player *p, const uint64_t span_ns[2])
{
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &stats);
    uint64_t sums[2] = {stats.objects_out, p->ran};
    int error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 2);
    if (error == 0 && ferry_rank(f) == 0) {
        p->plan->makespan_ns = span_ns[1] - span_ns[0];
        p->plan->moves = sums[0];
        p->plan->ran = sums[1];
    }
    return error;
}

static int replay(ferry *f, const common *shared)
{
    scale_plan *plan = shared->plan;
    const ferry_object_ops ops = {.size = sizeof ops,
                                  .name = "task",
                                  .flat_bytes = unit_bytes(plan),
                                  .load = plan->loaded ? load_of : NULL};
    player p = {.plan = plan, .early = shared->early, .begun = shared->begun};
    uint64_t span_ns[2];
    ferry_user_data_set(f, &p);
    int error = ferry_object_type_register(f, &ops, &p.type);
    if (error == 0)
        error = ferry_object_handler_register(f, "task", on_task, &p.handler);
    if (error == 0)
        error = create_all(f, &p);
    if (error == 0)
        error = run_all(f, &p, span_ns);
    if (error == 0)
        error = replay_tell(f, &p, span_ns);
    free(p.roots);
    return error;
}

static scale_plan *map(const char *fd)
{
    struct stat about;
    int number = atoi(fd);
    if (fstat(number, &about) != 0 || (size_t)about.st_size < sizeof(scale_plan))
        return NULL;
    void *at = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Maps the plan, without the names that another replay has left in it. */
static int open_common(const char *fd, common *shared)
{
    shared->plan = map(fd);
    if (shared->plan == NULL)
        return FERRY_EINVAL;
    memset(scale_names(shared->plan), 0, shared->plan->objects * sizeof(uint64_t));
    shared->early = calloc(shared->plan->objects + 1, sizeof(early *));
    shared->begun = calloc(shared->plan->tasks + 1, sizeof *shared->begun);
    return shared->early != NULL && shared->begun != NULL ? 0 : FERRY_ENOMEM;
}

/* After the last collective call no rank uses it any more. */
static void close_common(common *shared)
{
    for (uint64_t i = 0; i < shared->plan->objects; i++)
        for (early *e; (e = shared->early[i]) != NULL; free(e))
            shared->early[i] = e->after;
    free(shared->early);
    free(shared->begun);
}

/* The simulated ranks share a process: rank 0 maps the plan for all. */
static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    common shared = {.plan = NULL};
    int error = ferry_balance_choose(f, argv[3]);
    if (error != 0) {
        if (ferry_rank(f) == 0)
            fprintf(stderr, "ferry scale: --scheduler %s: %s\n", argv[3], ferry_error_message(f));
        return CMD_USAGE_STATUS;
    }
    int opened = ferry_rank(f) == 0 ? open_common(argv[2], &shared) : FERRY_EINVAL;
    error = ferry_broadcast(f, 0, &shared, sizeof shared);
    if (error == 0)
        error = shared.early != NULL && shared.begun != NULL ? replay(f, &shared) : opened;
    if (error == 0 && ferry_rank(f) == 0)
        close_common(&shared);
    if (error != 0)
        fprintf(stderr, "ferry scale: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    return error != 0;
}

int scale_replay_main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}

/* Makes the file of a network on which messages take no time. Returns its descriptor, or -1. */
static int make_free_net(void)
{
    static const char text[] = "topology flat\nmemory shared\nlatency 1ps\nsend 0ps\n"
                               "receive 0ps\ngap 0ps\nbyte 0ps\n";
    int fd = memfd_create("no network", 0);
    if (fd >= 0 && write(fd, text, sizeof text - 1) != (ssize_t)sizeof text - 1) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Runs `ferry scale replay` as a child. */
static int replay_run_child(int plan_fd, int ranks, const char *scheduler)
{
    static const char *const cleared[] = {"FERRY_SCHEDULER",  "FERRY_TRACE",      "FERRY_PROFILE",
                                          "FERRY_SIM_FAULTS", "FERRY_SIM_REPORT", "FERRY_SIM_TAPE"};
    char self[] = "/proc/self/exe", word[] = "scale", replayed[] = "replay", fd[16], count[16];
    char *name = strdup(scheduler);
    if (name == NULL)
        return CMD_LAUNCH_STATUS;
    for (size_t i = 0; i < sizeof cleared / sizeof *cleared; i++)
        unsetenv(cleared[i]);
    (void)snprintf(fd, sizeof fd, "%d", plan_fd);
    (void)snprintf(count, sizeof count, "%d", ranks);
    setenv("FERRY_PORT", "sim", 1);
    setenv("FERRY_RANKS", count, 1);
    char *const argv[] = {self, word, replayed, fd, name, NULL};
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    cmd_progress progress;
    int status = cmd_run_child("scale", (char **)argv, &progress);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    free(name);
    return status;
}

/* As replay_run_child, on a network without costs. Restores FERRY_SIM_NET. */
static int run_child_free(int plan_fd, int ranks, const char *scheduler)
{
    char path[32];
    int fd = make_free_net();
    const char *set = fy_env_get("FERRY_SIM_NET");
    char *before = set != NULL ? strdup(set) : NULL;
    if (fd < 0 || (set != NULL && before == NULL))
        return CMD_LAUNCH_STATUS;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    setenv("FERRY_SIM_NET", path, 1);
    int status = replay_run_child(plan_fd, ranks, scheduler);
    if (before != NULL)
        setenv("FERRY_SIM_NET", before, 1);
    else
        unsetenv("FERRY_SIM_NET");
    free(before);
    close(fd);
    return status;
}

int scale_replay(const scale_trace *trace, int ranks, const char *scheduler, bool free_net)
{
    trace->plan->makespan_ns = trace->plan->ran = 0;
    int status = free_net ? run_child_free(trace->fd, ranks, scheduler)
                          : replay_run_child(trace->fd, ranks, scheduler);
    if (status != 0 && status != CMD_USAGE_STATUS)
        fprintf(stderr, "ferry scale: %d ranks under %s ended with status %d; expected 0\n", ranks,
                scheduler, status);
    return status;
}
