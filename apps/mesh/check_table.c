#include "check_table.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t key)
{
    key ^= key >> 31;
    key *= 0x9e3779b97f4a7c15u;
    key ^= key >> 29;
    key *= 0xbf58476d1ce4e5b9u;
    return key ^ key >> 32;
}

static uint64_t pack_pair(int32_t a, int32_t b)
{
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

/* A power of two at least twice `count`. */
static uint64_t table_size(uint64_t count)
{
    uint64_t size = 16;
    while (size < 2 * count) {
        size *= 2;
    }
    return size;
}

static int32_t *find_point(const mesh_table *t, mesh_point p)
{
    uint64_t at = mix(pack_pair(p.x, p.y)) & t->point_mask;
    while (t->point_slot[at] >= 0 && !mesh_point_equal(t->point[t->point_slot[at]], p)) {
        at = (at + 1) & t->point_mask;
    }
    return &t->point_slot[at];
}

int32_t mesh_table_point(const mesh_table *t, mesh_point p)
{
    return *find_point(t, p);
}

static mesh_side *find_side(const mesh_table *t, int32_t from, int32_t to)
{
    uint64_t at = mix(pack_pair(from, to)) & t->side_mask;
    while (t->side[at].from >= 0 && (t->side[at].from != from || t->side[at].to != to)) {
        at = (at + 1) & t->side_mask;
    }
    return &t->side[at];
}

mesh_side *mesh_table_side(const mesh_table *t, int32_t from, int32_t to)
{
    mesh_side *side = find_side(t, from, to);
    return side->from < 0 ? NULL : side;
}

static int32_t add_point(mesh_table *t, mesh_point p)
{
    int32_t *slot = find_point(t, p);
    if (*slot < 0) {
        t->point[t->point_count] = p;
        *slot = t->point_count++;
    }
    return *slot;
}

static void add_triangle(mesh_table *t, const mesh_sub *sub, int32_t index, int32_t owner)
{
    int32_t tri = (int32_t)t->tri_count++, *corner = &t->corner[3 * (size_t)tri];
    t->owner[tri] = owner;
    for (int i = 0; i < 3; i++) {
        corner[i] = add_point(t, sub->point[sub->tri[index].v[i]]);
    }
    for (int i = 0; i < 3; i++) {
        int32_t from = corner[i], to = corner[(i + 1) % 3];
        mesh_side *side = find_side(t, from, to);
        if (side->from >= 0) {
            t->doubled++;
        } else {
            *side = (mesh_side){from, to, tri, 0};
        }
    }
}

static int make_room(mesh_table *t, uint64_t points, uint64_t tris)
{
    uint64_t point_size = table_size(points), side_size = table_size(3 * tris);
    t->point_mask = point_size - 1;
    t->side_mask = side_size - 1;
    t->point = malloc((points + 1) * sizeof *t->point);
    t->corner = malloc((3 * tris + 1) * sizeof *t->corner);
    t->owner = malloc((tris + 1) * sizeof *t->owner);
    t->point_slot = malloc(point_size * sizeof *t->point_slot);
    t->side = malloc(side_size * sizeof *t->side);
    if (t->point == NULL || t->corner == NULL || t->owner == NULL || t->point_slot == NULL ||
        t->side == NULL) {
        return -1;
    }
    memset(t->point_slot, -1, point_size * sizeof *t->point_slot);
    memset(t->side, -1, side_size * sizeof *t->side);
    return 0;
}

int mesh_table_init(mesh_table *t, mesh_sub *const *sub, int32_t count)
{
    uint64_t points = 0, tris = 0;
    *t = (mesh_table){0};
    for (int32_t i = 0; i < count; i++) {
        points += (uint64_t)sub[i]->head.point_count;
        tris += (uint64_t)sub[i]->head.tri_count;
    }
    if (3 * tris > INT32_MAX || points > INT32_MAX || make_room(t, points, tris) != 0) {
        mesh_table_fini(t);
        return -1;
    }
    for (int32_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < sub[i]->head.tri_count; k++) {
            add_triangle(t, sub[i], k, i);
        }
    }
    return 0;
}

void mesh_table_fini(mesh_table *t)
{
    free(t->point);
    free(t->corner);
    free(t->owner);
    free(t->point_slot);
    free(t->side);
    *t = (mesh_table){0};
}
