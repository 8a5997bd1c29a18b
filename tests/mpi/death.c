/* A job of which the last rank ends as the argument says, while the others wait for it: killed,
 * vanish (status 0 without ferry_close), status (its main function returns 3). */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

static int rank_main(ferry *f, int argc, char **argv)
{
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
    return ferry_main(argc, argv, rank_main);
}
