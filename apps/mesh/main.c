/* Mesh: refines the polygon of a coastline into triangles, in parallel, balanced while it runs.
 *
 *     ferry run -n 4 build/apps/mesh --input apps/data/great-britain.poly
 *         --subdomains 128 --size 2 --feature=-8,5730,40,12 --check --out demo/balanced
 *
 * The parallel constrained Delaunay refinement of prema.txt 7.3. program.h tells how it works. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* With what the check and the pictures need. */
#define BYTES_PER_TRIANGLE 150.0

static void note(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "mesh: %s\n", line);
}

/* Rank 0 holds all triangles in the end: as many as fit into its machine's memory. */
static double triangles_max(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / BYTES_PER_TRIANGLE;
}

/* Rank 0's part before the others can begin. */
static int prepare(ferry *f, mesh_program *p, mesh_log *log)
{
    const mesh_options *o = &p->options;
    uint64_t begin_ns = ferry_now(f);
    if (o->subdomains < ferry_ranks(f))
        return mesh_fail(log,
                         "--subdomains is %ld, fewer than the %d ranks; expected at least one each",
                         o->subdomains, ferry_ranks(f));
    if (mesh_poly_read(o->input, &p->poly, log) != 0 ||
        mesh_pslg_create(&p->poly, &p->pslg, log) != 0 ||
        mesh_sizing_make(&p->pslg.frame, o->size, o->feature, o->feature_count, &p->start.sizing,
                         log) != 0)
        return -1;
    mesh_decompose_options options = MESH_DECOMPOSE_DEFAULTS;
    options.count = (int32_t)o->subdomains;
    options.work_share = o->work_share;
    options.triangles_max = triangles_max();
    if (mesh_decompose(&p->pslg, &p->start.sizing, &options, &p->decomp, log) != 0)
        return -1;
    p->start.subdomains = p->decomp.count;
    p->decompose_s = (double)(ferry_now(f) - begin_ns) / 1e9;
    return 0;
}

void mesh_prepare(ferry *f, mesh_program *p)
{
    mesh_log log = {.note = note};
    p->start.quality.angle_deg = p->options.angle_deg;
    p->start.slice = p->options.slice;
    p->start.point_cost_s = p->options.point_cost_us / 1e6;
    if (prepare(f, p, &log) != 0) {
        fprintf(stderr, "mesh: %s\n", log.error);
        p->start.failed = 1;
    }
}

static void release(mesh_program *p)
{
    mesh_decomp_fini(&p->decomp);
    mesh_pslg_fini(&p->pslg);
    mesh_poly_fini(&p->poly);
    mesh_splits_fini(&p->splits);
    free(p->objects);
    free(p->accounts);
}

static int open_store(ferry *f, mesh_program *p)
{
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    options.budget_bytes = p->options.budget_bytes;
    options.flags = FERRY_STORE_DIRECT;
    if (options.budget_bytes == 0)
        return 0;
    int error = ferry_store_open(f, &options, &p->store);
    return error != 0 ? error : ferry_store_add(p->store, p->type);
}

static int run(ferry *f, mesh_program *p)
{
    int error = mesh_register(f, p);
    if (error != 0)
        return error;
    p->accounts = calloc((size_t)ferry_ranks(f), sizeof *p->accounts);
    if (p->accounts == NULL)
        return FERRY_ENOMEM;
    if (ferry_rank(f) == 0)
        mesh_prepare(f, p);
    error = ferry_broadcast(f, 0, &p->start, sizeof p->start);
    if (error != 0 || p->start.failed)
        return error;
    error = open_store(f, p);
    if (error == 0)
        error = mesh_distribute(f, p);
    if (error == 0)
        error = mesh_refine_all(f, p);
    if (error == 0)
        error = mesh_measure(f, p);
    if (error == 0)
        error = mesh_collect(f, p);
    return error;
}

/* The command line, read once before ranks begin, which may be threads of this process. Mistakes in
 * it are told by rank 0. */
static mesh_options options;
static bool options_read;

static int rank_main(ferry *f, int argc, char **argv)
{
    mesh_program program = {.options = options};
    bool first = ferry_rank(f) == 0;
    if (!options_read) {
        if (first)
            (void)mesh_options_read(argc, argv, true, &program.options);
        return 2;
    }
    if (program.options.help) {
        if (first)
            mesh_options_help();
        return EXIT_SUCCESS;
    }
    ferry_user_data_set(f, &program);
    int error =
        program.options.scheduler != NULL ? ferry_balance_choose(f, program.options.scheduler) : 0;
    if (error == 0)
        error = run(f, &program);
    int status = EXIT_SUCCESS;
    if (error != 0) {
        fprintf(stderr, "mesh: rank %d: %s\n", ferry_rank(f), ferry_error_message(f));
        status = EXIT_FAILURE;
    } else if (program.start.failed) {
        status = first ? 2 : EXIT_SUCCESS;
    } else if (first) {
        status = mesh_report(f, &program);
    }
    release(&program);
    return status;
}

int main(int argc, char **argv)
{
    options_read = mesh_options_read(argc, argv, false, &options) == 0;
    return ferry_main(argc, argv, rank_main, NULL);
}
