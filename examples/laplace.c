/* Laplace's equation on a mesh of triangles, such as the mesh example writes: linear finite
 * elements, conjugate gradients. Ghost nodes are filled by one mover, and what triangles contribute
 * to nodes of other ranks is added there by another.
 *
 *   ferry run -n 2 build/examples/mesh --input examples/data/jutland.poly --out DIR
 *   ferry run -n 2 build/examples/laplace DIR/mesh.vtu
 *
 * Reads the file's points, corners and sub-domains (blocks in base64, as mesh writes them; every
 * rank reads the file). A rank has the triangles of some sub-domains. On the edge u = x + 2 y,
 * which is the solution everywhere, also of the discrete equations: checks residual and solution.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>
#include <ferry/mover.h>

typedef struct mesh {
    int64_t points, triangles, nodes, subs;
    double *place;     /* x, y, 0 per point of the file */
    int32_t *corner;   /* three per triangle: points, then nodes */
    int32_t *sub;      /* per triangle */
    int32_t *point_of; /* per node: a point at its place */
    int32_t *owner;    /* per node: rank */
    int32_t *index;    /* per node: its number among those of its owner */
    char *edge;        /* per node: on the edge of the domain */
} mesh;

typedef struct solver {
    ferry *f;
    mesh m;
    int64_t own, count; /* nodes of this rank, without and with ghosts */
    int32_t *node;      /* per local index */
    int32_t *local;     /* per node, or -1 */
    ferry_grid p, y;
    ferry_mover *out, *back; /* p to ghosts, y from ghosts */
} solver;

static void check(ferry *f, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "laplace: %s: %s\n", ferry_strerror(error), ferry_error_message(f));
    exit(1);
}

static void *memory(int64_t count, size_t bytes)
{
    void *all = calloc((size_t)count + 1, bytes);
    if (all == NULL)
        exit(1);
    return all;
}

static void unreadable(const char *path)
{
    fprintf(stderr, "laplace: %s is no mesh that I can read\n", path);
    exit(1);
}

/* The whole file, ended by a 0. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = 0;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0)
        unreadable(path);
    char *text = memory(size, 1);
    rewind(file);
    if (fread(text, 1, (size_t)size, file) != (size_t)size)
        unreadable(path);
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
        unreadable(path);
    const char *at = data + 1 + number_after(entry, "offset=\"");
    unsigned char *all = memory((int64_t)bytes + 8, 1);
    uint32_t bits = 0;
    int held = 0;
    for (size_t done = 0; done < bytes + 8; at++) {
        if (digit(*at) < 0)
            unreadable(path);
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
        unreadable(path);
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
static void join_points(mesh *m)
{
    spot *spots = memory(m->points, sizeof *spots);
    int32_t *node = memory(m->points, sizeof *node);
    m->point_of = memory(m->points, sizeof *m->point_of);
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
static void find_edge(mesh *m)
{
    int32_t(*sides)[2] = memory(3 * m->triangles, sizeof *sides);
    m->edge = memory(m->nodes, 1);
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

static int rank_of(const mesh *m, int64_t triangle, int ranks)
{
    return (int)((int64_t)m->sub[triangle] * ranks / m->subs);
}

/* A node belongs to the lowest rank that has a triangle at it. */
static void find_owners(mesh *m, int ranks)
{
    int32_t *used = memory(ranks, sizeof *used);
    m->owner = memory(m->nodes, sizeof *m->owner);
    m->index = memory(m->nodes, sizeof *m->index);
    for (int64_t i = 0; i < m->nodes; i++)
        m->owner[i] = ranks;
    for (int64_t i = 0; i < 3 * m->triangles; i++) {
        int rank = rank_of(m, i / 3, ranks);
        if (rank < m->owner[m->corner[i]])
            m->owner[m->corner[i]] = rank;
    }
    for (int64_t i = 0; i < m->nodes; i++)
        if (m->owner[i] < ranks)
            m->index[i] = used[m->owner[i]]++;
    free(used);
}

static void mesh_init(mesh *m, const char *path, int ranks)
{
    char *text = read_file(path);
    m->points = number_after(text, "NumberOfPoints=\"");
    m->triangles = number_after(text, "NumberOfCells=\"");
    if (m->points < 3 || m->triangles < 1)
        unreadable(path);
    m->place = read_array(text, path, "Points", (size_t)m->points * 3 * sizeof(double));
    m->corner = read_array(text, path, "connectivity", (size_t)m->triangles * 3 * sizeof(int32_t));
    m->sub = read_array(text, path, "subdomain", (size_t)m->triangles * sizeof(int32_t));
    free(text);
    m->subs = m->sub[m->triangles - 1] + 1; /* they are in order */
    join_points(m);
    find_edge(m);
    find_owners(m, ranks);
}

static void mesh_fini(mesh *m)
{
    void *all[] = {m->place, m->corner, m->sub, m->point_of, m->owner, m->index, m->edge};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Own nodes first, in the order of their numbers, then ghosts: all others at own triangles. */
static void number_nodes(solver *s)
{
    const mesh *m = &s->m;
    const int self = ferry_rank(s->f);
    s->node = memory(m->nodes, sizeof *s->node);
    s->local = memory(m->nodes, sizeof *s->local);
    for (int64_t i = 0; i < m->nodes; i++) {
        s->local[i] = m->owner[i] == self ? m->index[i] : -1;
        if (m->owner[i] == self)
            s->node[s->own++] = (int32_t)i;
    }
    s->count = s->own;
    for (int64_t i = 0; i < 3 * m->triangles; i++) {
        int32_t node = m->corner[i];
        if (rank_of(m, i / 3, ferry_ranks(s->f)) != self || s->local[node] >= 0)
            continue;
        s->local[node] = (int32_t)s->count;
        s->node[s->count++] = node;
    }
}

static void bind_ghosts(solver *s)
{
    const int64_t extent = s->count > 0 ? s->count : 1;
    const ferry_region line = ferry_region_sized(1, &extent);
    ferry_ghost *items = memory(s->count, sizeof *items);
    for (int64_t i = s->own; i < s->count; i++)
        items[i - s->own] = (ferry_ghost){
            .local = i, .remote = s->m.index[s->node[i]], .owner = s->m.owner[s->node[i]]};
    ferry_ghosts ghosts = {.items = items, .count = (size_t)(s->count - s->own)};
    ferry_mover_options add = FERRY_MOVER_DEFAULTS;
    add.operation.combine = FERRY_COMBINE_ADD;
    check(s->f, ferry_grid_alloc(s->f, line, sizeof(double), &s->p));
    check(s->f, ferry_grid_alloc(s->f, line, sizeof(double), &s->y));
    check(s->f, ferry_mover_bind_ghosts(s->f, &ghosts, &s->p, &s->p, NULL, &s->out));
    ghosts.back = true;
    check(s->f, ferry_mover_bind_ghosts(s->f, &ghosts, &s->y, &s->y, &add, &s->back));
    free(items);
}

static void move(const solver *s, ferry_mover *m)
{
    check(s->f, ferry_mover_start(m, NULL));
    check(s->f, ferry_mover_wait(m));
}

/* Adds one triangle's part of A p to y. */
static void add_triangle(const solver *s, int64_t t)
{
    const double *p = s->p.data;
    double *y = s->y.data, b[3], c[3];
    const double *at[3];
    int32_t v[3];
    for (int i = 0; i < 3; i++) {
        int32_t node = s->m.corner[3 * t + i];
        v[i] = s->local[node];
        at[i] = s->m.place + 3 * (int64_t)s->m.point_of[node];
    }
    for (int i = 0; i < 3; i++) {
        b[i] = at[(i + 1) % 3][1] - at[(i + 2) % 3][1];
        c[i] = at[(i + 2) % 3][0] - at[(i + 1) % 3][0];
    }
    double twice_area = fabs(b[0] * c[1] - b[1] * c[0]);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            y[v[i]] += (b[i] * b[j] + c[i] * c[j]) / (2 * twice_area) * p[v[j]];
}

/* y = A p inside the domain, 0 on its edge. */
static void apply(const solver *s)
{
    double *y = s->y.data;
    move(s, s->out);
    for (int64_t i = 0; i < s->count; i++)
        y[i] = 0;
    for (int64_t t = 0; t < s->m.triangles; t++)
        if (rank_of(&s->m, t, ferry_ranks(s->f)) == ferry_rank(s->f))
            add_triangle(s, t);
    move(s, s->back);
    for (int64_t i = 0; i < s->own; i++)
        if (s->m.edge[s->node[i]])
            y[i] = 0;
}

static double dot(const solver *s, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < s->own; i++)
        sum += a[i] * b[i];
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_SUM, &sum, &sum, 1));
    return sum;
}

static double wanted(const solver *s, int64_t i)
{
    const double *at = s->m.place + 3 * (int64_t)s->m.point_of[s->node[i]];
    return at[0] + 2 * at[1];
}

/* The residual of `u`, which is put in p: -A u. */
static void residual(const solver *s, const double *u, double *r)
{
    double *p = s->p.data, *y = s->y.data;
    memcpy(p, u, (size_t)s->own * sizeof *p);
    apply(s);
    for (int64_t i = 0; i < s->own; i++)
        r[i] = -y[i];
}

/* Conjugate gradients; returns the number of iterations. */
static int solve(const solver *s, double *u, double *r, double goal)
{
    double *p = s->p.data, *y = s->y.data;
    residual(s, u, r);
    memcpy(p, r, (size_t)s->own * sizeof *p);
    double rr = dot(s, r, r), first = rr;
    int iteration = 0;
    for (; rr > goal * goal * first && iteration < 20000; iteration++) {
        apply(s);
        double alpha = rr / dot(s, p, y);
        for (int64_t i = 0; i < s->own; i++) {
            u[i] += alpha * p[i];
            r[i] -= alpha * y[i];
        }
        double next = dot(s, r, r);
        for (int64_t i = 0; i < s->own; i++)
            p[i] = r[i] + next / rr * p[i];
        rr = next;
    }
    return iteration;
}

/* Solves, and checks residual and solution. */
static bool run(const solver *s)
{
    double *u = memory(s->own, sizeof *u), *r = memory(s->own, sizeof *r);
    for (int64_t i = 0; i < s->own; i++)
        u[i] = s->m.edge[s->node[i]] ? wanted(s, i) : 0;
    residual(s, u, r);
    double first = sqrt(dot(s, r, r)), worst = 0, largest = 0;
    int iterations = solve(s, u, r, 1e-12);
    residual(s, u, r);
    double last = sqrt(dot(s, r, r)) / first;
    for (int64_t i = 0; i < s->own; i++) {
        worst = fmax(worst, fabs(u[i] - wanted(s, i)));
        largest = fmax(largest, fabs(wanted(s, i)));
    }
    double both[2] = {worst, largest};
    check(s->f, ferry_allreduce(s->f, FERRY_DOUBLE, FERRY_MAX, both, both, 2));
    bool good = last < 1e-10 && both[0] < 1e-8 * both[1];
    if (ferry_rank(s->f) == 0)
        printf("%lld nodes, %lld triangles on %d ranks: %d iterations, residual %.1e, error %.1e: "
               "%s\n",
               (long long)s->m.nodes, (long long)s->m.triangles, ferry_ranks(s->f), iterations,
               last, both[0] / both[1], good ? "right" : "WRONG");
    free(u);
    free(r);
    return good;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    solver s = {.f = f};
    if (argc != 2) {
        fprintf(stderr, "usage: laplace MESH.vtu\n");
        return 2;
    }
    mesh_init(&s.m, argv[1], ferry_ranks(f));
    number_nodes(&s);
    bind_ghosts(&s);
    bool good = run(&s);
    check(f, ferry_mover_free(s.out));
    check(f, ferry_mover_free(s.back));
    check(f, ferry_free(f, s.p.data));
    check(f, ferry_free(f, s.y.data));
    free(s.node);
    free(s.local);
    mesh_fini(&s.m);
    return !good;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main);
}
