/* The reference of the movers benchmark: each rank copies the same bytes with the same strides
 * within its own memory, by plain loops and memcpy, and waits for nobody. */
#include "common/team.h"
#include "peers/mover_work.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static double halo_of(const bench_job *job, int edge)
{
    rank_blocks b;
    uint64_t start = 0, warm = bench_warmup(job);
    if (blocks_init(&b, (int)job->size_bytes, edge, 0, 1))
        exit(1);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        for (int k = 0; k < b.fill_count; k++) {
            const face *f = &b.faces[k];
            /* Face and ghost layer differ by an offset alone. */
            face_copy(f, block_at(&b, f->to_block) + f->to, block_at(&b, f->from_block) + f->from);
        }
    }
    double ns = (double)(bench_now() - start);
    blocks_fini(&b);
    return ns;
}

static double halo(void *context, const bench_job *job)
{
    (void)context;
    return halo_of(job, 1);
}

static double halo_8(void *context, const bench_job *job)
{
    (void)context;
    return halo_of(job, 2);
}

/* A rank's share of the cube. */
static double copy(void *context, const bench_job *job)
{
    (void)context;
    uint64_t start = 0, warm = bench_warmup(job);
    size_t bytes = (size_t)job->size_bytes / 2;
    char *from = calloc(bytes, 1), *to = calloc(bytes, 1);
    if (!from || !to)
        exit(1);
    /* Pages that were never written would all be the same one. */
    memset(from, 1, bytes);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        memcpy(to, from, bytes);
        from[i % bytes]++;
    }
    double ns = (double)(bench_now() - start);
    free(from);
    free(to);
    return ns;
}

/* Starts the other ranks; returns the number of the caller. */
static int fork_ranks(int ranks)
{
    for (int rank = 1; rank < ranks; rank++) {
        pid_t parent = getpid(), pid = fork();
        if (pid < 0)
            exit(1);
        if (pid > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            exit(1);
        return rank;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *text = getenv("BENCH_RANKS");
    int ranks = text ? atoi(text) : 1;
    if (bench_team_empty(argc, argv) || ranks < 1 || ranks > BENCH_RANKS_MAX)
        return 1;
    int rank = fork_ranks(ranks);
    bench_board *board = bench_board_open();
    if (board) {
        bench_pin(rank);
        bench_team team = {.board = board, .rank = rank, .context = NULL};
        team.kinds[BENCH_HALO] = halo;
        team.kinds[BENCH_HALO_8] = halo_8;
        team.kinds[BENCH_TRANSPOSE] = team.kinds[BENCH_REDISTRIBUTE] = copy;
        bench_team_serve(&team);
    }
    while (rank == 0 && (wait(NULL) > 0 || errno == EINTR)) {
    }
    return board ? 0 : 1;
}
