#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static bool wrong(char error[FRONT_TEXT_BYTES],
                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(error, FRONT_TEXT_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

static double volume_of(const front_mesh *mesh, const int32_t tet[4])
{
    double a[3][3];
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 3; d++)
            a[i][d] = mesh->points[tet[i + 1]][d] - mesh->points[tet[0]][d];
    return (a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
            a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
            a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0])) /
           -6;
}

static bool check_volumes(const front_mesh *mesh, const front_box *box, double *volume, char *error)
{
    double whole = 1;
    *volume = 0;
    for (int32_t i = 0; i < mesh->tet_count; i++) {
        const int32_t *t = mesh->tets[i];
        for (int c = 0; c < 4; c++)
            if (t[c] < 0 || t[c] >= mesh->point_count)
                return wrong(error, "tetrahedron %d has a corner %d; expected 0 to %d", i, t[c],
                             mesh->point_count - 1);
        double v = volume_of(mesh, t);
        if (!(v > 0))
            return wrong(error, "tetrahedron %d has the volume %g; expected more than 0", i, v);
        *volume += v;
    }
    for (int d = 0; d < 3; d++)
        whole *= box->high[d] - box->low[d];
    if (fabs(*volume - whole) > whole * FRONT_VOLUME_TOLERANCE)
        return wrong(error, "the volumes add up to %.17g; expected %.17g", *volume, whole);
    return true;
}

static bool check_points(const front_mesh *mesh, const front_surface *surface, char *error)
{
    if (mesh->point_count < surface->point_count)
        return wrong(error, "it has %d points, fewer than the %d of its surface", mesh->point_count,
                     surface->point_count);
    for (int32_t i = 0; i < surface->point_count; i++)
        for (int d = 0; d < 3; d++)
            if (mesh->points[i][d] != (double)surface->points[i][d] / FRONT_UNIT)
                return wrong(error, "point %d of the surface was moved: %.17g instead of %.17g", i,
                             mesh->points[i][d], (double)surface->points[i][d] / FRONT_UNIT);
    return true;
}

/* Turns the face so that its least corner is the first. */
static front_face turned(const int32_t corner[3])
{
    int first = corner[0] < corner[1] ? 0 : 1;
    first = corner[first] < corner[2] ? first : 2;
    return (front_face){{corner[first], corner[(first + 1) % 3], corner[(first + 2) % 3]}};
}

static int by_face(const void *a, const void *b)
{
    const front_face *f = a, *g = b;
    for (int i = 0; i < 3; i++)
        if (f->corner[i] != g->corner[i])
            return f->corner[i] < g->corner[i] ? -1 : 1;
    return 0;
}

static void sort_faces(front_face *faces, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        faces[i] = turned(faces[i].corner);
    qsort(faces, (size_t)count, sizeof *faces, by_face);
}

static bool compare_faces(const front_face *ours, const front_face *given, int32_t count,
                          char *error)
{
    for (int32_t i = 0; i < count; i++)
        if (by_face(&ours[i], &given[i]) != 0)
            return wrong(error, "its boundary has the triangle %d %d %d; its surface has %d %d %d",
                         ours[i].corner[0], ours[i].corner[1], ours[i].corner[2],
                         given[i].corner[0], given[i].corner[1], given[i].corner[2]);
    return true;
}

static bool check_boundary(const front_mesh *mesh, const front_surface *surface, char *error)
{
    front_face *ours = NULL;
    int32_t count = front_mesh_boundary(mesh, &ours);
    if (count == -2)
        return wrong(error, "tetrahedra overlap at a face");
    if (count >= 0 && count != surface->triangle_count) {
        free(ours);
        return wrong(error, "its boundary has %d triangles, its surface %d", count,
                     surface->triangle_count);
    }
    front_face *given = count < 0 ? NULL : malloc(((size_t)count + 1) * sizeof *given);
    if (given == NULL) {
        free(ours);
        return wrong(error, "no memory to look at it");
    }
    memcpy(given, surface->triangles, (size_t)count * sizeof *given);
    sort_faces(ours, count);
    sort_faces(given, count);
    bool right = compare_faces(ours, given, count, error);
    free(ours);
    free(given);
    return right;
}

bool front_check_mesh(const front_mesh *mesh, const front_surface *surface, const front_box *box,
                      double *volume, char error[FRONT_TEXT_BYTES])
{
    return check_volumes(mesh, box, volume, error) && check_points(mesh, surface, error) &&
           check_boundary(mesh, surface, error);
}

bool front_check_interface(const front_triangle *ours, int32_t our_count,
                           const front_triangle *theirs, int32_t their_count,
                           char error[FRONT_TEXT_BYTES])
{
    if (our_count != their_count)
        return wrong(error, "one side has %d triangles, the other %d", our_count, their_count);
    for (int32_t i = 0; i < our_count; i++)
        if (memcmp(&ours[i], &theirs[i], sizeof ours[i]) != 0)
            return wrong(error,
                         "triangle %d differs: at %g %g %g on one side, %g %g %g on the other", i,
                         ours[i].corner[0][0], ours[i].corner[0][1], ours[i].corner[0][2],
                         theirs[i].corner[0][0], theirs[i].corner[0][1], theirs[i].corner[0][2]);
    return true;
}
