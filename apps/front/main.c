/* Front: fills a box with tetrahedra, in parallel, with a mesher that knows nothing of it.
 *
 *     ferry run -n 4 build/apps/front --domain 8,8,8 --subdomains 8,8,8
 *         --crack 1,1,2,4,4,2,0.05 --check
 *
 * The parallel advancing front of prema.txt 7.2. The domain is divided into many more sub-domains
 * than ranks. Their surfaces are made first, the same from both sides. Then the mesher fills each:
 * Netgen, in a process of its own. program.h tells how. In the simulator, where a mesher's time
 * does not count, --replay takes times that a run with --record has measured. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* The mesher that is built beside this program. */
static const char *mesher_beside(char path[PATH_BYTES])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - sizeof FRONT_MESHER);
    char *slash = length < 0 ? NULL : memrchr(path, '/', (size_t)length);
    strcpy(slash == NULL ? path : slash + 1, FRONT_MESHER);
    return path;
}

static int allocate(front_program *p)
{
    size_t count = (size_t)front_domain_count(&p->options.domain);
    p->objects = calloc(count, sizeof *p->objects);
    p->seconds = calloc(count, sizeof *p->seconds);
    p->waiting_here = calloc(count, sizeof *p->waiting_here);
    p->weights = calloc(count, sizeof *p->weights);
    return p->objects == NULL || p->seconds == NULL || p->waiting_here == NULL || p->weights == NULL
               ? FERRY_ENOMEM
               : 0;
}

static void release(front_program *p)
{
    front_mesher_stop(&p->mesher);
    free(p->objects);
    free(p->seconds);
    free(p->waiting_here);
    free(p->weights);
}

static void weigh_all(front_program *p)
{
    for (int32_t i = 0; i < front_domain_count(&p->options.domain); i++) {
        front_box box = front_domain_box(&p->options.domain, i);
        p->weights[i] = front_spots_count(&p->options.sizing, &box);
    }
}

/* 0 or FERRY_E...; `*bad`: a file was wrong, which was said. */
static int run(ferry *f, front_program *p, bool *bad)
{
    const front_options *o = &p->options;
    const char *scheduler = o->repartition ? "none" : o->scheduler;
    int error = front_register(f, p);
    if (error == 0)
        error = allocate(p);
    if (error == 0 && scheduler != NULL)
        error = ferry_balance_choose(f, scheduler);
    if (error != 0)
        return error;
    if (o->replay == NULL)
        weigh_all(p);
    else if (!front_costs_read(f, p))
        return *bad = true, 0;
    error = front_create(f, p);
    if (error == 0)
        error = o->repartition ? front_run_repartition(f, p) : front_run(f, p);
    if (error == 0 && o->check)
        error = front_check_all(f, p);
    if (error == 0 && o->record != NULL)
        *bad = !front_costs_write(f, p);
    if (error == 0 && o->out != NULL)
        *bad = !front_out_write(f, p) || *bad;
    return error;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    front_program p = {.before = FERRY_STATS_DEFAULTS, .after = FERRY_STATS_DEFAULTS};
    char beside[PATH_BYTES];
    bool bad = false;
    int status = front_options_read(f, argc, argv, &p.options);
    if (status >= 0)
        return status;
    p.mesher.path = p.options.mesher != NULL ? p.options.mesher : mesher_beside(beside);
    ferry_user_data_set(f, &p);
    int error = run(f, &p, &bad);
    if (error != 0) {
        fprintf(stderr, "front: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
        status = 1;
    } else {
        status = bad ? 2 : front_report(f, &p);
    }
    release(&p);
    return status;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
