/* Store: a rank with four times the data that its memory holds, against what computing and disk
 * take alone. docs/lab/store.md says what each case is.
 *
 * Each side runs in a process of its own. The sides are computing in memory, the store, the store
 * without what it knows of the future (FERRY_STORE_BLIND), and a mapped file. This program throws
 * the file's pages out, least recently used first, as a system that swaps does. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "common/disk.h"
#include "common/report.h"
#include "common/ring.h"

enum { MIB = 1 << 20, RUNS_MAX = 9 };

typedef enum who { SIDE_MEMORY, SIDE_STORE, SIDE_BLIND, SIDE_MAPPED, SIDES } who;

static const char *const side_names[SIDES] = {"memory", "store", "blind", "mapped"};

/* `passes` over each object in each of its `rounds` tasks, against what is `sought`. */
typedef struct load {
    uint64_t object_bytes, budget_bytes;
    int objects, rounds, passes;
    bool one_by_one; /* each task is sent when the one before has ended */
} load;

/* The measurements of a side. */
typedef struct figures {
    double seconds;
    uint64_t sum;                /* of the data, which all sides must have */
    uint64_t moved_bytes, reads; /* to and from the disk */
    uint64_t rss_bytes;          /* the most, above what it was without data */
    double waited;
    bool done;
} figures;

typedef struct job {
    load load;
    who side;
    figures *out;
    ferry_handler work;
    uint64_t start_rss_bytes;
    ferry_object_type type;
    ferry_object *objects;
} job;

static job *current; /* of this process */

static uint64_t status_bytes(const char *name)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *in = fopen("/proc/self/status", "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            (void)sscanf(line + strlen(name), ": %llu", &kib);
    if (in != NULL)
        (void)fclose(in);
    return kib * 1024;
}

/* Work on an object: each word depends on all before it in four chains. */
static uint64_t compute(uint64_t *words, uint64_t count, int passes)
{
    uint64_t sums[4] = {1, 2, 3, 4};
    for (int pass = 0; pass < passes; pass++)
        for (uint64_t i = 0; i < count; i += 4)
            for (int lane = 0; lane < 4; lane++) {
                sums[lane] = sums[lane] * 0x9e3779b97f4a7c15u + words[i + (uint64_t)lane];
                words[i + (uint64_t)lane] ^= sums[lane] >> 32;
            }
    return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

/* Aligned as a disk needs it, so that the block goes there without a copy. */
static void *data_create(uint64_t bytes)
{
    enum { DISK_BYTES = 4096 };
    void *data = aligned_alloc(DISK_BYTES, (bytes + DISK_BYTES - 1) / DISK_BYTES * DISK_BYTES);
    if (data == NULL)
        abort();
    return data;
}

static void send_work(ferry *f, const job *j, ferry_object object, uint64_t left)
{
    const ferry_message message = {.handler = j->work, .word_count = 1, .words = {left}};
    if (ferry_object_send(f, object, &message, NULL) != 0)
        abort();
}

static void on_work(ferry *f, ferry_object object, void *data, int source, const ferry_message *m)
{
    job *j = ferry_user_data(f);
    (void)source;
    j->out->sum += compute(data, j->load.object_bytes / 8, j->load.passes);
    if (m->words[0] > 1)
        send_work(f, j, object, m->words[0] - 1);
}

static ferry_store *open_store(ferry *f, const job *j)
{
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_store *store = NULL;
    options.budget_bytes = j->load.budget_bytes;
    options.flags = FERRY_STORE_DIRECT | (j->side == SIDE_BLIND ? FERRY_STORE_BLIND : 0);
    if (ferry_store_open(f, &options, &store) != 0 || ferry_store_add(store, j->type) != 0)
        abort();
    return store;
}

static void make_objects(ferry *f, job *j, ferry_store *store)
{
    for (int i = 0; i < j->load.objects; i++) {
        void *data = data_create(j->load.object_bytes);
        memset(data, i + 1, j->load.object_bytes);
        if (ferry_object_create(f, j->type, data, &j->objects[i]) != 0 ||
            ferry_balance_add(f, j->objects[i], NULL) != 0)
            abort();
        if (store != NULL)
            ferry_store_trim(store);
    }
}

static bool run_tasks(ferry *f, const job *j)
{
    int rounds = j->load.one_by_one ? j->load.rounds : 1;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < j->load.objects; i++) {
            send_work(f, j, j->objects[i], (uint64_t)(j->load.rounds / rounds));
            while (j->load.one_by_one && ferry_poll(f) == 0)
                continue;
        }
    return ferry_quiesce(f) == 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    job *j = current;
    const ferry_object_ops ops = {.size = sizeof ops, .flat_bytes = j->load.object_bytes};
    ferry_store_stats before = FERRY_STORE_STATS_DEFAULTS, after = FERRY_STORE_STATS_DEFAULTS;
    (void)argc;
    (void)argv;
    ferry_user_data_set(f, j);
    j->objects = calloc((size_t)j->load.objects, sizeof *j->objects);
    if (j->objects == NULL || ferry_object_type_register(f, &ops, &j->type) != 0 ||
        ferry_object_handler_register(f, "work", on_work, &j->work) != 0)
        return 1;
    j->start_rss_bytes = status_bytes("VmRSS");
    ferry_store *store = j->side == SIDE_MEMORY ? NULL : open_store(f, j);
    make_objects(f, j, store);
    if (store != NULL && ferry_store_stats_get(store, &before) != 0)
        return 1;
    double start = bench_seconds();
    if (!run_tasks(f, j))
        return 1;
    j->out->seconds = bench_seconds() - start;
    if (store != NULL && ferry_store_stats_get(store, &after) != 0)
        return 1;
    j->out->moved_bytes =
        after.written_bytes - before.written_bytes + after.read_bytes - before.read_bytes;
    j->out->reads = after.reads - before.reads;
    j->out->waited = (double)(after.wait_ns - before.wait_ns) * 1e-9;
    j->out->rss_bytes = status_bytes("VmHWM") - j->start_rss_bytes;
    j->out->done = true;
    free(j->objects);
    return 0;
}

/* A file and where it is mapped. Objects that have begun to go to disk wait in `going`. */
typedef struct mapped {
    const load *load;
    int fd;
    unsigned char *at;
    int *resident, first, count;
    int going[8], going_first, going_count;
} mapped;

static void throw_out(mapped *m, int object)
{
    uint64_t bytes = m->load->object_bytes, offset = (uint64_t)object * bytes;
    (void)sync_file_range(m->fd, (off_t)offset, (off_t)bytes,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                              SYNC_FILE_RANGE_WAIT_AFTER);
    (void)madvise(m->at + offset, bytes, MADV_DONTNEED);
    (void)posix_fadvise(m->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

/* Begins to write the least recently used object, and throws out those that have had time. */
static void make_room(mapped *m)
{
    int room = (int)(m->load->budget_bytes / m->load->object_bytes);
    while (m->count + m->going_count >= room) {
        if (m->going_count == 8 || m->count == 0) {
            throw_out(m, m->going[m->going_first % 8]);
            m->going_first++;
            m->going_count--;
            continue;
        }
        int object = m->resident[m->first++ % m->load->objects];
        uint64_t bytes = m->load->object_bytes, offset = (uint64_t)object * bytes;
        m->count--;
        (void)madvise(m->at + offset, bytes, MADV_DONTNEED);
        (void)sync_file_range(m->fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
        m->going[(m->going_first + m->going_count++) % 8] = object;
    }
}

static void use_mapped(mapped *m, int object)
{
    make_room(m);
    m->resident[(m->first + m->count++) % m->load->objects] = object;
}

static int run_mapped(const job *j)
{
    const load *l = &j->load;
    uint64_t all_bytes = l->object_bytes * (uint64_t)l->objects;
    mapped m = {.load = l, .fd = bench_disk_file(0)};
    m.resident = calloc((size_t)l->objects, sizeof *m.resident);
    if (m.resident == NULL || ftruncate(m.fd, (off_t)all_bytes) != 0)
        return 1;
    m.at = mmap(NULL, all_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    if (m.at == MAP_FAILED)
        return 1;
    uint64_t rss_bytes = status_bytes("VmRSS");
    double start = 0;
    for (int round = 0; round <= l->rounds; round++) {
        start = round == 1 ? bench_seconds() : start;
        for (int i = 0; i < l->objects; i++) {
            unsigned char *data = m.at + (uint64_t)i * l->object_bytes;
            use_mapped(&m, i);
            if (round == 0)
                memset(data, i + 1, l->object_bytes);
            else
                j->out->sum += compute((void *)data, l->object_bytes / 8, l->passes);
        }
    }
    j->out->seconds = bench_seconds() - start;
    j->out->rss_bytes = status_bytes("VmHWM") - rss_bytes;
    j->out->done = true;
    return 0;
}

static figures run_side(const load *l, who side)
{
    figures *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    job j = {.load = *l, .side = side, .out = shared};
    char *arguments[] = {"store", NULL};
    current = &j;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)mallopt(M_MMAP_THRESHOLD, 1 << 17);
        exit(side == SIDE_MAPPED ? run_mapped(&j) : ferry_main(1, arguments, rank_main, NULL));
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !shared->done)
        fprintf(stderr, "store: side %s has failed\n", side_names[side]);
    figures result = *shared;
    (void)munmap(shared, sizeof *shared);
    return result;
}

typedef enum kind { KIND_SPILL, KIND_FITS, KIND_CYCLE, KIND_RING } kind;

typedef struct test {
    const char *name;
    kind kind;
    double passes;         /* over an object, for each that takes as long as the disk does */
    uint64_t object_bytes; /* of KIND_CYCLE and KIND_RING */
} test;

static const test tests[] = {
    {"disk", KIND_SPILL, 0.25, 0},        {"balanced", KIND_SPILL, 1, 0},
    {"compute", KIND_SPILL, 3, 0},        {"fits", KIND_FITS, 0, 0},
    {"cycle-32B", KIND_CYCLE, 0, 32},     {"cycle-512B", KIND_CYCLE, 0, 512},
    {"cycle-4K", KIND_CYCLE, 0, 4096},    {"cycle-64K", KIND_CYCLE, 0, 65536},
    {"cycle-1M", KIND_CYCLE, 0, 1 << 20}, {"cycle-64M", KIND_CYCLE, 0, 64 << 20},
    {"ring-4K", KIND_RING, 0, 4096},      {"ring-64K", KIND_RING, 0, 65536},
    {"ring-1M", KIND_RING, 0, 1 << 20},
};

enum { TESTS = sizeof tests / sizeof tests[0] };

static const char *name_of(const void *context, int index)
{
    (void)context;
    return index < TESTS ? tests[index].name : NULL;
}

static void say(const bench_options *o, const char *name, const char *peer, const char *unit,
                double ours, double theirs, bench_bound bound, double value)
{
    const bench_row row = {.name = name,
                           .peer = peer,
                           .unit = unit,
                           .ours = ours,
                           .theirs = theirs,
                           .runs = o->runs,
                           .target = {bound, value}};
    bench_report(o, "store", &row);
}

/* The results of the runs of a case, each kind of figure for itself. */
typedef struct samples {
    double seconds[SIDES][RUNS_MAX], alone[RUNS_MAX], hidden[RUNS_MAX], slower[RUNS_MAX];
    double read_bytes[SIDES][RUNS_MAX], rss[SIDES][RUNS_MAX];
} samples;

/* How many passes over an object take as long as to write and read it. */
static int passes_for(const load *l, double bandwidth, double factor)
{
    load probe = *l;
    probe.objects = 16;
    probe.rounds = 1;
    probe.passes = 8;
    double pass_s = run_side(&probe, SIDE_MEMORY).seconds / (16 * 8);
    double disk_s = 2 * (double)l->object_bytes / bandwidth * factor;
    int passes = (int)(disk_s / pass_s + 0.5);
    return passes > 1 ? passes : 1;
}

static void measure_spill(const load *l, double bandwidth, int run, samples *s)
{
    figures found[SIDES];
    for (who side = 0; side < SIDES; side++) {
        found[side] = run_side(l, side);
        s->seconds[side][run] = found[side].seconds * 1e3;
        s->read_bytes[side][run] = (double)(found[side].reads * l->object_bytes) / MIB;
        s->rss[side][run] = (double)found[side].rss_bytes / MIB;
    }
    if (found[SIDE_STORE].sum != found[SIDE_MEMORY].sum)
        fprintf(stderr, "store: the sums differ\n");
    double compute_s = found[SIDE_MEMORY].seconds, store_s = found[SIDE_STORE].seconds;
    double disk_s = (double)found[SIDE_STORE].moved_bytes / bandwidth;
    double less_s = compute_s < disk_s ? compute_s : disk_s;
    s->alone[run] = (compute_s > disk_s ? compute_s : disk_s) * 1e3;
    double hidden = (compute_s + disk_s - store_s) / less_s * 100;
    s->hidden[run] = hidden > 0 ? hidden : 0;
}

static void report_spill(const bench_options *o, const char *about, int budget, samples *s)
{
    char name[64];
    double ours = bench_median(s->seconds[SIDE_STORE], o->runs);
    say(o, about, "bound", "ms", ours, bench_median(s->alone, o->runs), BENCH_RATIO_MAX, 1.10);
    for (who side = 0; side < SIDES; side++)
        if (side != SIDE_STORE)
            say(o, about, side_names[side], "ms", ours, bench_median(s->seconds[side], o->runs),
                BENCH_NONE, 0);
    (void)snprintf(name, sizeof name, "%s-hidden", about);
    say(o, name, "all", "%", bench_median(s->hidden, o->runs), 100, BENCH_RATIO_MIN, 0.9);
    (void)snprintf(name, sizeof name, "%s-read", about);
    say(o, name, "blind", "MiB", bench_median(s->read_bytes[SIDE_STORE], o->runs),
        bench_median(s->read_bytes[SIDE_BLIND], o->runs), BENCH_RATIO_MAX, 0.8);
    (void)snprintf(name, sizeof name, "%s-memory", about);
    double rss = bench_median(s->rss[SIDE_STORE], o->runs);
    say(o, name, "budget", "MiB", rss, budget + 1, BENCH_RATIO_MAX, 1.02);
    say(o, name, "mapped", "MiB", rss, bench_median(s->rss[SIDE_MAPPED], o->runs), BENCH_NONE, 0);
}

static void run_spill(const bench_options *o, const test *t)
{
    static samples s;
    int budget = o->quick || o->smoke ? 32 : 128;
    load l = {.object_bytes = MIB, .budget_bytes = (uint64_t)budget * MIB};
    l.objects = 4 * budget;
    l.rounds = o->smoke ? 1 : 3;
    for (int run = 0; run < o->runs; run++) {
        double bandwidth =
            bench_disk_bandwidth(l.object_bytes, l.budget_bytes * 4, o->smoke ? 0.1 : 1.0);
        if (run == 0)
            l.passes = passes_for(&l, bandwidth, t->passes);
        measure_spill(&l, bandwidth, run, &s);
    }
    report_spill(o, t->name, budget, &s);
}

/* Sides in turn, many times: what is sought is small. */
static void run_fits(const bench_options *o, const test *t)
{
    double ours[4 * RUNS_MAX], theirs[4 * RUNS_MAX];
    load l = {.object_bytes = 65536, .budget_bytes = 64 * MIB, .objects = 256, .passes = 1};
    l.rounds = o->smoke ? 2 : 100;
    int runs = o->smoke ? 1 : 4 * o->runs;
    for (int run = 0; run < runs; run++) {
        theirs[run] = run_side(&l, SIDE_MEMORY).seconds * 1e3;
        ours[run] = run_side(&l, SIDE_STORE).seconds * 1e3;
    }
    say(o, t->name, "memory", "ms", bench_median(ours, runs), bench_median(theirs, runs),
        BENCH_RATIO_MAX, 1.02);
}

static void run_cycle(const bench_options *o, const test *t)
{
    double ours[RUNS_MAX], theirs[RUNS_MAX];
    uint64_t bytes = t->object_bytes;
    int count = bytes >= MIB ? (int)(256 * MIB / bytes) + 4 : 1000;
    count = o->smoke ? 2 : count;
    load l = {.object_bytes = bytes, .budget_bytes = bytes, .objects = 2, .one_by_one = true};
    l.rounds = count / 2;
    for (int run = 0; run < o->runs; run++) {
        theirs[run] = bench_disk_cycle(bytes, count) * 1e6;
        ours[run] = run_side(&l, SIDE_STORE).seconds / (2 * l.rounds) * 1e6;
    }
    say(o, t->name, "raw", "us", bench_median(ours, o->runs), bench_median(theirs, o->runs),
        BENCH_RATIO_MAX, 1.2);
}

static double processor_seconds(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

/* The disk alone: four threads as those of a store, against io_uring with four calls in flight. */
static void run_ring(const bench_options *o, const test *t)
{
    double ours[RUNS_MAX], theirs[RUNS_MAX], ours_busy[RUNS_MAX], theirs_busy[RUNS_MAX];
    uint64_t bytes = t->object_bytes, all_bytes = bytes < 65536 ? 2048 * bytes : 128 * MIB;
    double seconds = o->smoke ? 0.1 : 1, mib = 0;
    char name[64];
    for (int run = 0; run < o->runs; run++) {
        double before = processor_seconds();
        ours[run] = bench_disk_bandwidth(bytes, all_bytes, seconds) / MIB;
        double between = processor_seconds();
        theirs[run] = bench_ring_bandwidth(bytes, all_bytes, 4, seconds) / MIB;
        double after = processor_seconds();
        mib = (double)all_bytes / MIB; /* written before */
        ours_busy[run] = (between - before) / (ours[run] * seconds + mib) * 1e6;
        theirs_busy[run] = (after - between) / (theirs[run] * seconds + mib) * 1e6;
    }
    bool has_ring = theirs[0] > 0;
    say(o, t->name, "io_uring", "MiB/s", bench_median(ours, o->runs),
        has_ring ? bench_median(theirs, o->runs) : -1, BENCH_NONE, 0);
    (void)snprintf(name, sizeof name, "%s-busy", t->name);
    say(o, name, "io_uring", "us/MiB", bench_median(ours_busy, o->runs),
        has_ring ? bench_median(theirs_busy, o->runs) : -1, BENCH_NONE, 0);
}

int main(int argc, char **argv)
{
    bench_options options;
    const bench_about about = {"store", name_of, NULL, 5, 3};
    int status = bench_options_read(argc, argv, &about, &options);
    if (status >= 0)
        return status;
    options.runs = options.runs < RUNS_MAX ? options.runs : RUNS_MAX;
    bench_report_head(&options, "store", "medians");
    for (int i = 0; i < TESTS; i++) {
        if (!bench_wanted(&options, tests[i].name))
            continue;
        if (tests[i].kind == KIND_SPILL)
            run_spill(&options, &tests[i]);
        else if (tests[i].kind == KIND_FITS)
            run_fits(&options, &tests[i]);
        else if (tests[i].kind == KIND_RING)
            run_ring(&options, &tests[i]);
        else
            run_cycle(&options, &tests[i]);
    }
    return 0;
}
