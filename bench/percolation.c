/* Percolation: Table VII of dmcs.txt. A cycle through a data server and a computing engine, against
 * a write and a read of the disk alone.
 *
 * Rank 0 is the server and has memory for one of its two objects. Rank 1 is the engine. In a cycle
 * the server reads an object from disk and writes the other one, moves the object to the engine,
 * whose task does nothing, and gets it back. Cycles follow each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "common/disk.h"
#include "common/report.h"

enum { RUNS_MAX = 9, WARM = 4 };

typedef struct test {
    const char *name;
    uint64_t bytes;
} test;

static const test tests[] = {{"cycle-32B", 32},      {"cycle-512B", 512},   {"cycle-4K", 4096},
                             {"cycle-64K", 65536},   {"cycle-1M", 1 << 20}, {"cycle-16M", 16 << 20},
                             {"cycle-64M", 64 << 20}};

enum { TESTS = sizeof tests / sizeof tests[0] };

static const char *name_of(const void *context, int index)
{
    (void)context;
    return index < TESTS ? tests[index].name : NULL;
}

/* The input and result of a run, in memory that all ranks share. */
typedef struct job {
    uint64_t bytes;
    int count;
    double cycle_s;    /* 0: it has failed */
    uint64_t reads[2]; /* by rank, without those of the first cycles */
    uint64_t moves;
} job;

static job *current; /* of this process and those that it starts */

static ferry_store_stats stats_of(ferry *f, ferry_store *store)
{
    ferry_store_stats stats = FERRY_STORE_STATS_DEFAULTS;
    if (ferry_store_stats_get(store, &stats) != 0)
        ferry_abort(f, 1, ferry_error_message(f));
    return stats;
}

/* The engine counts its reads from the last of the first cycles on. */
static void on_work(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    job *j = current;
    (void)object, (void)data, (void)source;
    if (m->words[0] == 0)
        j->reads[1] = 0 - stats_of(f, ferry_user_data(f)).reads;
    if (m->words[0] == (uint64_t)j->count)
        j->reads[1] += stats_of(f, ferry_user_data(f)).reads;
}

static void on_ended(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f, (void)receipt;
    ++*(int *)arg;
}

/* Runs a task on the object. Returns when the object is back, and the other one is written:
 * otherwise the next cycle would use that from memory. */
static void cycle(ferry *f, ferry_store *store, ferry_handler work, ferry_object object,
                  int64_t number)
{
    const ferry_message message = {
        .handler = work, .word_count = 1, .words = {(uint64_t)(number + 1)}};
    ferry_track track = FERRY_TRACK_DEFAULTS;
    int ended = 0;
    track.completed = track.failed = on_ended;
    track.completed_arg = track.failed_arg = &ended;
    if (ferry_object_send(f, object, &message, &track) != 0)
        ferry_abort(f, 1, ferry_error_message(f));
    while (ended == 0 || ferry_object_count(f) != 2)
        (void)ferry_poll(f);
    ferry_store_trim(store);
    while (stats_of(f, store).resident_bytes > current->bytes)
        (void)ferry_poll(f);
}

static void serve(ferry *f, job *j, ferry_store *store, ferry_object_type type, ferry_handler work)
{
    uint64_t reads = 0;
    ferry_percolation_stats counts = FERRY_PERCOLATION_STATS_DEFAULTS;
    ferry_object objects[2];
    double start = 0;
    for (int i = 0; i < 2; i++) {
        void *data = aligned_alloc(64, (j->bytes + 63) & ~(uint64_t)63);
        if (data == NULL)
            ferry_abort(f, 1, "no memory");
        memset(data, i, j->bytes);
        if (ferry_object_create(f, type, data, &objects[i]) != 0 ||
            ferry_balance_add(f, objects[i], NULL) != 0)
            ferry_abort(f, 1, ferry_error_message(f));
        ferry_store_trim(store);
    }
    for (int i = -WARM; i < j->count; i++) {
        start = i == 0 ? bench_seconds() : start;
        reads = i == 0 ? stats_of(f, store).reads : reads;
        cycle(f, store, work, objects[i & 1], i);
    }
    j->cycle_s = (bench_seconds() - start) / j->count;
    if (ferry_percolation_stats_get(f, &counts) != 0)
        ferry_abort(f, 1, ferry_error_message(f));
    j->reads[0] = stats_of(f, store).reads - reads;
    j->moves = counts.assembled;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    job *j = current;
    const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = j->bytes};
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options percolation = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    ferry_store *store = NULL;
    ferry_object_type type;
    ferry_handler work;
    (void)argc, (void)argv;
    options.budget_bytes = j->bytes;
    options.flags = FERRY_STORE_DIRECT;
    percolation.servers = 1;
    if (ferry_object_type_register(f, &ops, &type) != 0 ||
        ferry_object_handler_register(f, "work", on_work, &work) != 0 ||
        ferry_store_open(f, &options, &store) != 0 || ferry_store_add(store, type) != 0 ||
        ferry_percolation_start(f, &percolation) != 0)
        ferry_abort(f, 1, ferry_error_message(f));
    ferry_user_data_set(f, store);
    if (ferry_rank(f) == 0)
        serve(f, j, store, type, work);
    return ferry_quiesce(f) == 0 ? 0 : 1;
}

/* Seconds of a cycle; negative: the run has failed. */
static double run_cycles(uint64_t bytes, int count)
{
    job *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (j == MAP_FAILED)
        abort();
    *j = (job){.bytes = bytes, .count = count};
    current = j;
    char *arguments[] = {"percolation", NULL};
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)setenv("FERRY_RANKS", "2", 1);
        (void)setenv("FERRY_HEAP_BYTES", "512M", 0);
        exit(ferry_main(1, arguments, rank_main, NULL));
    }
    int status = 1;
    bool ran = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    uint64_t reads = j->reads[0] + j->reads[1];
    if (ran && (reads != (uint64_t)count || j->moves < (uint64_t)count))
        fprintf(stderr, "percolation: %d cycles, but %llu reads and %llu moves\n", count,
                (unsigned long long)reads, (unsigned long long)j->moves);
    double seconds = ran ? j->cycle_s : -1;
    (void)munmap(j, sizeof *j);
    return seconds;
}

static void run(const bench_options *o, const test *t)
{
    double ours[RUNS_MAX], theirs[RUNS_MAX];
    uint64_t most = 256u << 20, bytes = o->smoke && t->bytes > 65536 ? 65536 : t->bytes;
    int count = bytes < 1 << 20 ? 500 : (int)(most / bytes) + 4;
    count = o->smoke ? 2 : count;
    for (int i = 0; i < o->runs; i++) {
        theirs[i] = bench_disk_cycle(bytes, count) * 1e6;
        ours[i] = run_cycles(bytes, count) * 1e6;
    }
    const bench_row row = {.name = t->name,
                           .peer = "raw",
                           .unit = "us",
                           .ours = bench_median(ours, o->runs),
                           .theirs = bench_median(theirs, o->runs),
                           .runs = o->runs,
                           .target = {BENCH_RATIO_MAX, 1.2}};
    bench_report(o, "percolation", &row);
}

int main(int argc, char **argv)
{
    bench_options options;
    const bench_about about = {"percolation", name_of, NULL, 5, 3};
    int status = bench_options_read(argc, argv, &about, &options);
    if (status >= 0)
        return status;
    options.runs = options.runs < RUNS_MAX ? options.runs : RUNS_MAX;
    bench_report_head(&options, "percolation", "medians");
    for (int i = 0; i < TESTS; i++)
        if (bench_wanted(&options, tests[i].name))
            run(&options, &tests[i]);
    return 0;
}
