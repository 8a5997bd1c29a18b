#include <string.h>

#include "object/protocol.h"

static const fy_protocol *const protocols[] = {
    &fy_protocol_lazy,  /* the default */
    &fy_protocol_home,  /* the creator always knows */
    &fy_protocol_eager, /* all ranks know */
};

const fy_protocol *fy_protocol_find(const char *name)
{
    if (name == NULL)
        return protocols[0];
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (strcmp(protocols[i]->name, name) == 0)
            return protocols[i];
    return NULL;
}

void fy_protocol_tell(ferry *f, int rank, ferry_object object, uint32_t movement)
{
    int here = ferry_rank(f);
    if (rank != here)
        fy_location_send(f, rank, object, here, movement);
}
