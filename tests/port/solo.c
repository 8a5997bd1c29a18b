/* A port that a launcher of its own would start, for a test of fy_port_entry.open: one rank in one
 * process, over the template. */
#include <stdlib.h>

#include "base/shared.h"
#include "port/template/template.h"

typedef struct solo {
    fy_port_ops ops; /* the template's, but for close */
    const fy_port_ops *inner;
    fy_template_job *job;
} solo;

/* The port's table is the first field of what belongs to it. */
static void close_solo(fy_port *port)
{
    solo *s = (solo *)(uintptr_t)port->ops;
    port->ops = s->inner;
    s->inner->transport.close(port);
    fy_template_job_destroy(s->job);
    free(s);
}

static int open_solo(const fy_port_settings *settings, fy_port_rank *out)
{
    if (settings->ranks != 1)
        return settings->error_set(FERRY_EINVAL, "port solo has 1 rank, not %d", settings->ranks);
    solo *s = calloc(1, sizeof(*s));
    if (s == NULL || (s->job = fy_template_job_create(1, 1)) == NULL ||
        fy_template_join(s->job, 0, &out->port) != 0)
        return settings->error_set(FERRY_ENOMEM, "port solo: no memory"); /* its process ends */
    s->inner = out->port->ops;
    s->ops = *s->inner;
    s->ops.transport.close = close_solo;
    out->port->ops = &s->ops;
    return 0;
}

/* Up to 3 ranks pass the check of FERRY_RANKS, so that a test sees the refusal of `open`. */
FY_SHARED const fy_port_entry fy_port_table = {
    .version = FY_PORT_VERSION, .ranks_max = 3, .open = open_solo};
