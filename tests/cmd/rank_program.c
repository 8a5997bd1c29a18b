/* A rank that does what its argument says, for the launcher's tests. It uses the port alone. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/launch.h"

static fy_port *join_job(fy_segment **out, int *rank, int *ranks)
{
    const char *fd = getenv(FY_ENV_JOB_FD), *rank_text = getenv(FY_ENV_RANK);
    fy_segment *segment;
    fy_port *port;
    if (fd == NULL || rank_text == NULL) {
        fprintf(stderr, "no place in the environment\n");
        exit(99);
    }
    *rank = atoi(rank_text);
    if (fy_segment_map(atoi(fd), &segment) != 0 || fy_shm_join(segment, *rank, &port) != 0) {
        fprintf(stderr, "joining: %s\n", fy_error_text());
        exit(98);
    }
    fy_launch_settle(atoi(fd), -1);
    *ranks = fy_segment_ranks(segment);
    *out = segment;
    return port;
}

static fy_verdict count_frame(void *context, int source, const fy_frame *frame)
{
    (void)source;
    (void)frame;
    ++*(int *)context;
    return FY_TAKEN;
}

/* Every rank tells every other that it is here, and hears the same of all. One that is dead by then
 * ends the job with status 1, as its death does a little later. */
static void meet(fy_port *port, int rank, int ranks)
{
    fy_frame frame = {.kind = 1};
    int heard = 0;
    for (int other = 0; other < ranks; other++)
        if (other != rank && port->ops->transport.send(port, FY_APP, FY_DATA, other, &frame) != 0)
            exit(port->ops->members.peer(port, other) == FY_PEER_DEAD ? 1 : 97);
    while (heard < ranks - 1) {
        port->ops->transport.wait(port, FY_APP, UINT64_MAX);
        port->ops->transport.poll(port, FY_DATA, 16, count_frame, &heard);
    }
}

/* As a survivor that goes on: 0 frames, until somebody has died. */
static void wait_for_death(fy_port *port, int ranks)
{
    for (;;) {
        for (int rank = 0; rank < ranks; rank++)
            if (port->ops->members.peer(port, rank) == FY_PEER_DEAD)
                return;
        port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    }
}

static void sleep_for_ever(void)
{
    for (;;)
        pause();
}

static int act(fy_port *port, const char *mode, int rank, int ranks)
{
    bool chosen = rank == ranks - 1;
    if (strcmp(mode, "crash") == 0 && chosen) {
        port->ops->diagnosis.name_handler(port, 5, "refine_cell");
        port->ops->diagnosis.doing(port, FY_DOING_TASK, 5, 0);
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (strcmp(mode, "fail") == 0) {
        if (chosen)
            wait_for_death(port, ranks);
        _exit(chosen ? 3 : 1);
    }
    if (strcmp(mode, "status") == 0 && chosen)
        _exit(3);
    if (strcmp(mode, "vanish") == 0 && chosen)
        _exit(0);
    if (strcmp(mode, "crash") == 0 || strcmp(mode, "status") == 0) {
        wait_for_death(port, ranks);
        printf("rank %d saw it\n", rank);
        fflush(stdout);
        _exit(1);
    }
    if ((strcmp(mode, "orphan") == 0 || strcmp(mode, "parent") == 0) && chosen && fork() == 0) {
        setsid();
        sleep_for_ever();
    }
    if (strcmp(mode, "idle") == 0)
        for (;;)
            port->ops->transport.wait(port, FY_APP, UINT64_MAX);
    if (strcmp(mode, "stubborn") == 0) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
    }
    if (strcmp(mode, "leave") != 0 && strcmp(mode, "orphan") != 0)
        sleep_for_ever();
    port->ops->transport.close(port);
    return 0;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    if (argc < 2)
        return 2;
    fy_segment *segment;
    fy_port *port = join_job(&segment, &rank, &ranks);
    if (strcmp(argv[1], "fail") == 0 && rank == ranks - 1)
        port->ops->members.fail(port, 3);
    meet(port, rank, ranks);
    if (argc > 2 && rank == 0) /* says that all are there */
        close(creat(argv[2], 0600));
    int status = act(port, argv[1], rank, ranks);
    fy_segment_unmap(segment);
    return status;
}
