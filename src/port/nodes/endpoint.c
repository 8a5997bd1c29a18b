/* Endpoints: for each rank that has sent or received, the record of the frames of both. */
#include "port/nodes/port_state.h"

#include <stdlib.h>

peer *fy_nodes_peer_make(endpoint *e, int number)
{
    peer *made = calloc(1, sizeof(*made));
    e->peers[number] = made;
    for (int lane = 0; lane < FY_LANES && made != NULL; lane++) {
        made->in[lane].source = number;
        made->in[lane].to = e;
    }
    return made;
}

int fy_nodes_endpoint_init(nodes_port *p, endpoint *e)
{
    e->peers = calloc((size_t)p->ranks, sizeof(*e->peers));
    return e->peers == NULL ? FERRY_ENOMEM : 0;
}

void fy_nodes_endpoint_fini(nodes_port *p, endpoint *e)
{
    for (int rank = 0; rank < p->ranks && e->peers != NULL; rank++) {
        for (int lane = 0; lane < FY_LANES && e->peers[rank] != NULL; lane++)
            free(e->peers[rank]->out[lane].costs);
        free(e->peers[rank]);
    }
    free(e->peers);
}

bool fy_nodes_holds(const endpoint *to, int rank)
{
    bool holds = false;
    for (int lane = 0; lane < FY_LANES && to->peers[rank] != NULL; lane++)
        holds = holds || to->peers[rank]->in[lane].head != NULL;
    return holds;
}

bool fy_nodes_is_silent(const nodes_port *p, int rank)
{
    fy_peer_state state = fy_nodes_far_state(p, rank);
    return (state == FY_PEER_LEFT || state == FY_PEER_DEAD) &&
           (fy_nodes_is_lost(p, rank) || !fy_nodes_holds(&p->self, rank));
}
