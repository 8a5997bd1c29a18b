#include "mesh.h"

#include <stdlib.h>
#include <string.h>

/* A face with its corners in ascending order; `even`: the order keeps the side that it is seen
 * from. */
typedef struct sorted_face {
    int32_t key[3];
    int32_t even;
    front_face face;
} sorted_face;

bool front_mesh_init(front_mesh *mesh, int32_t points, int32_t tets)
{
    mesh->points = malloc(((size_t)points + 1) * sizeof *mesh->points);
    mesh->tets = malloc(((size_t)tets + 1) * sizeof *mesh->tets);
    mesh->point_count = points;
    mesh->tet_count = tets;
    if (mesh->points != NULL && mesh->tets != NULL)
        return true;
    front_mesh_fini(mesh);
    return false;
}

void front_mesh_fini(front_mesh *mesh)
{
    free(mesh->points);
    free(mesh->tets);
    *mesh = (front_mesh){0};
}

static void exchange(sorted_face *f, int i, int j)
{
    if (f->key[i] <= f->key[j])
        return;
    int32_t held = f->key[i];
    f->key[i] = f->key[j];
    f->key[j] = held;
    f->even = !f->even;
}

static sorted_face sorted(int32_t a, int32_t b, int32_t c)
{
    sorted_face f = {{a, b, c}, 1, {{a, b, c}}};
    exchange(&f, 0, 1);
    exchange(&f, 1, 2);
    exchange(&f, 0, 1);
    return f;
}

static int by_key(const void *a, const void *b)
{
    const sorted_face *f = a, *g = b;
    for (int i = 0; i < 3; i++)
        if (f->key[i] != g->key[i])
            return f->key[i] < g->key[i] ? -1 : 1;
    return f->even - g->even;
}

/* All faces of all tetrahedra, sorted. NULL: no memory. */
static sorted_face *all_faces(const front_mesh *mesh)
{
    static const int corner[4][3] = {{0, 1, 2}, {0, 3, 1}, {1, 3, 2}, {2, 3, 0}};
    size_t count = 4 * (size_t)mesh->tet_count;
    sorted_face *faces = malloc((count + 1) * sizeof *faces);
    if (faces == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const int32_t *t = mesh->tets[i / 4];
        const int *c = corner[i % 4];
        faces[i] = sorted(t[c[0]], t[c[1]], t[c[2]]);
    }
    qsort(faces, count, sizeof *faces, by_key);
    return faces;
}

static bool same_key(const sorted_face *f, const sorted_face *g)
{
    return memcmp(f->key, g->key, sizeof f->key) == 0;
}

int32_t front_mesh_boundary(const front_mesh *mesh, front_face **out)
{
    size_t count = 4 * (size_t)mesh->tet_count;
    sorted_face *faces = all_faces(mesh);
    front_face *kept = malloc((count + 1) * sizeof *kept);
    int32_t found = faces == NULL || kept == NULL ? -1 : 0;
    for (size_t i = 0; found >= 0 && i < count; i++) {
        bool pair = i + 1 < count && same_key(&faces[i], &faces[i + 1]);
        bool more = pair && i + 2 < count && same_key(&faces[i], &faces[i + 2]);
        if (more || (pair && faces[i].even == faces[i + 1].even))
            found = -2;
        else if (!pair)
            kept[found++] = faces[i].face;
        i += pair;
    }
    free(faces);
    if (found < 0) {
        free(kept);
        return found;
    }
    *out = kept;
    return found;
}

static int by_coordinates(const void *a, const void *b)
{
    const double *p = a, *q = b;
    for (int d = 0; d < 3; d++)
        if (p[d] != q[d])
            return p[d] < q[d] ? -1 : 1;
    return 0;
}

static int by_corners(const void *a, const void *b)
{
    const front_triangle *t = a, *u = b;
    int order = 0;
    for (int i = 0; i < 3 && order == 0; i++)
        order = by_coordinates(t->corner[i], u->corner[i]);
    return order;
}

int32_t front_mesh_interface(const front_mesh *mesh, int axis, double at, front_triangle **out)
{
    front_face *faces;
    int32_t count = front_mesh_boundary(mesh, &faces), found = 0;
    if (count < 0)
        return count;
    front_triangle *triangles = malloc(((size_t)count + 1) * sizeof *triangles);
    for (int32_t i = 0; triangles != NULL && i < count; i++) {
        front_triangle *t = &triangles[found];
        int within = 0;
        for (int c = 0; c < 3; c++) {
            memcpy(t->corner[c], mesh->points[faces[i].corner[c]], sizeof t->corner[c]);
            within += t->corner[c][axis] == at;
        }
        qsort(t->corner, 3, sizeof t->corner[0], by_coordinates);
        found += within == 3;
    }
    free(faces);
    if (triangles == NULL)
        return -1;
    qsort(triangles, (size_t)found, sizeof *triangles, by_corners);
    *out = triangles;
    return found;
}
