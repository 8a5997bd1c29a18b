/* A further process: from the call that has it started until its first message has been handled by
 * who started it. A new rank of Ferry; with BENCH_WAY=exec a plain process, whose message is a byte
 * in a pipe: what no library can do faster. Numbers of ranks are not used again, so the job has
 * room for as many as are asked for. */
#include <ferry/ferry.h>

#include "common/team.h"
#include "peers/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct state {
    ferry *f;
    ferry_handler here;
    uint64_t heard_ns;
    bool left;
} state;

static void on_here(ferry *f, int source, const ferry_message *m)
{
    state *s = ferry_user_data(f);
    (void)source;
    (void)m;
    s->heard_ns = bench_now();
}

static void on_peer(ferry *f, void *arg, const ferry_peer_event *event)
{
    state *s = arg;
    (void)f;
    s->left = s->left || !event->joined;
}

static double spawn_rank(void *context, const bench_job *job)
{
    state *s = context;
    double sum = 0;
    for (uint64_t i = 0; i < job->count; i++) {
        int first;
        s->heard_ns = 0;
        s->left = false;
        uint64_t start = bench_now();
        check(s->f, ferry_spawn(s->f, 1, NULL, &first));
        while (!s->left)
            check(s->f, ferry_wait(s->f, FERRY_FOREVER));
        sum += (double)(s->heard_ns - start);
    }
    return sum;
}

/* A process that writes when it runs, as a rank does. */
static double spawn_process(void *context, const bench_job *job)
{
    double sum = 0;
    (void)context;
    for (uint64_t i = 0; i < job->count; i++) {
        int ends[2];
        char byte, number[16];
        if (pipe(ends) != 0)
            exit(1);
        snprintf(number, sizeof number, "%d", ends[1]);
        uint64_t start = bench_now();
        pid_t pid = fork();
        if (pid == 0) {
            execl("/proc/self/exe", "spawn", "--child", number, (char *)NULL);
            _exit(1);
        }
        close(ends[1]);
        if (pid < 0 || read(ends[0], &byte, 1) != 1)
            exit(1);
        sum += (double)(bench_now() - start);
        close(ends[0]);
        waitpid(pid, NULL, 0);
    }
    return sum;
}

/* Says that it is here, and leaves. */
static int be_new(ferry *f, const state *s)
{
    check(f, ferry_request_send(f, 0, &(ferry_message){.handler = s->here}, NULL));
    check(f, ferry_leave(f));
    return 0;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.f = f};
    ferry_user_data_set(f, &s);
    check(f, ferry_handler_register(f, "here", on_here, &s.here));
    if (ferry_member_place(f, ferry_rank(f)) < 0)
        return be_new(f, &s);
    check(f, ferry_peer_watch(f, on_peer, &s));
    bench_board *board = bench_board_open();
    if (!board)
        return bench_team_empty(argc, argv) ? 0 : 1;
    bench_team team = {.board = board, .rank = ferry_rank(f), .context = &s};
    team.kinds[BENCH_SPAWN] = spawn_rank;
    bench_team_serve(&team);
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = getenv("BENCH_WAY");
    if (argc > 2 && strcmp(argv[1], "--child") == 0)
        return write(atoi(argv[2]), "", 1) == 1 ? 0 : 1;
    if (way == NULL || strcmp(way, "exec") != 0)
        return ferry_main(argc, argv, rank_main, NULL);
    bench_team team = {.board = bench_board_open()};
    team.kinds[BENCH_SPAWN] = spawn_process;
    if (team.board == NULL)
        return 1;
    bench_team_serve(&team);
    return 0;
}
