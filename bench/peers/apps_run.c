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

void bench_wrong(const char *program)
{
    fprintf(stderr, "bench: %s does not compute what it should\n", program);
    exit(1);
}
