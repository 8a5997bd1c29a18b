/* Goal: on the simulated disk of FERRY_SIM_DISK each read and write takes the time that it says, a
 * store hides most of this time behind tasks, and a blind store waits for all of it. Method: one
 * rank with 32 objects and memory for 8 runs tasks of 1 ms on each in turn. A read or a write takes
 * 0.2 ms. The virtual time must be that of the tasks and at most half of that of the disk, or all
 * of both.
 *
 * Run as ferry sim --disk latency=100us,bandwidth=100M timed ahead|blind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"

enum { OBJECTS = 32, ROUNDS = 4, BYTES = 10000, ROOM = 8 };

static const double TASK_S = 1e-3, DISK_S = 0.2e-3;

static void on_work(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    uint64_t *values = data;
    (void)object, (void)source;
    check(f, values[0] == m->words[0] && values[BYTES / 8 - 1] == values[0], "data");
    values[0] = ++values[BYTES / 8 - 1];
    ferry_compute(f, TASK_S);
}

static void make_objects(ferry *f, ferry_store *store, ferry_object_type type,
                         ferry_object objects[OBJECTS])
{
    for (int i = 0; i < OBJECTS; i++) {
        void *data = calloc(1, BYTES);
        check(f, data != NULL && ferry_object_create(f, type, data, &objects[i]) == 0, "create");
        check(f, ferry_balance_add(f, objects[i], NULL) == 0, "add");
        ferry_store_trim(store);
    }
}

static double run(ferry *f, ferry_handler work, const ferry_object objects[OBJECTS])
{
    uint64_t begun_ns = ferry_now(f);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        const ferry_message message = {.handler = work, .word_count = 1, .words = {round}};
        for (int i = 0; i < OBJECTS; i++)
            check(f, ferry_object_send(f, objects[i], &message, NULL) == 0, "send");
        check(f, ferry_quiesce(f) == 0, "quiesce");
    }
    return (double)(ferry_now(f) - begun_ns) * 1e-9;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = BYTES};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_store_stats before = FERRY_STORE_STATS_DEFAULTS, stats = FERRY_STORE_STATS_DEFAULTS;
    bool blind = argc > 1 && strcmp(argv[1], "blind") == 0;
    ferry_store *store = NULL;
    ferry_object_type type;
    ferry_handler work = {0};
    ferry_object objects[OBJECTS];
    options.budget_bytes = (uint64_t)ROOM * BYTES;
    options.flags = blind ? FERRY_STORE_BLIND : 0;
    check(f,
          ferry_object_type_register(f, &ops, &type) == 0 &&
              ferry_object_handler_register(f, "work", on_work, &work) == 0 &&
              ferry_store_open(f, &options, &store) == 0 && ferry_store_add(store, type) == 0,
          "set-up");
    make_objects(f, store, type, objects);
    check(f, ferry_store_stats_get(store, &before) == 0, "stats");
    double took_s = run(f, work, objects), tasks_s = OBJECTS * ROUNDS * TASK_S;
    check(f, ferry_store_stats_get(store, &stats) == 0, "stats");
    double disk_s = (double)(stats.reads - before.reads + stats.writes - before.writes) * DISK_S;
    printf("timed: %.1f ms of tasks, %.1f ms of disk, took %.1f ms, waited for %.1f ms\n",
           tasks_s * 1e3, disk_s * 1e3, took_s * 1e3, (double)stats.wait_ns * 1e-6);
    check(f, disk_s > tasks_s / 5, "the disk was idle");
    check(f, blind ? took_s >= tasks_s + 0.9 * disk_s : took_s <= tasks_s + disk_s / 2,
          "the time that the disk takes is not in the run, or not hidden");
    printf("timed: right\n");
    return 0;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
