/* The conformance suite on port loopback: `loopback_conformance_test [CASE]`, with
 * FERRY_LOOPBACK_NODES nodes; 0 or nothing: every rank is a node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "conformance.h"
#include "port/nodes/loopback/loopback.h"

/* A fy_port_main. */
static int run_case(void *arg, fy_port *port)
{
    const fy_conformance *what = arg;
    what->run(port);
    port->ops->transport.close(port);
    return 0;
}

/* A case of fewer ranks than nodes has a node per rank. */
static void choose_nodes(int wanted, int ranks)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", wanted == 0 || wanted > ranks ? ranks : wanted);
    setenv(FY_ENV_LOOPBACK_NODES, text, 1);
}

int main(int argc, char **argv)
{
    const char *text = getenv(FY_ENV_LOOPBACK_NODES);
    int wanted = text == NULL ? 0 : atoi(text);
    fy_conformance_check_name(argc > 1 ? argv[1] : NULL);
    for (const fy_conformance *c = fy_conformance_cases; c->name != NULL; c++) {
        if (argc > 1 && strcmp(argv[1], c->name) != 0)
            continue;
        printf("%s\n", c->name);
        fflush(stdout);
        const fy_port_settings settings = {
            .ranks = c->ranks, .heap_bytes = (size_t)1 << 30, .error_set = fy_error_set};
        choose_nodes(wanted, c->ranks);
        int status = fy_loopback_run(&settings, run_case, (void *)(uintptr_t)c);
        if (status < 0)
            fprintf(stderr, "%s\n", fy_error_text());
        fy_expect(status == 0);
    }
    return 0;
}
