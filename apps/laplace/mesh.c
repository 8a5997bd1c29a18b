#include "laplace/mesh.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void *laplace_memory(int64_t count, size_t bytes)
{
    void *all = calloc((size_t)count + 1, bytes);
    if (all == NULL) {
        fprintf(stderr, "laplace: no memory for %lld times %zu bytes\n", (long long)count, bytes);
        exit(1);
    }
    return all;
}

static _Noreturn void unreadable(const char *path, const char *why)
{
    fprintf(stderr, "laplace: %s: %s\n", path, why);
    exit(1);
}

/* The whole file, ended by a 0. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = 0;
    struct stat info = {.st_mode = S_IFREG};
    if (file != NULL && fstat(fileno(file), &info) == 0 && !S_ISREG(info.st_mode))
        unreadable(path, "is no file; expected one that the mesh application wrote");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0)
        unreadable(path, strerror(errno));
    char *text = laplace_memory(size, 1);
    rewind(file);
    if (fread(text, 1, (size_t)size, file) != (size_t)size)
        unreadable(path, "cannot be read");
    fclose(file);
    return text;
}

static int64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at != NULL ? atoll(at + strlen(key)) : -1;
}

static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* The data of the array called `name`, which has `bytes`. */
static void *read_array(const char *text, const char *path, const char *name, size_t bytes)
{
    char key[64];
    snprintf(key, sizeof key, "Name=\"%s\"", name);
    const char *entry = strstr(text, key), *data = strstr(text, "encoding=\"base64\"");
    data = data != NULL ? strchr(data, '_') : NULL;
    if (entry == NULL || data == NULL)
        unreadable(path, "has no array of points, connectivity or subdomain, in base64");
    int64_t offset = number_after(entry, "offset=\"");
    if (offset < 0 || (uint64_t)offset > strlen(data + 1))
        unreadable(path, "an array begins outside of the file");
    const char *at = data + 1 + offset;
    unsigned char *all = laplace_memory((int64_t)bytes + 8, 1);
    uint32_t bits = 0;
    int held = 0;
    for (size_t done = 0; done < bytes + 8; at++) {
        if (digit(*at) < 0)
            unreadable(path, "an array ends too early");
        bits = bits << 6 | (uint32_t)digit(*at);
        held += 6;
        if (held >= 8) {
            held -= 8;
            all[done++] = (unsigned char)(bits >> held);
        }
    }
    uint64_t length;
    memcpy(&length, all, sizeof length);
    if (length != bytes)
        unreadable(path, "an array is not as long as the numbers of points and cells say");
    memmove(all, all + 8, bytes);
    return all;
}

typedef struct spot {
    double x, y;
    int32_t point;
} spot;

static int by_place(const void *a, const void *b)
{
    const spot *s = a, *t = b;
    if (s->x != t->x)
        return s->x < t->x ? -1 : 1;
    return (s->y > t->y) - (s->y < t->y);
}

/* Sub-domains have points of their own on common edges: those at one place are one node. */
static void join_points(laplace_mesh *m)
{
    spot *spots = laplace_memory(m->points, sizeof *spots);
    int32_t *node = laplace_memory(m->points, sizeof *node);
    m->point_of = laplace_memory(m->points, sizeof *m->point_of);
    for (int64_t i = 0; i < m->points; i++)
        spots[i] = (spot){m->place[3 * i], m->place[3 * i + 1], (int32_t)i};
    qsort(spots, (size_t)m->points, sizeof *spots, by_place);
    for (int64_t i = 0; i < m->points; i++) {
        if (i == 0 || by_place(&spots[i - 1], &spots[i]) != 0)
            m->point_of[m->nodes++] = spots[i].point;
        node[spots[i].point] = (int32_t)m->nodes - 1;
    }
    for (int64_t i = 0; i < 3 * m->triangles; i++)
        m->corner[i] = node[m->corner[i]];
    free(spots);
    free(node);
}

static int by_ends(const void *a, const void *b)
{
    const int32_t *s = a, *t = b;
    return s[0] != t[0] ? (s[0] > t[0]) - (s[0] < t[0]) : (s[1] > t[1]) - (s[1] < t[1]);
}

/* A side that only one triangle has lies on the edge of the domain. */
static void find_edge(laplace_mesh *m)
{
    int32_t(*sides)[2] = laplace_memory(3 * m->triangles, sizeof *sides);
    m->edge = laplace_memory(m->nodes, 1);
    for (int64_t i = 0; i < 3 * m->triangles; i++) {
        int32_t a = m->corner[i], b = m->corner[i % 3 == 2 ? i - 2 : i + 1];
        sides[i][0] = a < b ? a : b;
        sides[i][1] = a < b ? b : a;
    }
    qsort(sides, (size_t)(3 * m->triangles), sizeof *sides, by_ends);
    for (int64_t i = 0, next; i < 3 * m->triangles; i = next) {
        for (next = i + 1; next < 3 * m->triangles && by_ends(sides[i], sides[next]) == 0;)
            next++;
        if (next == i + 1)
            m->edge[sides[i][0]] = m->edge[sides[i][1]] = 1;
    }
    free(sides);
}

int laplace_rank_of(const laplace_mesh *m, int64_t triangle, int ranks)
{
    return (int)((int64_t)m->sub[triangle] * ranks / m->subs);
}

/* A node belongs to the lowest rank that has a triangle at it. */
static void find_owners(laplace_mesh *m, int ranks)
{
    int32_t *used = laplace_memory(ranks, sizeof *used);
    m->owner = laplace_memory(m->nodes, sizeof *m->owner);
    m->index = laplace_memory(m->nodes, sizeof *m->index);
    for (int64_t i = 0; i < m->nodes; i++)
        m->owner[i] = ranks;
    for (int64_t i = 0; i < 3 * m->triangles; i++) {
        int rank = laplace_rank_of(m, i / 3, ranks);
        if (rank < m->owner[m->corner[i]])
            m->owner[m->corner[i]] = rank;
    }
    for (int64_t i = 0; i < m->nodes; i++)
        if (m->owner[i] < ranks)
            m->index[i] = used[m->owner[i]]++;
    free(used);
}

/* Corners are points, and sub-domains come in order. */
static bool is_sound(const laplace_mesh *m)
{
    for (int64_t i = 0; i < 3 * m->triangles; i++)
        if (m->corner[i] < 0 || m->corner[i] >= m->points)
            return false;
    for (int64_t i = 0; i < m->triangles; i++)
        if (m->sub[i] < (i == 0 ? 0 : m->sub[i - 1]) || m->sub[i] == INT32_MAX)
            return false;
    return true;
}

void laplace_mesh_init(laplace_mesh *m, const char *path, int ranks)
{
    char *text = read_file(path);
    m->points = number_after(text, "NumberOfPoints=\"");
    m->triangles = number_after(text, "NumberOfCells=\"");
    /* In base64 each takes more than a byte of the file. */
    int64_t most = (int64_t)strlen(text) < INT32_MAX / 3 ? (int64_t)strlen(text) : INT32_MAX / 3;
    if (m->points < 3 || m->triangles < 1 || m->points > most || m->triangles > most)
        unreadable(path, "expected a .vtu file of the mesh application");
    m->place = read_array(text, path, "Points", (size_t)m->points * 3 * sizeof(double));
    m->corner = read_array(text, path, "connectivity", (size_t)m->triangles * 3 * sizeof(int32_t));
    m->sub = read_array(text, path, "subdomain", (size_t)m->triangles * sizeof(int32_t));
    free(text);
    if (!is_sound(m))
        unreadable(path, "a corner is no point, or sub-domains are not in order");
    m->subs = m->sub[m->triangles - 1] + 1; /* they are in order */
    join_points(m);
    find_edge(m);
    find_owners(m, ranks);
}

void laplace_mesh_fini(laplace_mesh *m)
{
    void *all[] = {m->place, m->corner, m->sub, m->point_of, m->owner, m->index, m->edge};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}
