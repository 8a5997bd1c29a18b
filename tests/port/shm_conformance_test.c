/* The conformance suite on port shm: `shm_conformance_test threads|processes [CASE]`. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "conformance.h"
#include "port/shm/shm.h"

#define RANKS_MAX 64

typedef struct rank_arg {
    fy_segment *segment;
    const fy_conformance *what;
    int rank;
} rank_arg;

static void *run_rank(void *arg)
{
    const rank_arg *a = arg;
    fy_port *port;
    int error = fy_shm_join(a->segment, a->rank, &port);
    if (error != 0)
        fprintf(stderr, "join: %s\n", fy_error_text());
    fy_expect(error == 0);
    a->what->run(port);
    port->ops->transport.close(port);
    return NULL;
}

static void run_threads(int fd, const fy_conformance *what)
{
    pthread_t threads[RANKS_MAX];
    rank_arg args[RANKS_MAX];
    fy_segment *segment;
    fy_expect(fy_segment_map(fd, &segment) == 0);
    for (int rank = 0; rank < what->ranks; rank++) {
        args[rank] = (rank_arg){.segment = segment, .what = what, .rank = rank};
        fy_expect(pthread_create(&threads[rank], NULL, run_rank, &args[rank]) == 0);
    }
    for (int rank = 0; rank < what->ranks; rank++)
        pthread_join(threads[rank], NULL);
    fy_segment_unmap(segment);
}

static void run_processes(int fd, const fy_conformance *what)
{
    for (int rank = 0; rank < what->ranks; rank++) {
        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        rank_arg arg = {.what = what, .rank = rank};
        if (fy_segment_map(fd, &arg.segment) != 0)
            fprintf(stderr, "map: %s\n", fy_error_text());
        fy_expect(arg.segment != NULL);
        run_rank(&arg);
        fy_segment_unmap(arg.segment);
        exit(0);
    }
    int status;
    while (wait(&status) > 0)
        fy_expect(status == 0); /* ends this process, and with it the others */
}

int main(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "threads") != 0 && strcmp(argv[1], "processes") != 0)) {
        fprintf(stderr, "usage: %s threads|processes [CASE]\n", argv[0]);
        return 2;
    }
    bool threads = strcmp(argv[1], "threads") == 0;
    fy_conformance_check_name(argc > 2 ? argv[2] : NULL);
    for (const fy_conformance *c = fy_conformance_cases; c->name != NULL; c++) {
        if (argc > 2 && strcmp(argv[2], c->name) != 0)
            continue;
        printf("%s (%s)\n", c->name, argv[1]);
        fflush(stdout);
        fy_shm_options options = {.ranks = c->ranks, .heap_bytes = (size_t)1 << 30};
        int fd;
        fy_expect(fy_segment_create(&options, &fd) == 0);
        if (threads)
            run_threads(fd, c);
        else
            run_processes(fd, c);
        close(fd);
    }
    return 0;
}
