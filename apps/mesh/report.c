/* The report of rank 0 about a run. */
#include "program.h"
#include "sink.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

static int usable_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static void summarize_rank(const mesh_program *p, int rank, mesh_rank_summary *out)
{
    const mesh_account *a = &p->accounts[rank];
    *out = (mesh_rank_summary){
        .busy_s = (double)a->stats.task_cpu_ns / 1e9,
        .runtime_s = (double)(a->stats.runtime_cpu_ns + a->stats.helper_ns) / 1e9,
        .idle_s = (double)a->stats.idle_ns / 1e9,
        .messages = (int64_t)a->stats.messages_sent,
        .splits = (int64_t)a->splits,
        .migrations_in = (int64_t)a->stats.objects_in,
        .migrations_out = (int64_t)a->stats.objects_out,
        .triangles = a->triangles,
    };
}

static int summarize(ferry *f, const mesh_program *p, mesh_summary *out)
{
    int ranks = ferry_ranks(f);
    mesh_rank_summary *rank = calloc((size_t)ranks, sizeof *rank);
    if (rank == NULL)
        return -1;
    *out = (mesh_summary){
        .input = p->options.input,
        .scheduler = ferry_balance_scheduler(f),
        .ranks = ranks,
        .cores = usable_cores(),
        .subdomains = p->start.subdomains,
        .angle_deg = p->options.angle_deg,
        .size = p->options.size,
        .feature_count = p->options.feature_count,
        .feature = p->options.feature,
        .makespan_s = (double)(p->end_ns - p->begin_ns) / 1e9,
        .decompose_s = p->decompose_s,
        .rank = rank,
    };
    double busy = 0;
    for (int i = 0; i < ranks; i++) {
        summarize_rank(p, i, &rank[i]);
        busy += rank[i].busy_s;
        out->splits += rank[i].splits;
        out->triangles += rank[i].triangles;
        out->points += p->accounts[i].points;
        out->memory_bytes += p->accounts[i].memory_bytes;
    }
    out->bound_s = busy / (ranks < out->cores ? ranks : out->cores);
    return 0;
}

static void print_table(const mesh_summary *s)
{
    char digits[32];
    double runtime = 0, busy = 0;
    printf("\n%-5s %9s %9s %9s %10s %9s %9s %6s %6s\n", "rank", "busy s", "runtime s", "idle s",
           "triangles", "messages", "splits", "in", "out");
    for (int i = 0; i < s->ranks; i++) {
        const mesh_rank_summary *r = &s->rank[i];
        runtime += r->runtime_s;
        busy += r->busy_s;
        printf("%-5d %9.3f %9.4f %9.3f %10lld %9lld %9lld %6lld %6lld\n", i, r->busy_s,
               r->runtime_s, r->idle_s, (long long)r->triangles, (long long)r->messages,
               (long long)r->splits, (long long)r->migrations_in, (long long)r->migrations_out);
    }
    printf("\n%s triangles in %d sub-domains on %d ranks and %d cores, scheduler %s\n",
           mesh_group_digits(s->triangles, digits), s->subdomains, s->ranks, s->cores,
           s->scheduler);
    printf("makespan %.3f s, %.2f x the work divided by the processors (%.3f s); the runtime took "
           "%.3f %% of the processor time used\n",
           s->makespan_s, s->bound_s > 0 ? s->makespan_s / s->bound_s : 0, s->bound_s,
           100 * runtime / (busy + runtime));
    printf("read and decomposed in %.3f s; %.0f bytes of memory per triangle\n", s->decompose_s,
           (double)s->memory_bytes / (double)s->triangles);
}

/* Prints what the stores of the ranks did. */
static void print_store(const mesh_program *p, int ranks)
{
    static const double mb = 1 << 20;
    printf("\n%-5s %9s %9s %10s %9s %9s %9s %9s\n", "rank", "budget MB", "peak MB", "process MB",
           "writes", "reads", "read MB", "wait s");
    for (int i = 0; i < ranks; i++) {
        const mesh_account *a = &p->accounts[i];
        printf("%-5d %9.2f %9.2f %10.2f %9llu %9llu %9.2f %9.3f\n", i,
               (double)a->store.budget_bytes / mb, (double)a->store.peak_bytes / mb,
               (double)a->peak_bytes / mb, (unsigned long long)a->store.writes,
               (unsigned long long)a->store.reads, (double)a->store.read_bytes / mb,
               (double)a->store.wait_ns / 1e9);
    }
}

static const char *file_in(const char *folder, const char *name, char *path)
{
    (void)snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return path;
}

/* Makes the folder and those above it. */
static int make_folder(const char *folder)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s", folder);
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return -1;
        *at = '/';
    }
    return mkdir(path, 0777) != 0 && errno != EEXIST ? -1 : 0;
}

static int write_files(const mesh_program *p, mesh_sub *const *subs, const mesh_summary *s,
                       mesh_log *log)
{
    char path[PATH_BYTES], title[64], about[256];
    const char *folder = p->options.out;
    (void)snprintf(title, sizeof title, "Refined by %d ranks", s->ranks);
    (void)snprintf(about, sizeof about, "scheduler %s, %d ranks, %d sub-domains", s->scheduler,
                   s->ranks, s->subdomains);
    const mesh_picture picture = {.pslg = &p->pslg,
                                  .sub = subs,
                                  .sub_count = p->start.subdomains,
                                  .rank_count = s->ranks,
                                  .title = title,
                                  .subtitle = about,
                                  .unit = "km"};
    if (make_folder(folder) != 0)
        return mesh_fail(log, "%s: cannot be made: %s", folder, strerror(errno));
    if (mesh_write_vtu(file_in(folder, "mesh.vtu", path), &picture, log) != 0 ||
        mesh_write_svg(file_in(folder, "mesh.svg", path), &picture, log) != 0 ||
        mesh_write_summary(file_in(folder, "summary.json", path), s, log) != 0)
        return -1;
    printf("wrote mesh.vtu, mesh.svg and summary.json to %s\n", folder);
    return 0;
}

static void print_line(void *arg, const char *text)
{
    (void)arg;
    puts(text);
}

/* 0 when all is right, 1 when the mesh is wrong, -1 when it could not be checked. */
static int check(const mesh_program *p, mesh_sub *const *subs, mesh_check_result *result,
                 mesh_log *log)
{
    const mesh_check_input input = {.pslg = &p->pslg,
                                    .decomp = &p->decomp,
                                    .sub = subs,
                                    .sizing = &p->start.sizing,
                                    .quality = &p->start.quality,
                                    .poly = &p->poly,
                                    .line = print_line};
    return mesh_check(&input, result, log);
}

static int report(ferry *f, mesh_program *p, mesh_sub **subs, mesh_log *log)
{
    mesh_summary summary;
    mesh_check_result result;
    for (int32_t i = 0; mesh_comes_home(p) && i < p->start.subdomains; i++)
        subs[i] = mesh_local(f, p, i);
    if (summarize(f, p, &summary) != 0)
        return mesh_fail_memory(log);
    print_table(&summary);
    if (p->options.budget_bytes > 0)
        print_store(p, ferry_ranks(f));
    int status = 0;
    if (p->options.check) {
        status = check(p, subs, &result, log);
        summary.check = &result;
    }
    if (status >= 0 && p->options.out != NULL && write_files(p, subs, &summary, log) != 0)
        status = -1;
    free((void *)summary.rank);
    return status;
}

int mesh_report(ferry *f, mesh_program *p)
{
    mesh_log log = {0};
    mesh_sub **subs = calloc((size_t)p->start.subdomains, sizeof *subs);
    int status = subs == NULL ? mesh_fail_memory(&log) : report(f, p, subs, &log);
    free(subs);
    if (status < 0)
        fprintf(stderr, "mesh: %s\n", log.error);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
