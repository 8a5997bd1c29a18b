#include "peers/apps_amr.h"
#include "peers/mover_apps.h"

#include <stdio.h>
#include <stdlib.h>

/* The last job of this process; it serves one at a time. */
bool bench_first_time(const bench_job *job)
{
    static uint32_t kind;
    static uint64_t size_bytes;
    bool first = kind != job->kind || size_bytes != job->size_bytes;
    kind = job->kind;
    size_bytes = job->size_bytes;
    return first;
}

void *bench_memory(size_t count, size_t bytes)
{
    void *all = calloc(count + 1, bytes);
    if (!all)
        exit(1);
    return all;
}

void bench_wrong(const char *program)
{
    fprintf(stderr, "bench: %s does not compute what it should\n", program);
    exit(1);
}

/* All steps from one change to the next. */
static void amr_period(void *arg)
{
    for (int i = 0; i < BENCH_AMR_REGRID; i++)
        bench_amr_step(arg);
}

double bench_amr_run(bench_amr *a, const bench_job *job)
{
    if (bench_first_time(job) && !bench_amr_check(a))
        bench_wrong("AMR");
    bench_amr_begin(a);
    return bench_repeat(job, amr_period, a);
}
