/* The iceoryx side: two processes, each a publisher of one topic and a subscriber of the other's,
 * and their daemon. A chunk is lent, published, taken by looking, and released, once each way. */
#include <iceoryx_binding_c/publisher.h>
#include <iceoryx_binding_c/runtime.h>
#include <iceoryx_binding_c/subscriber.h>

#include "common/team.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct state {
    int rank;
    iox_pub_t out;
    iox_sub_t in;
} state;

static void publish(state *s, size_t size_bytes)
{
    void *chunk;
    if (iox_pub_loan_chunk(s->out, &chunk, (uint32_t)size_bytes) != AllocationResult_SUCCESS) {
        fprintf(stderr, "bench: iceoryx: no chunk of %zu bytes\n", size_bytes);
        exit(1);
    }
    iox_pub_publish_chunk(s->out, chunk);
}

static void take(state *s)
{
    const void *chunk;
    while (iox_sub_take_chunk(s->in, &chunk) != ChunkReceiveResult_SUCCESS) {
    }
    iox_sub_release_chunk(s->in, chunk);
}

static double pass(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t start = 0, warm = bench_warmup(job);
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0)
            publish(s, job->size_bytes);
        take(s);
        if (s->rank == 1)
            publish(s, job->size_bytes);
    }
    return (double)(bench_now() - start);
}

static int serve(bench_board *board, int rank)
{
    static const char *const topics[] = {"there", "back"};
    static iox_pub_storage_t out;
    static iox_sub_storage_t in;
    char name[64], job[32];
    state s = {.rank = rank};
    snprintf(name, sizeof name, "ferry-bench-%d-%d", (int)board->driver, rank);
    snprintf(job, sizeof job, "%d", (int)board->driver);
    iox_runtime_init(name);
    s.out = iox_pub_init(&out, "ferry-bench", job, topics[rank], NULL);
    s.in = iox_sub_init(&in, "ferry-bench", job, topics[1 - rank], NULL);
    while (!iox_pub_has_subscribers(s.out) ||
           iox_sub_get_subscription_state(s.in) != SubscribeState_SUBSCRIBED)
        usleep(1000);
    bench_pin(rank);
    bench_team team = {.board = board, .rank = rank, .context = &s};
    team.kinds[BENCH_REQUEST] = pass;
    bench_team_serve(&team);
    iox_sub_deinit(s.in);
    iox_pub_deinit(s.out);
    iox_runtime_shutdown();
    return 0;
}

/* A process that ends with this one; SIGTERM lets the daemon remove its memory. */
static pid_t start(int signal)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, signal);
        if (getppid() != parent)
            _exit(1);
    }
    return child;
}

/* Starts the daemon and waits until it takes clients. One of an earlier run may not have ended yet:
 * then a new one ends at once, and clients would find the old one. -1: it does not come up. */
static pid_t start_daemon(void)
{
    enum { TRIES = 100, PAUSE_US = 100000 };
    for (int i = 0; i < TRIES; i++) {
        int fds[2];
        char line[256] = "";
        if (pipe(fds) != 0)
            return -1;
        pid_t daemon = start(SIGTERM);
        if (daemon == 0) {
            dup2(fds[1], STDOUT_FILENO);
            close(fds[0]);
            close(fds[1]);
            execlp("iox-roudi", "iox-roudi", "-l", "off", (char *)NULL);
            _exit(127);
        }
        close(fds[1]);
        FILE *said = fdopen(fds[0], "r"); /* stays open: it says more later */
        while (daemon > 0 && said != NULL && fgets(line, sizeof line, said) != NULL)
            if (strstr(line, "ready for clients") != NULL)
                return daemon;
        if (said != NULL)
            fclose(said);
        waitpid(daemon, NULL, 0);
        usleep(PAUSE_US);
    }
    return -1;
}

int main(void)
{
    const char *ranks = getenv("BENCH_RANKS");
    bench_board *board = bench_board_open();
    if (!board || !ranks || atoi(ranks) != 2)
        return 1;
    pid_t daemon = start_daemon();
    pid_t other = start(SIGKILL);
    if (other == 0)
        return serve(board, 1);
    int status = daemon > 0 && other > 0 ? serve(board, 0) : 1;
    waitpid(other, NULL, 0);
    if (daemon > 0) {
        kill(daemon, SIGTERM);
        waitpid(daemon, NULL, 0);
    }
    return status;
}
