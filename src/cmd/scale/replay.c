/* The recorded tasks as a program of the simulator. Objects begin on their first ranks, get all
 * their tasks at once, and move as the scheduler likes. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <ferry/ferry.h>

#include "cmd/cmd.h"
#include "cmd/scale/scale.h"

typedef struct unit {
    double seconds; /* of each of its tasks */
    unsigned char ballast[];
} unit;

static void on_task(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    (void)object;
    (void)source;
    (void)message;
    ferry_compute(f, ((const unit *)data)->seconds);
}

static size_t unit_bytes(const scale_plan *plan)
{
    return sizeof(unit) + (size_t)plan->bytes;
}

static int rank_of(const scale_object *object, int ranks)
{
    int rank = (int)(object->place * ranks + 1e-9);
    return rank < ranks ? rank : ranks - 1;
}

/* The first object whose place is on that rank or behind it. */
static uint64_t first_of(const scale_plan *plan, int rank, int ranks)
{
    uint64_t low = 0, high = plan->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (rank_of(&plan->objects[middle], ranks) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int create(ferry *f, const scale_plan *plan, const scale_object *from,
                  ferry_object_type type, ferry_object *out)
{
    unit *u = calloc(1, unit_bytes(plan));
    if (u == NULL)
        return FERRY_ENOMEM;
    u->seconds = (double)from->task_ns * 1e-9 / (double)from->tasks;
    int error = ferry_object_create(f, type, u, out);
    if (error != 0)
        free(u);
    return error != 0 ? error : ferry_balance_add(f, *out, NULL);
}

/* Sends all tasks and waits until they have run; how long that took, over all ranks. */
static int run_all(ferry *f, const scale_plan *plan, uint64_t first, const ferry_object *objects,
                   uint64_t count, ferry_handler handler, uint64_t span_ns[2])
{
    const ferry_message message = {.handler = handler};
    int error = ferry_balance_enable(f, true);
    if (error == 0)
        error = ferry_barrier(f);
    span_ns[0] = ferry_now(f);
    for (uint64_t i = 0; i < count && error == 0; i++)
        for (uint64_t k = 0; k < plan->objects[first + i].tasks && error == 0; k++)
            error = ferry_object_send(f, objects[i], &message, NULL);
    if (error == 0)
        error = ferry_quiesce(f);
    span_ns[1] = ferry_now(f);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_MIN, &span_ns[0], &span_ns[0], 1);
    return error != 0 ? error
                      : ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &span_ns[1], &span_ns[1], 1);
}

static int replay(ferry *f, scale_plan *plan)
{
    const ferry_object_ops ops = {
        .size = sizeof ops, .name = "task", .flat_bytes = unit_bytes(plan)};
    ferry_object_type type;
    ferry_handler handler;
    int rank = ferry_rank(f), ranks = ferry_ranks(f);
    uint64_t first = first_of(plan, rank, ranks);
    uint64_t count = first_of(plan, rank + 1, ranks) - first;
    uint64_t span_ns[2];
    ferry_object *objects = calloc(count + 1, sizeof *objects);
    int error = objects == NULL ? FERRY_ENOMEM : ferry_object_type_register(f, &ops, &type);
    if (error == 0)
        error = ferry_object_handler_register(f, "task", on_task, &handler);
    for (uint64_t i = 0; i < count && error == 0; i++)
        error = create(f, plan, &plan->objects[first + i], type, &objects[i]);
    if (error == 0)
        error = run_all(f, plan, first, objects, count, handler, span_ns);
    free(objects);
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &stats);
    if (error == 0)
        error =
            ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, &stats.objects_out, &stats.objects_out, 1);
    if (error == 0 && rank == 0) {
        plan->makespan_ns = span_ns[1] - span_ns[0];
        plan->moves = stats.objects_out;
    }
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

/* Simulated ranks share the process, so that one maps for all. */
static int rank_main(ferry *f, int argc, char **argv)
{
    (void)argc;
    int error = ferry_balance_choose(f, argv[3]);
    if (error != 0) {
        if (ferry_rank(f) == 0)
            fprintf(stderr, "ferry scale: --scheduler %s: %s\n", argv[3], ferry_error_message(f));
        return CMD_USAGE_STATUS;
    }
    uint64_t address = ferry_rank(f) == 0 ? (uint64_t)(uintptr_t)map(argv[2]) : 0;
    error = ferry_broadcast(f, 0, &address, sizeof address);
    scale_plan *plan = (scale_plan *)(uintptr_t)address;
    if (error == 0)
        error = plan != NULL ? replay(f, plan) : FERRY_EINVAL;
    if (error != 0)
        fprintf(stderr, "ferry scale: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
    return error != 0;
}

int scale_replay_main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}

int scale_replay(const scale_trace *trace, int ranks, const char *scheduler)
{
    static const char *const cleared[] = {"FERRY_SCHEDULER",  "FERRY_TRACE",      "FERRY_PROFILE",
                                          "FERRY_SIM_FAULTS", "FERRY_SIM_REPORT", "FERRY_SIM_TAPE"};
    char self[] = "/proc/self/exe", word[] = "scale", replayed[] = "replay", fd[16], count[16];
    char *name = strdup(scheduler);
    if (name == NULL)
        return CMD_LAUNCH_STATUS;
    for (size_t i = 0; i < sizeof cleared / sizeof *cleared; i++)
        unsetenv(cleared[i]);
    (void)snprintf(fd, sizeof fd, "%d", trace->fd);
    (void)snprintf(count, sizeof count, "%d", ranks);
    setenv("FERRY_PORT", "sim", 1);
    setenv("FERRY_RANKS", count, 1);
    char *const argv[] = {self, word, replayed, fd, name, NULL};
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    bool opened;
    trace->plan->makespan_ns = 0;
    int status = cmd_run_child("scale", (char **)argv, &opened);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    free(name);
    if (status != 0 && status != CMD_USAGE_STATUS)
        fprintf(stderr, "ferry scale: %d ranks under %s ended with status %d; expected 0\n", ranks,
                scheduler, status);
    return status;
}
