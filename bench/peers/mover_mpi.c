/* MPI against the movers, written by hand for two ranks: one message per neighbour and movement,
 * receives posted first, own faces copied while it travels. With BENCH_VARIANT=types in the
 * environment derived datatypes take the place of packing. */
#include <mpi.h>

#include "common/team.h"
#include "peers/mover_exposed.h"
#include "peers/mover_mpi_side.h"
#include "peers/mover_work.h"

#include <stdbool.h>
#include <stdio.h>

typedef bench_mpi_state state;

/* All faces that travel, as one type over the blocks' memory. */
static MPI_Datatype type_of(const rank_blocks *b, bool send)
{
    int first = send ? b->fill_count : 0, end = first + (send ? b->send_count : b->fill_count);
    MPI_Datatype parts[64] = {MPI_DATATYPE_NULL}, all;
    MPI_Aint at[64] = {0};
    int lengths[64] = {0}, count = 0;
    for (int k = first; k < end; k++) {
        const face *f = &b->faces[k];
        MPI_Datatype row, plane;
        if (!send && f->from_block >= 0)
            continue;
        const double *start =
            send ? block_at(b, f->from_block) + f->from : block_at(b, f->to_block) + f->to;
        MPI_Type_vector((int)f->count[1], (int)f->count[2], (int)f->stride[1], MPI_DOUBLE, &row);
        MPI_Type_create_hvector((int)f->count[0], 1, (MPI_Aint)(f->stride[0] * sizeof(double)), row,
                                &plane);
        MPI_Type_free(&row);
        at[count] = (MPI_Aint)((const char *)start - (const char *)b->data);
        lengths[count] = 1;
        parts[count++] = plane;
    }
    MPI_Type_create_struct(count, lengths, at, parts, &all);
    MPI_Type_commit(&all);
    for (int i = 0; i < count; i++)
        MPI_Type_free(&parts[i]);
    return all;
}

typedef struct exchange {
    rank_blocks b;
    double *out, *in;
    size_t out_count, in_count;
    MPI_Datatype out_type, in_type;
    int other; /* the other rank */
    MPI_Request requests[2];
} exchange;

static void exchange_init(exchange *x, const state *s, int n, int edge)
{
    if (blocks_init(&x->b, n, edge, s->rank, s->ranks))
        exit(1);
    x->out_count = x->in_count = 0;
    for (int k = 0; k < x->b.fill_count + x->b.send_count; k++) {
        const face *f = &x->b.faces[k];
        if (k >= x->b.fill_count)
            x->out_count += face_size(f);
        else if (f->from_block < 0)
            x->in_count += face_size(f);
    }
    x->out = calloc(x->out_count + 1, sizeof *x->out);
    x->in = calloc(x->in_count + 1, sizeof *x->in);
    if (!x->out || !x->in)
        exit(1);
    x->out_type = type_of(&x->b, true);
    x->in_type = type_of(&x->b, false);
}

static void exchange_fini(exchange *x)
{
    MPI_Type_free(&x->out_type);
    MPI_Type_free(&x->in_type);
    free(x->out);
    free(x->in);
    blocks_fini(&x->b);
}

static void own_faces(const rank_blocks *b)
{
    for (int k = 0; k < b->fill_count; k++) {
        const face *f = &b->faces[k];
        if (f->from_block >= 0)
            face_copy(f, block_at(b, f->to_block) + f->to, block_at(b, f->from_block) + f->from);
    }
}

static void begin_packed(exchange *x)
{
    const int other = x->other;
    const rank_blocks *b = &x->b;
    double *at = x->out;
    MPI_Irecv(x->in, (int)x->in_count, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &x->requests[0]);
    for (int k = b->fill_count; k < b->fill_count + b->send_count; k++) {
        const face *f = &b->faces[k];
        face_pack(f, at, block_at(b, f->from_block) + f->from);
        at += face_size(f);
    }
    MPI_Isend(x->out, (int)x->out_count, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &x->requests[1]);
    own_faces(b);
}

static void end_packed(exchange *x)
{
    MPI_Status statuses[2];
    const rank_blocks *b = &x->b;
    const double *at = x->in;
    MPI_Waitall(2, x->requests, statuses);
    for (int k = 0; k < b->fill_count; k++) {
        const face *f = &b->faces[k];
        if (f->from_block >= 0)
            continue;
        face_unpack(f, block_at(b, f->to_block) + f->to, at);
        at += face_size(f);
    }
}

static void move_packed(exchange *x)
{
    begin_packed(x);
    end_packed(x);
}

static void move_typed(exchange *x)
{
    const int other = x->other;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(x->b.data, 1, x->in_type, other, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(x->b.data, 1, x->out_type, other, 7, MPI_COMM_WORLD, &requests[1]);
    own_faces(&x->b);
    MPI_Waitall(2, requests, statuses);
}

static double halo_of(const state *s, const bench_job *job, int edge)
{
    exchange x;
    uint64_t start = 0, warm = bench_warmup(job);
    exchange_init(&x, s, (int)job->size_bytes, edge);
    x.other = 1 - s->rank;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (s->types)
            move_typed(&x);
        else
            move_packed(&x);
    }
    double ns = (double)(bench_now() - start);
    exchange_fini(&x);
    return ns;
}

static void begin_hidden(void *arg)
{
    begin_packed(arg);
}

static void end_hidden(void *arg)
{
    end_packed(arg);
}

/* The part that the library does by itself while the program computes. */
static double exposed_halo(void *context, const bench_job *job)
{
    const state *s = context;
    exchange x;
    exchange_init(&x, s, (int)job->size_bytes, 2);
    x.other = 1 - s->rank;
    const exposed e = {.begin = begin_hidden,
                       .end = end_hidden,
                       .arg = &x,
                       .count = job->count,
                       .sleeps = job->kind == BENCH_EXPOSED_SLEEP};
    move_packed(&x);
    uint64_t start = bench_now();
    for (uint64_t i = 0; i < job->count; i++)
        move_packed(&x);
    double mean = (double)(bench_now() - start) / (double)job->count;
    MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    double percent = exposed_percent(&e, mean);
    exchange_fini(&x);
    return percent;
}

static double halo(void *context, const bench_job *job)
{
    return halo_of(context, job, 1);
}

static double halo_8(void *context, const bench_job *job)
{
    return halo_of(context, job, 2);
}

/* The slabs, and the buffers between them. */
typedef struct slabs {
    int n, part, ranks, rank; /* the rank's share of an edge; n is a multiple of the ranks */
    double *from, *to, *out, *in;
    int counts[BENCH_RANKS_MAX], starts[BENCH_RANKS_MAX];
} slabs;

static void slabs_init(slabs *c, const state *s, const bench_job *job)
{
    *c = (slabs){.n = cube_edge(job->size_bytes), .ranks = s->ranks, .rank = s->rank};
    c->part = c->n / s->ranks;
    size_t count = (size_t)c->part * (size_t)c->n * (size_t)c->n;
    c->from = calloc(4 * count, sizeof *c->from);
    if (!c->from || c->part * s->ranks != c->n)
        exit(1);
    /* Pages that were never written would all be the same one. */
    for (size_t i = 0; i < 4 * count; i++)
        c->from[i] = 1;
    c->to = c->from + count;
    c->out = c->to + count;
    c->in = c->out + count;
    for (int r = 0; r < s->ranks; r++) {
        c->counts[r] = c->part * c->part * c->n;
        c->starts[r] = r * c->counts[r];
    }
}

enum { TILE = 16 };

/* Target k, j, i from source i, j, k; in tiles, one target row of this rank's i after the other. */
static void pack_turned(slabs *c)
{
    const size_t n = (size_t)c->n, part = (size_t)c->part;
    for (size_t j = 0; j < n; j++)
        for (size_t kk = 0; kk < n; kk += TILE)
            for (size_t ii = 0; ii < part; ii += TILE)
                for (size_t k = kk; k < n && k < kk + TILE; k++)
                    for (size_t i = ii; i < part && i < ii + TILE; i++)
                        c->out[(k * n + j) * part + i] = c->from[(i * n + j) * n + k];
}

static void unpack_turned(slabs *c)
{
    const size_t n = (size_t)c->n, part = (size_t)c->part;
    for (size_t r = 0; r < (size_t)c->ranks; r++)
        for (size_t row = 0; row < part * n; row++)
            memcpy(c->to + row * n + r * part, c->in + (r * part * n + row) * part,
                   part * sizeof(double));
}

static void pack_rows(slabs *c)
{
    const size_t n = (size_t)c->n, part = (size_t)c->part;
    for (size_t r = 0; r < (size_t)c->ranks; r++)
        for (size_t i = 0; i < part; i++)
            memcpy(c->out + (r * part + i) * part * n, c->from + (i * n + r * part) * n,
                   part * n * sizeof(double));
}

static void alltoall(slabs *c, double *in)
{
    MPI_Alltoallv(c->out, c->counts, c->starts, MPI_DOUBLE, in, c->counts, c->starts, MPI_DOUBLE,
                  MPI_COMM_WORLD);
}

static double transpose(void *context, const bench_job *job)
{
    slabs c;
    uint64_t start = 0, warm = bench_warmup(job);
    slabs_init(&c, context, job);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        pack_turned(&c);
        alltoall(&c, c.in);
        unpack_turned(&c);
    }
    double ns = (double)(bench_now() - start);
    free(c.from);
    return ns;
}

/* Without packing: rows i of the source, columns of the other rank, as one type. */
static void alltoall_typed(slabs *c, MPI_Datatype *out, MPI_Datatype *in)
{
    int ones[BENCH_RANKS_MAX], from[BENCH_RANKS_MAX], to[BENCH_RANKS_MAX];
    for (int r = 0; r < c->ranks; r++) {
        ones[r] = 1;
        from[r] = (int)((size_t)(r * c->part * c->n) * sizeof(double));
        to[r] = (int)((size_t)c->starts[r] * sizeof(double));
    }
    MPI_Alltoallw(c->from, ones, from, out, c->to, ones, to, in, MPI_COMM_WORLD);
}

static double redistribute(void *context, const bench_job *job)
{
    const state *s = context;
    slabs c;
    uint64_t start = 0, warm = bench_warmup(job);
    slabs_init(&c, s, job);
    MPI_Datatype out[BENCH_RANKS_MAX], in[BENCH_RANKS_MAX], rows, dense;
    MPI_Type_vector(c.part, c.part * c.n, c.n * c.n, MPI_DOUBLE, &rows);
    MPI_Type_contiguous(c.counts[0], MPI_DOUBLE, &dense);
    MPI_Type_commit(&rows);
    MPI_Type_commit(&dense);
    for (int r = 0; r < c.ranks; r++) {
        out[r] = rows;
        in[r] = dense;
    }
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (s->types) {
            alltoall_typed(&c, out, in);
        } else {
            pack_rows(&c);
            alltoall(&c, c.to);
        }
    }
    double ns = (double)(bench_now() - start);
    MPI_Type_free(&rows);
    MPI_Type_free(&dense);
    free(c.from);
    return ns;
}

int main(int argc, char **argv)
{
    state s = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    const char *variant = getenv("BENCH_VARIANT");
    s.types = variant && strcmp(variant, "types") == 0;
    bench_board *board = bench_board_open();
    if (board) {
        bench_pin(s.rank);
        bench_team team = {.board = board, .rank = s.rank, .context = &s};
        team.kinds[BENCH_HALO] = s.ranks == 2 ? halo : NULL;
        team.kinds[BENCH_HALO_8] = s.ranks == 2 ? halo_8 : NULL;
        team.kinds[BENCH_EXPOSED] = s.ranks == 2 && !s.types ? exposed_halo : NULL;
        team.kinds[BENCH_EXPOSED_SLEEP] = s.ranks == 2 && !s.types ? exposed_halo : NULL;
        team.kinds[BENCH_TRANSPOSE] = s.types ? NULL : transpose;
        team.kinds[BENCH_REDISTRIBUTE] = redistribute;
        team.kinds[BENCH_REDBLACK] = s.types ? NULL : bench_mpi_redblack;
        team.kinds[BENCH_MG] = s.types ? NULL : bench_mpi_mg;
        team.kinds[BENCH_FT] = s.types ? NULL : bench_mpi_ft;
        team.kinds[BENCH_SUMMA] = s.types ? NULL : bench_mpi_summa;
        team.kinds[BENCH_AMR] = s.types ? NULL : bench_mpi_amr;
#ifdef BENCH_MESHES
        team.kinds[BENCH_LAPLACE] = s.types ? NULL : bench_mpi_laplace;
#endif
        bench_team_serve(&team);
    }
    int status = board ? 0 : bench_team_empty(argc, argv) ? 0 : 1;
    MPI_Finalize();
    return status;
}
