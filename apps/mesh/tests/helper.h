/* Shared by the mesh tests: inputs, and a driver that refines all sub-domains in one process, in an
 * order, with delays, repetitions and migrations that a seed chooses. */
#ifndef MESH_TEST_HELPER_H
#define MESH_TEST_HELPER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check.h"

typedef struct test_mesh {
    mesh_poly poly;
    mesh_pslg pslg;
    mesh_sizing sizing;
    mesh_quality quality;
    mesh_decomp decomp;
    mesh_sub **sub;
    int64_t splits; /* sent between sub-domains */
} test_mesh;

typedef struct test_case {
    const char *file; /* under apps/data, or NULL */
    const char *text; /* a .poly instead */
    int32_t count;    /* sub-domains */
    double size, angle;
    mesh_feature feature; /* none if its factor is 0 */
    bool bisect;
} test_case;

uint32_t test_random(uint32_t *state);

/* Reads text to a clean graph, and to *poly (both empty on failure); returns -1 with log->error. */
int test_pslg(const char *text, mesh_poly *poly, mesh_pslg *out, mesh_log *log);

/* Up to all sub-domains made, none refined. Fails the test on errors. */
void test_mesh_make(test_mesh *m, const test_case *c);

/* Refines everything. Seed 0: in turn, splits delivered at once. Otherwise the seed chooses which
 * sub-domain works next and for how long, which of the waiting splits arrives (now and then twice),
 * and when a sub-domain is packed and rebuilt. */
void test_mesh_refine(test_mesh *m, uint32_t seed);

/* Runs the checker; the report is printed if a check fails. Returns mesh_check's result. */
int test_mesh_check(const test_mesh *m, mesh_check_result *result);

void test_mesh_fini(test_mesh *m);

/* Make, refine, check, free; fails the test if a check does. */
void test_mesh_run(const test_case *c, uint32_t seed);

/* A closed ring through the given points: gives a .poly text (free with free). */
char *test_ring_text(const double *xy, int count);

#endif
