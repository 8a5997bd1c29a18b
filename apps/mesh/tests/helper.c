#include "helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t test_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

int test_pslg(const char *text, mesh_poly *poly, mesh_pslg *out, mesh_log *log)
{
    *out = (mesh_pslg){0};
    if (mesh_poly_parse(text, strlen(text), "test.poly", poly, log) != 0) {
        return -1;
    }
    int rc = mesh_pslg_create(poly, out, log);
    if (rc != 0) {
        mesh_poly_fini(poly);
    }
    return rc;
}

static void must(int rc, const mesh_log *log)
{
    if (rc != 0) {
        fail_msg("%s", log->error);
    }
}

void test_mesh_make(test_mesh *m, const test_case *c)
{
    mesh_log log = {0};
    *m = (test_mesh){.quality = {c->angle}};
    if (c->text != NULL) {
        must(test_pslg(c->text, &m->poly, &m->pslg, &log), &log);
    } else {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", MESH_DATA, c->file);
        must(mesh_poly_read(path, &m->poly, &log), &log);
        must(mesh_pslg_create(&m->poly, &m->pslg, &log), &log);
    }
    must(mesh_sizing_make(&m->pslg.frame, c->size, &c->feature, c->feature.factor > 0.0 ? 1 : 0,
                          &m->sizing, &log),
         &log);
    mesh_decompose_options options = {
        .count = c->count, .work_share = 0.5, .avoid_metis = c->bisect};
    must(mesh_decompose(&m->pslg, &m->sizing, &options, &m->decomp, &log), &log);
    m->sub = calloc((size_t)c->count, sizeof *m->sub);
    assert_non_null(m->sub);
    for (int32_t i = 0; i < c->count; i++) {
        m->sub[i] = mesh_decomp_sub(&m->decomp, &m->sizing, i, &log);
        must(m->sub[i] == NULL ? -1 : 0, &log);
    }
}

static void deliver(test_mesh *m, mesh_split s)
{
    m->splits++;
    assert_true(mesh_sub_apply_split(m->sub[s.to], s.edge, s.path) >= 0);
}

/* Packs and rebuilds a sub-domain, as a migration does. */
static void move(test_mesh *m, int32_t i)
{
    mesh_log log = {0};
    size_t size = mesh_sub_pack_size(m->sub[i]);
    char *bytes = malloc(size);
    assert_non_null(bytes);
    mesh_sub_pack(m->sub[i], bytes);
    mesh_sub_destroy(m->sub[i]);
    m->sub[i] = mesh_sub_unpack(bytes, size, &log);
    free(bytes);
    must(m->sub[i] == NULL ? -1 : 0, &log);
}

static bool all_idle(const test_mesh *m)
{
    for (int32_t i = 0; i < m->decomp.count; i++) {
        if (!mesh_sub_idle(m->sub[i])) {
            return false;
        }
    }
    return true;
}

static void refine_in_turn(test_mesh *m, mesh_splits *splits)
{
    while (!all_idle(m)) {
        for (int32_t i = 0; i < m->decomp.count; i++) {
            splits->count = 0;
            assert_int_equal(mesh_sub_refine(m->sub[i], &m->sizing, &m->quality, 0, splits),
                             MESH_DONE);
            for (int32_t k = 0; k < splits->count; k++) {
                deliver(m, splits->at[k]);
            }
        }
    }
}

static void refine_at_random(test_mesh *m, mesh_splits *splits, uint32_t seed)
{
    while (!all_idle(m) || splits->count > 0) {
        uint32_t dice = test_random(&seed);
        int32_t i = (int32_t)(test_random(&seed) % (uint32_t)m->decomp.count);
        if (dice % 4 == 0) {
            move(m, i);
        }
        if (dice % 3 != 0) {
            int64_t budget = 1 + test_random(&seed) % 200;
            assert_true(mesh_sub_refine(m->sub[i], &m->sizing, &m->quality, budget, splits) >= 0);
        } else if (splits->count > 0) {
            uint32_t at = test_random(&seed) % (uint32_t)splits->count;
            deliver(m, splits->at[at]);
            if (dice % 5 != 0) {
                splits->at[at] = splits->at[--splits->count];
            }
        }
    }
}

void test_mesh_refine(test_mesh *m, uint32_t seed)
{
    mesh_splits splits = {0};
    if (seed == 0) {
        refine_in_turn(m, &splits);
    } else {
        refine_at_random(m, &splits, seed);
    }
    mesh_splits_fini(&splits);
}

typedef struct report {
    char text[65536];
    size_t used;
} report;

static void keep_line(void *arg, const char *line)
{
    report *r = arg;
    int n = snprintf(r->text + r->used, sizeof r->text - r->used, "%s\n", line);
    r->used += n > 0 && (size_t)n < sizeof r->text - r->used ? (size_t)n : 0;
}

int test_mesh_check(const test_mesh *m, mesh_check_result *result)
{
    mesh_log log = {0};
    report *r = calloc(1, sizeof *r);
    assert_non_null(r);
    mesh_check_input in = {.pslg = &m->pslg,
                           .decomp = &m->decomp,
                           .sub = m->sub,
                           .sizing = &m->sizing,
                           .quality = &m->quality,
                           .poly = &m->poly,
                           .line = keep_line,
                           .arg = r};
    int rc = mesh_check(&in, result, &log);
    if (rc != 0) {
        print_message("%s%s\n", r->text, log.error);
    }
    free(r);
    return rc;
}

void test_mesh_fini(test_mesh *m)
{
    for (int32_t i = 0; i < m->decomp.count; i++) {
        mesh_sub_destroy(m->sub[i]);
    }
    free(m->sub);
    mesh_decomp_fini(&m->decomp);
    mesh_pslg_fini(&m->pslg);
    mesh_poly_fini(&m->poly);
}

void test_mesh_run(const test_case *c, uint32_t seed)
{
    test_mesh m;
    mesh_check_result result;
    test_mesh_make(&m, c);
    test_mesh_refine(&m, seed);
    if (test_mesh_check(&m, &result) != 0) {
        fail_msg("%s: %d sub-domains, size %g, angle %g, seed %u",
                 c->file != NULL ? c->file : c->text, c->count, c->size, c->angle, seed);
    }
    test_mesh_fini(&m);
}

char *test_ring_text(const double *xy, int count)
{
    size_t room = (size_t)count * 96 + 128, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    used += (size_t)snprintf(text, room, "%d 2 0 0\n", count);
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, room - used, "%d %.6f %.6f\n", i, xy[2 * i],
                                 xy[2 * i + 1]);
    }
    used += (size_t)snprintf(text + used, room - used, "%d 0\n", count);
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, room - used, "%d %d %d\n", i, i, (i + 1) % count);
    }
    (void)snprintf(text + used, room - used, "0\n");
    return text;
}
