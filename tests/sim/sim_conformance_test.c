/* The conformance suite on port sim: `sim_conformance_test PLAN`: every case on three networks,
 * with the faults of PLAN ("-" for none) and several seeds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../port/conformance.h"
#include "base/error.h"
#include "port/sim/sim.h"

static int run_case(void *arg, fy_port *port)
{
    const fy_conformance *what = arg;
    what->run(port);
    port->ops->transport.close(port);
    return 0;
}

#ifdef FERRY_SANITIZED
enum { SEEDS = 1 };
#else
enum { SEEDS = 4 };
#endif

static void run(const fy_conformance *what, const char *net, const char *plan, uint64_t seed)
{
    fy_sim_options options = {
        .ranks = what->ranks, .seed = seed, .net = net, .faults = plan, .stack_bytes = 256 * 1024};
    fy_conformance copy = *what;
    int status = fy_sim_run(&options, run_case, &copy);
    if (status == 0)
        return;
    fprintf(stderr, "%s on %s, faults %s, seed %llu: %s\n", what->name, net,
            plan == NULL ? "none" : plan, (unsigned long long)seed,
            status < 0 ? fy_error_text() : "failed");
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    static const char *const nets[] = {"shm", "ethernet-1g", "torus"};
    const char *plan = argc < 2 || strcmp(argv[1], "-") == 0 ? NULL : argv[1];
    uint64_t seeds = plan == NULL ? 1 : SEEDS;
    /* Faults are the same on each network; seeds make the difference. */
    size_t net_count = plan == NULL ? sizeof(nets) / sizeof(nets[0]) : 1;
    fy_conformance_check_name(argc > 2 ? argv[2] : NULL);
    for (const fy_conformance *c = fy_conformance_cases; c->name != NULL; c++) {
        if (argc > 2 && strcmp(argv[2], c->name) != 0)
            continue;
        printf("%s\n", c->name);
        fflush(stdout);
        for (size_t net = 0; net < net_count; net++)
            for (uint64_t seed = 0; seed < seeds; seed++)
                run(c, nets[net], plan, seed);
    }
    return 0;
}
