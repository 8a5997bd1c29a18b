#include "port/sim/net.h"

#include <stdlib.h>
#include <string.h>

/* Latencies and overheads of the Ethernet presets are those of message passing libraries of 2004 on
 * such networks; the others are round figures of current machines. */
static const struct preset {
    const char *name, *text;
} presets[] = {
    {"shm", "topology flat\n"
            "memory shared\n"
            "latency 60ns\n"
            "send 20ns\n"
            "receive 20ns\n"
            "gap 3ns\n"
            "byte 20ps\n"},
    {"memory", "topology flat\n"
               "memory direct\n"
               "latency 0ns\n"
               "send 20ns\n"
               "receive 20ns\n"},
    {"ethernet-100m", "topology flat\n"
                      "memory private\n"
                      "latency 60us\n"
                      "send 8us\n"
                      "receive 10us\n"
                      "gap 7us\n"
                      "byte 80ns\n"},
    {"ethernet-1g", "topology flat\n"
                    "memory private\n"
                    "latency 25us\n"
                    "send 4us\n"
                    "receive 5us\n"
                    "gap 2us\n"
                    "byte 8ns\n"},
    {"infiniband-hdr", "topology nodes 32\n"
                       "memory private\n"
                       "latency 900ns\n"
                       "send 150ns\n"
                       "receive 150ns\n"
                       "gap 8ns\n"
                       "byte 42ps\n"
                       "near.latency 60ns\n"
                       "near.send 20ns\n"
                       "near.receive 20ns\n"
                       "near.gap 3ns\n"
                       "near.byte 20ps\n"},
    {"cloud", "topology nodes 8\n"
              "memory private\n"
              "latency 22us\n"
              "send 2us\n"
              "receive 3us\n"
              "gap 300ns\n"
              "byte 640ps\n"
              "near.latency 80ns\n"
              "near.send 30ns\n"
              "near.receive 30ns\n"
              "near.gap 5ns\n"
              "near.byte 40ps\n"},
    {"torus", "topology torus\n"
              "memory private\n"
              "latency 1us\n"
              "hop 60ns\n"
              "send 200ns\n"
              "receive 200ns\n"
              "gap 20ns\n"
              "byte 500ps\n"},
};

const char *fy_net_preset(const char *name, size_t index, const char **name_out)
{
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (name == NULL ? i != index : strcmp(name, presets[i].name) != 0)
            continue;
        if (name_out != NULL)
            *name_out = presets[i].name;
        return presets[i].text;
    }
    return NULL;
}

/* Hops along one axis of a ring. */
static uint64_t ring_hops(int a, int b, int extent)
{
    int d = a > b ? a - b : b - a;
    return (uint64_t)(d <= extent - d ? d : extent - d);
}

static uint64_t torus_hops(const fy_net *net, int a, int b)
{
    uint64_t hops = 0;
    for (int axis = 0; axis < 3; axis++) {
        int extent = net->extent[axis];
        hops += ring_hops(a % extent, b % extent, extent);
        a /= extent;
        b /= extent;
    }
    return hops;
}

static const fy_net_pair *find_pair(const fy_net *net, int source, int target)
{
    size_t low = 0, high = net->pair_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const fy_net_pair *pair = &net->pairs[middle];
        if (pair->source == source && pair->target == target)
            return pair;
        if (pair->source < source || (pair->source == source && pair->target < target))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void fy_net_link(const fy_net *net, int source, int target, fy_sim_link *link)
{
    const fy_net_pair *pair = net->pair_count == 0 ? NULL : find_pair(net, source, target);
    if (pair != NULL) {
        *link = pair->link;
        return;
    }
    bool near = net->topology == FY_NODES && source / net->node_ranks == target / net->node_ranks;
    *link = near ? net->near : net->far;
    if (net->topology == FY_TORUS) {
        uint64_t hops = torus_hops(net, source, target);
        link->latency_ns += hops < 2 ? 0 : (hops - 1) * net->hop_ns;
    }
}

void fy_net_fini(fy_net *net)
{
    free(net->pairs);
    *net = (fy_net){0};
}
