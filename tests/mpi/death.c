/* A job whose last rank ends as the argument says, while the others wait for it:
 * - killed
 * - vanish: status 0 without ferry_close
 * - status: its main function returns 3
 *
 * With room for more ranks, rank 0 starts one, and all others wait forever:
 * - spawn-killed, spawn-status: the new rank ends so
 * - spawn-late: it has left the job before
 * - starter: rank 0 itself ends when the new rank has come */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

static int end_spawn_ranks(ferry *f, const char *way)
{
    if (strcmp(way, "spawn-killed") == 0)
        raise(SIGKILL);
    if (strcmp(way, "spawn-late") == 0 && ferry_leave(f) != 0)
        return 2;
    while (strcmp(way, "starter") == 0)
        (void)ferry_wait(f, FERRY_FOREVER);
    return 3;
}

static int with_spawn_ranks(ferry *f, const char *way)
{
    int first;
    if (ferry_member_place(f, ferry_rank(f)) < 0)
        return end_spawn_ranks(f, way);
    if (ferry_rank(f) == 0 && ferry_spawn(f, 1, NULL, &first) != 0)
        return 2;
    while (ferry_rank(f) != 0 || strcmp(way, "starter") != 0 || ferry_peer_is_gone(f, first))
        (void)ferry_wait(f, FERRY_FOREVER);
    raise(SIGKILL);
    return 3;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    if (argc >= 2 && (strstr(argv[1], "spawn-") != NULL || strcmp(argv[1], "starter") == 0))
        return with_spawn_ranks(f, argv[1]);
    if (argc < 2 || ferry_barrier(f) != 0)
        return 2;
    if (ferry_rank(f) < ferry_ranks(f) - 1)
        return ferry_barrier(f) == 0 ? 4 : 5;
    if (strcmp(argv[1], "killed") == 0)
        raise(SIGKILL);
    if (strcmp(argv[1], "vanish") == 0)
        _exit(0);
    return 3;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
