/* MPI's side of Laplace's equation, by hand. Ghosts are in the order of their owners, so what comes
 * for them is received where it belongs, and what they give is sent from there. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#include "laplace/solve.h"
#include "peers/mover_apps.h"
#include "peers/mover_mpi_side.h"

/* The exchange of this rank and another. */
typedef struct link {
    int rank;
    int ghost_first, ghost_count; /* here, of the other's nodes */
    int *own, own_count;          /* nodes here that have ghosts there */
    double *packed;               /* own_count */
} link;

typedef struct solver {
    laplace l;
    link *links;
    int link_count;
    MPI_Request *requests; /* two per link */
    MPI_Status *statuses;
    int *asked; /* the lists of own nodes, of all links */
    double *packed;
} solver;

/* Every rank tells the owners of its ghosts which nodes it wants. */
static void connect(solver *s, int ranks)
{
    const laplace *l = &s->l;
    const size_t ghosts = (size_t)(l->count - l->own), all = (size_t)ranks;
    int *wants = bench_memory(all, sizeof *wants), *gives = bench_memory(all, sizeof *gives);
    int *wants_at = bench_memory(all, sizeof *wants_at),
        *gives_at = bench_memory(all, sizeof *gives_at);
    int *indices = bench_memory(ghosts, sizeof *indices);
    for (size_t i = 0; i < ghosts; i++) {
        wants[l->ghosts[i].owner]++;
        indices[i] = l->ghosts[i].index;
    }
    MPI_Alltoall(wants, 1, MPI_INT, gives, 1, MPI_INT, MPI_COMM_WORLD);
    for (size_t r = 0; r + 1 < all; r++) {
        wants_at[r + 1] = wants_at[r] + wants[r];
        gives_at[r + 1] = gives_at[r] + gives[r];
    }
    const size_t total = (size_t)(gives_at[all - 1] + gives[all - 1]);
    s->asked = bench_memory(total, sizeof *s->asked);
    s->packed = bench_memory(total, sizeof *s->packed);
    MPI_Alltoallv(indices, wants, wants_at, MPI_INT, s->asked, gives, gives_at, MPI_INT,
                  MPI_COMM_WORLD);
    s->links = bench_memory(all, sizeof *s->links);
    s->requests = bench_memory(2 * all, sizeof *s->requests);
    s->statuses = bench_memory(2 * all, sizeof *s->statuses);
    for (int r = 0; r < ranks; r++)
        if (wants[r] || gives[r])
            s->links[s->link_count++] = (link){.rank = r,
                                               .ghost_first = (int)l->own + wants_at[r],
                                               .ghost_count = wants[r],
                                               .own = s->asked + gives_at[r],
                                               .own_count = gives[r],
                                               .packed = s->packed + gives_at[r]};
    int *done[] = {wants, gives, wants_at, gives_at, indices};
    for (size_t i = 0; i < sizeof done / sizeof *done; i++)
        free(done[i]);
}

static void wait_all(const solver *s)
{
    MPI_Waitall(2 * s->link_count, s->requests, s->statuses);
}

static void out(void *arg)
{
    const solver *s = arg;
    double *p = s->l.p;
    for (int i = 0; i < s->link_count; i++)
        MPI_Irecv(p + s->links[i].ghost_first, s->links[i].ghost_count, MPI_DOUBLE,
                  s->links[i].rank, 1, MPI_COMM_WORLD, &s->requests[2 * i]);
    for (int i = 0; i < s->link_count; i++) {
        const link *k = &s->links[i];
        for (int j = 0; j < k->own_count; j++)
            k->packed[j] = p[k->own[j]];
        MPI_Isend(k->packed, k->own_count, MPI_DOUBLE, k->rank, 1, MPI_COMM_WORLD,
                  &s->requests[2 * i + 1]);
    }
    wait_all(s);
}

static void back(void *arg)
{
    const solver *s = arg;
    double *y = s->l.y;
    for (int i = 0; i < s->link_count; i++) {
        const link *k = &s->links[i];
        MPI_Irecv(k->packed, k->own_count, MPI_DOUBLE, k->rank, 2, MPI_COMM_WORLD,
                  &s->requests[2 * i]);
        MPI_Isend(y + k->ghost_first, k->ghost_count, MPI_DOUBLE, k->rank, 2, MPI_COMM_WORLD,
                  &s->requests[2 * i + 1]);
    }
    wait_all(s);
    for (int i = 0; i < s->link_count; i++)
        for (int j = 0; j < s->links[i].own_count; j++)
            y[s->links[i].own[j]] += s->links[i].packed[j];
}

static double sum(void *arg, double value)
{
    (void)arg;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

double bench_mpi_laplace(void *context, const bench_job *job)
{
    const bench_mpi_state *state = context;
    solver s = {0};
    bench_laplace_init(&s.l, job, state->rank, state->ranks);
    connect(&s, state->ranks);
    s.l.p = bench_memory((size_t)s.l.count, sizeof *s.l.p);
    s.l.y = bench_memory((size_t)s.l.count, sizeof *s.l.y);
    s.l.out = out;
    s.l.back = back;
    s.l.sum = sum;
    s.l.arg = &s;
    double ns = bench_laplace_run(&s.l, job);
    void *all[] = {s.l.p, s.l.y, s.links, s.requests, s.statuses, s.asked, s.packed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    laplace_fini(&s.l);
    return ns;
}
