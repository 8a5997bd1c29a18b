/* Planning: the floor plan of many small blocks, as a rank of a large job has it, and the motion
 * plan of that rank's halo, corners too. */
#include <ferry/ferry.h>
#include <ferry/mover_plan.h>

#include <math.h>

#include "common/team.h"
#include "peers/mover_side.h"

enum { RANKS = 64, EDGE = 8 };

/* As near to a cube as there are that many blocks. */
static ferry_floorplan blocks_of(ferry *f, uint64_t count)
{
    const int64_t a = (int64_t)cbrt((double)count), b = (int64_t)sqrt((double)count / (double)a);
    const int64_t c = (int64_t)count / (a * b);
    ferry_floorplan blocks;
    const int64_t extents[3] = {a * EDGE, b * EDGE, c * EDGE};
    check(f, ferry_floorplan_tile(ferry_region_sized(3, extents), ferry_point_all(EDGE), &blocks));
    return blocks;
}

double bench_mover_plan(void *context, const bench_job *job)
{
    ferry *f = *(ferry **)context;
    const bool all = job->kind == BENCH_PLAN;
    double ns = 0, bytes = 0;
    ferry_floorplan blocks = blocks_of(f, job->size_bytes);
    check(f, ferry_floorplan_map_block(&blocks, all ? 1 : RANKS));
    ferry_halo halo = FERRY_HALO_DEFAULTS;
    halo.low = halo.high = ferry_point_all(1);
    for (uint64_t i = 0; i < job->count; i++) {
        ferry_plan plan = {0};
        uint64_t start = bench_now();
        check(f, ferry_plan_halo(&plan, &blocks, &halo, all ? 0 : RANKS / 2));
        ns += (double)(bench_now() - start);
        bytes =
            (double)(blocks.capacity * sizeof *blocks.blocks + plan.capacity * plan.entry_bytes);
        ferry_plan_fini(&plan);
    }
    ferry_floorplan_fini(&blocks);
    return job->kind == BENCH_PLAN_MEMORY ? bytes : ns;
}
