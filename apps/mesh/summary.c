#include "output.h"
#include "sink.h"

#include <math.h>

static const char *const check_name[MESH_CHECK_KINDS] = {
    "orientation", "overlap", "boundary", "conformity", "delaunay",
    "size",        "angle",   "area",     "input",      "euler"};

static void put_number(mesh_sink *s, const char *name, double value, const char *after)
{
    mesh_sink_print(s, "\"%s\": %.9g%s", name, isfinite(value) ? value : 0.0, after);
}

static void put_count(mesh_sink *s, const char *name, int64_t value, const char *after)
{
    mesh_sink_print(s, "\"%s\": %lld%s", name, (long long)value, after);
}

static void put_features(mesh_sink *s, const mesh_summary *m)
{
    mesh_sink_print(s, "  \"features\": [");
    for (int32_t i = 0; i < m->feature_count; i++) {
        const mesh_feature *f = &m->feature[i];
        mesh_sink_print(s, "%s[%.9g, %.9g, %.9g, %.9g]", i > 0 ? ", " : "", f->x, f->y, f->radius,
                        f->factor);
    }
    mesh_sink_print(s, "],\n");
}

static void put_ranks(mesh_sink *s, const mesh_summary *m)
{
    mesh_sink_print(s, "  \"per_rank\": [\n");
    for (int32_t i = 0; i < m->ranks && m->rank != NULL; i++) {
        const mesh_rank_summary *r = &m->rank[i];
        mesh_sink_print(s, "    {\"rank\": %d, ", i);
        put_number(s, "busy_s", r->busy_s, ", ");
        put_number(s, "runtime_s", r->runtime_s, ", ");
        put_number(s, "idle_s", r->idle_s, ", ");
        put_count(s, "triangles", r->triangles, ", ");
        put_count(s, "messages", r->messages, ", ");
        put_count(s, "splits", r->splits, ", ");
        put_count(s, "migrations_in", r->migrations_in, ", ");
        put_count(s, "migrations_out", r->migrations_out, "}");
        mesh_sink_print(s, "%s\n", i + 1 < m->ranks ? "," : "");
    }
    mesh_sink_print(s, "  ],\n");
}

static void put_check(mesh_sink *s, const mesh_check_result *c)
{
    if (c == NULL) {
        mesh_sink_print(s, "  \"check\": null\n");
        return;
    }
    bool passed = true;
    mesh_sink_print(s, "  \"check\": {\"faults\": {");
    for (int k = 0; k < MESH_CHECK_KINDS; k++) {
        put_count(s, check_name[k], c->faults[k], k + 1 < MESH_CHECK_KINDS ? ", " : "}, ");
        passed = passed && c->faults[k] == 0;
    }
    put_count(s, "left_in_input_corners", c->excused_input, ", ");
    put_count(s, "left_at_grid_limit", c->excused_limit, ", ");
    put_number(s, "angle_min_deg", c->angle_min_deg, ", ");
    mesh_sink_print(s, "\"passed\": %s}\n", passed ? "true" : "false");
}

int mesh_write_summary(const char *path, const mesh_summary *m, mesh_log *log)
{
    mesh_sink s;
    if (mesh_sink_open(&s, path, log) != 0) {
        return -1;
    }
    mesh_sink_print(&s, "{\n  \"input\": ");
    mesh_sink_json(&s, m->input != NULL ? m->input : "");
    mesh_sink_print(&s, ",\n  \"scheduler\": ");
    mesh_sink_json(&s, m->scheduler != NULL ? m->scheduler : "");
    mesh_sink_print(&s, ",\n  ");
    put_count(&s, "ranks", m->ranks, ", ");
    put_count(&s, "cores", m->cores, ", ");
    put_count(&s, "subdomains", m->subdomains, ",\n  ");
    put_number(&s, "angle_deg", m->angle_deg, ", ");
    put_number(&s, "size", m->size, ",\n");
    put_features(&s, m);
    mesh_sink_print(&s, "  ");
    put_number(&s, "makespan_s", m->makespan_s, ", ");
    put_number(&s, "bound_s", m->bound_s, ", ");
    put_number(&s, "decompose_s", m->decompose_s, ",\n  ");
    put_count(&s, "triangles", m->triangles, ", ");
    put_count(&s, "points", m->points, ", ");
    put_count(&s, "splits", m->splits, ", ");
    put_count(&s, "memory_bytes", m->memory_bytes, ", ");
    put_number(&s, "bytes_per_triangle",
               m->triangles > 0 ? (double)m->memory_bytes / (double)m->triangles : 0.0, ",\n");
    put_ranks(&s, m);
    put_check(&s, m->check);
    mesh_sink_print(&s, "}\n");
    return mesh_sink_close(&s, false, log);
}
