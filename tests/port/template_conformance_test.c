/* The conformance suite on the template port: `template_conformance_test NODES [CASE [MISTAKE]]`. A
 * case of fewer ranks than NODES has a node per rank. With a mistake (broken.c) the port is broken,
 * and the case must fail. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broken.h"
#include "conformance.h"
#include "port/template/template.h"

#define RANKS_MAX 64

typedef struct rank_arg {
    fy_template_job *job;
    const fy_conformance *what;
    int rank;
    const char *mistake; /* NULL: none */
} rank_arg;

static void *run_rank(void *arg)
{
    const rank_arg *a = arg;
    fy_port *port;
    fy_expect(fy_template_join(a->job, a->rank, &port) == 0);
    if (a->mistake != NULL)
        fy_break(port, a->mistake);
    a->what->run(port);
    if (a->mistake != NULL)
        fy_mend(port);
    port->ops->transport.close(port);
    return NULL;
}

static void run_case(const fy_conformance *what, int nodes, const char *mistake)
{
    pthread_t threads[RANKS_MAX];
    rank_arg args[RANKS_MAX];
    fy_template_job *job =
        fy_template_job_create(what->ranks, nodes < what->ranks ? nodes : what->ranks);
    fy_expect(job != NULL);
    for (int rank = 0; rank < what->ranks; rank++) {
        args[rank] = (rank_arg){.job = job, .what = what, .rank = rank, .mistake = mistake};
        fy_expect(pthread_create(&threads[rank], NULL, run_rank, &args[rank]) == 0);
    }
    for (int rank = 0; rank < what->ranks; rank++)
        pthread_join(threads[rank], NULL);
    fy_template_job_destroy(job);
}

int main(int argc, char **argv)
{
    int nodes = argc > 1 ? atoi(argv[1]) : 0;
    fy_expect(nodes > 0);
    fy_conformance_check_name(argc > 2 ? argv[2] : NULL);
    for (const fy_conformance *c = fy_conformance_cases; c->name != NULL; c++) {
        if (argc > 2 && strcmp(argv[2], c->name) != 0)
            continue;
        printf("%s\n", c->name);
        fflush(stdout);
        run_case(c, nodes, argc > 3 ? argv[3] : NULL);
    }
    return 0;
}
