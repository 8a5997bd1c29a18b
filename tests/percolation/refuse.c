/* Goal: ferry_percolation_start refuses what it cannot do, on all ranks, with an error that names
 * the value. Method: a job makes one mistake, named by the argument; each rank prints its error.
 *
 * Run as FERRY_RANKS=3 refuse MISTAKE [again]: with `again` it then mends the mistake. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "../support/check.h"

static void make_mistake(ferry *f, const char *mistake, ferry_percolation_options *options)
{
    if (strcmp(mistake, "servers") == 0)
        options->servers = ferry_ranks(f);
    else if (strcmp(mistake, "window") == 0)
        options->window = -1;
    else if (strcmp(mistake, "differ") == 0)
        options->servers = 1 + (ferry_rank(f) == 2);
    else if (strcmp(mistake, "scheduler") == 0)
        check(f, ferry_balance_enable(f, true) == 0, "enable");
    else
        check(f, strcmp(mistake, "none") == 0 || strcmp(mistake, "store") == 0, "a mistake");
}

static int rank_main(ferry *f, int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "none";
    ferry_store_options store_options = FERRY_STORE_OPTIONS_DEFAULTS;
    ferry_percolation_options options = FERRY_PERCOLATION_OPTIONS_DEFAULTS;
    ferry_percolation_stats stats = FERRY_PERCOLATION_STATS_DEFAULTS;
    ferry_store *store = NULL;
    options.servers = 1;
    store_options.budget_bytes = 1000;
    check(f, ferry_percolation_stats_get(f, &stats) == 0 && stats.initiated == 0, "stats");
    check(f, ferry_percolation_stats_get(f, NULL) == FERRY_EINVAL, "no place for stats");
    if (strcmp(mistake, "store") != 0 || ferry_rank(f) != 1)
        check(f, ferry_store_open(f, &store_options, &store) == 0, "store");
    make_mistake(f, mistake, &options);
    int error = ferry_percolation_start(f, &options);
    if (argc > 2) { /* what the first call was refused for is mended */
        check(f, error != 0, "refused");
        options.servers = 1;
        if (store == NULL)
            check(f, ferry_store_open(f, &store_options, &store) == 0, "store");
        error = ferry_percolation_start(f, &options);
    }
    printf("rank %d: %d servers, %s\n", ferry_rank(f), ferry_percolation_servers(f),
           error == 0 ? "started" : ferry_error_message(f));
    fflush(stdout);
    check(f, ferry_barrier(f) == 0, "barrier"); /* the first status other than 0 ends all ranks */
    return error == 0 ? 0 : 4;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
