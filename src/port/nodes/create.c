/* The life of the port over several nodes: it is made, waits for its last messages, and is freed.
 */
#include "port/nodes/port_state.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "port/nodes/relay.h"

/* How long a rank waits until its messages are received when all others have said goodbye. They
 * receive until they have heard this rank's. */
#define LAST_FLUSH_NS UINT64_C(60000000000)

void fy_nodes_flush(nodes_port *p, uint64_t limit_ns)
{
    uint64_t end = fy_clock_now_ns() + limit_ns;
    for (bool leaving = true; leaving && fy_clock_now_ns() < end;) {
        lock(p);
        fy_nodes_pump(p, FY_CONTROL);
        fy_nodes_pump(p, FY_DATA);
        leaving = fy_nodes_reap(p);
        unlock(p);
        if (leaving)
            sched_yield();
    }
}

static void free_slots(nodes_port *p)
{
    for (int lane = 0; lane < FY_LANES; lane++)
        for (uint32_t i = 0; i < p->posted[lane].count; i++) {
            slot *s = p->posted[lane].slots[i];
            if (s != NULL && s->request.word != 0)
                p->binding->cancel(&s->request);
            free(s);
        }
    for (slot *s = p->free_slots, *next; s != NULL; s = next) {
        next = s->next;
        free(s);
    }
    p->free_slots = NULL;
}

static void free_port(nodes_port *p)
{
    free_slots(p);
    fy_nodes_departures_free(p);
    free(p->deadlocks.all);
    fy_nodes_endpoint_fini(p, &p->self);
    free(p->place);
    free((void *)p->far);
    fy_mutex_fini(&p->lock);
    (void)munmap(p, sizeof(*p));
}

/* Allocates memory that a forked process does not inherit. If the child calls Ferry, it crashes
 * here, before it uses the binding as if it were the rank. */
static nodes_port *allocate_port(void)
{
    nodes_port *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    (void)madvise(p, sizeof(*p), MADV_DONTFORK);
    if (fy_mutex_init(&p->lock) == 0)
        return p;
    (void)munmap(p, sizeof(*p));
    return NULL;
}

/* Finds on which node each rank is. Ranks that the job began with have come already. */
static int find_places(nodes_port *p)
{
    const fy_node *node = p->node;
    p->place = malloc((size_t)p->ranks * sizeof(*p->place));
    p->far = calloc((size_t)p->ranks, sizeof(*p->far));
    if (p->place == NULL || p->far == NULL)
        return FERRY_ENOMEM;
    for (int i = 0; i < p->ranks; i++) {
        p->place[i] = -1;
        atomic_init(&p->far[i], i < p->world ? FAR_HERE : 0);
    }
    for (int i = 0; i < node->count; i++)
        p->place[node->ranks[i]] = fy_node_place(node, i);
    for (int i = 0; i < node->later_count; i++)
        p->place[node->later_first + i] = node->later_first + i;
    return 0;
}

int fy_nodes_port_create(const fy_nodes_binding *binding, fy_nodes_net *net, const fy_node *node,
                         fy_port *near, bool helper_allowed, bool alone, nodes_port **out)
{
    nodes_port *p = allocate_port();
    if (p == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for port %s", binding->port);
    p->ops = fy_nodes_ops;
    p->ops.name = binding->port;
    p->port.ops = &p->ops;
    p->near = near;
    p->binding = binding;
    p->net = net;
    p->node = node;
    p->helper_allowed = helper_allowed;
    p->alone = alone;
    binding->place(net, &p->rank, &p->world);
    p->ranks = node->numbers != 0 ? node->numbers : p->world;
    p->self = (endpoint){.number = p->rank, .heap = near};
    int error = find_places(p);
    if (error == 0)
        error = fy_nodes_endpoint_init(p, &p->self);
    if (error == 0)
        error = fy_nodes_post_all(p);
    if (error != 0) {
        free_port(p);
        return fy_error_set(error, "open: receives of port %s cannot be posted: %s", binding->port,
                            ferry_strerror(error));
    }
    fy_nodes_price_look(p);
    *out = p;
    return 0;
}

/* Whether every goodbye that is missing may have been lost: its sender is a lost rank, of which one
 * goodbye has arrived. Then the second arrives within FLUSH_NS, or never. */
static bool is_torn(nodes_port *p)
{
    for (int rank = 0; rank < p->world; rank++) {
        /* relaxed: changed with the lock held only */
        uint8_t far = atomic_load_explicit(&p->far[rank], memory_order_relaxed);
        if (p->place[rank] < 0 && far / FAR_HEARD < FY_LANES &&
            ((far & FAR_LOST) == 0 || far < FAR_HEARD))
            return false;
    }
    if (p->torn_ns == 0)
        p->torn_ns = fy_clock_now_ns() + FLUSH_NS;
    return fy_clock_now_ns() >= p->torn_ns;
}

bool fy_nodes_port_linger(nodes_port *p)
{
    const fy_node *node = p->node;
    lock(p);
    fy_nodes_pump(p, FY_CONTROL);
    fy_nodes_pump(p, FY_DATA);
    fy_nodes_drop(p, &p->self);
    bool waits = p->farewells < (uint32_t)(p->world - node->count) && !is_torn(p);
    if (node->numbers != 0)
        waits = waits || p->done < (uint32_t)(node->leader_count - 1) * FY_LANES;
    unlock(p);
    return waits;
}

bool fy_nodes_port_destroy(nodes_port *p)
{
    bool heard = p->farewells >= (uint32_t)(p->world - p->node->count);
    fy_nodes_flush(p, heard && !p->has_lost ? LAST_FLUSH_NS : FLUSH_NS);
    if (p->has_lost && (!heard || p->leaving != NULL))
        return false;
    fy_nodes_undelivered_free(p, &p->self);
    if (p->relay != NULL)
        fy_nodes_relay_free(p->relay);
    free_port(p);
    return true;
}
