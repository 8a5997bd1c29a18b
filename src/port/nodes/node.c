/* Finding the ranks of this node, and their common segment.
 *
 * The first rank of the node makes the segment. It tells the others its process and the descriptor,
 * by the binding. They open the segment through /proc, which the kernel allows to processes of the
 * same user alone, and compare what they opened with what the first rank made. So there is no name,
 * no socket, and nothing to remove. If /proc does not allow it, as with a container for each rank,
 * each rank is a node of its own. All ranks agree on that. */
#include "port/nodes/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "port/shm/layout.h"

/* The words that each rank of a node tells the others. */
typedef struct card {
    uint64_t device, file; /* of the segment */
    int32_t rank;          /* in the job */
    int32_t pid;
    int32_t fd; /* descriptor of the first rank's segment; -1: none */
} card;

static int node_exchange(const fy_nodes_binding *binding, fy_nodes_net *net, const void *mine,
                         size_t bytes, void *all)
{
    int error = binding->allgather(net, mine, bytes, all);
    return error != 0 ? fy_nodes_failed(binding, "gathering data of each rank", error) : 0;
}

/* Opens the segment of the node's first rank, and checks that it is that. -1 with fy_error_set. */
static int open_segment(const card *first)
{
    char path[64];
    struct stat file;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)first->pid, (int)first->fd);
    int fd = first->fd < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        fy_error_set(FERRY_ESYSTEM, "%s: %s", path, strerror(errno));
        return -1;
    }
    if (fstat(fd, &file) == 0 && file.st_dev == first->device && file.st_ino == first->file)
        return fd;
    fy_error_set(FERRY_ESYSTEM, "%s is not the segment of rank %d", path, (int)first->rank);
    close(fd);
    return -1;
}

/* Makes the segment for the ranks in `shm`, and notes it in `mine`. */
static int make_segment(const fy_shm_options *shm, card *mine)
{
    struct stat file;
    int fd;
    int error = fy_segment_create(shm, &fd);
    if (error != 0)
        return error;
    if (fstat(fd, &file) != 0) {
        close(fd);
        return fy_error_set(FERRY_ESYSTEM, "fstat: %s", strerror(errno));
    }
    mine->device = file.st_dev;
    mine->file = file.st_ino;
    mine->fd = fd;
    return 0;
}

static int form_alone(const fy_shm_options *shm, int rank, fy_node *node)
{
    card mine = {.fd = -1};
    int error = make_segment(shm, &mine);
    if (error != 0)
        return error;
    error = fy_segment_map(mine.fd, &node->segment);
    node->fd = mine.fd;
    node->count = 1;
    node->self = 0;
    node->ranks[0] = rank;
    node->pids[0] = getpid();
    return error;
}

/* Returns whether every rank of the node has mapped the segment. If not, no rank keeps it. */
static int node_agree(const fy_nodes_binding *binding, fy_nodes_net *net, fy_node *node,
                      int32_t *all)
{
    int32_t mine = node->segment != NULL;
    int error = node_exchange(binding, net, &mine, sizeof(mine), all);
    bool agreed = error == 0;
    for (int i = 0; i < node->count && agreed; i++)
        agreed = all[i] != 0;
    if (!agreed && node->segment != NULL) {
        fy_segment_unmap(node->segment);
        node->segment = NULL;
    }
    return error;
}

/* Forms the node's segment. Leaves node->segment NULL if the ranks cannot share one. */
static int form_together(const fy_nodes_binding *binding, fy_nodes_net *net,
                         const fy_shm_options *shm, int rank, fy_node *node)
{
    card mine = {.rank = rank, .pid = getpid(), .fd = -1};
    card *cards = calloc((size_t)node->count, sizeof(*cards));
    int32_t *flags = calloc((size_t)node->count, sizeof(*flags));
    int error = cards == NULL || flags == NULL ? fy_error_set(FERRY_ENOMEM, "open: no memory") : 0;
    if (error == 0 && node->self == 0)
        (void)make_segment(shm, &mine); /* if it fails, each makes one of its own and says why */
    if (error == 0)
        error = node_exchange(binding, net, &mine, sizeof(mine), cards);
    for (int i = 0; error == 0 && i < node->count; i++) {
        node->ranks[i] = cards[i].rank;
        node->pids[i] = cards[i].pid;
    }
    if (error == 0 && cards[0].fd >= 0) {
        int fd = node->self == 0 ? mine.fd : open_segment(&cards[0]);
        if (fd < 0 || fy_segment_map(fd, &node->segment) != 0)
            fy_log_line(rank, "shared memory of this node is not used: %s", fy_error_text());
        node->fd = fd;
    }
    if (error == 0)
        error = node_agree(binding, net, node, flags);
    if (mine.fd >= 0 && mine.fd != node->fd)
        close(mine.fd);
    free(flags);
    free(cards);
    return error;
}

static void close_file(fy_node *node)
{
    if (node->fd >= 0)
        close(node->fd);
    node->fd = -1;
}

/* Agrees on the numbers of a job over several nodes that may grow. They are as many as every rank
 * has room for, if one place is left for the relay and all ranks can relay. Else 0. */
static int agree_on_numbers(const fy_nodes_binding *binding, fy_nodes_net *net, int ranks,
                            const fy_nodes_growth *growth, int *numbers)
{
    int32_t mine = growth->threads ? growth->ranks_max : 0, least = mine;
    int32_t *all = calloc((size_t)ranks, sizeof(mine));
    if (all == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for %d ranks", ranks);
    int error = node_exchange(binding, net, &mine, sizeof(mine), all);
    for (int i = 0; error == 0 && i < ranks; i++)
        least = all[i] < least ? all[i] : least;
    free(all);
    *numbers = least > ranks && least < FY_RANKS_MAX ? least : 0;
    return error;
}

/* Shares the new numbers out to the nodes equally; the first nodes may get one more. */
static void share_out(fy_node *node, int ranks)
{
    int later = node->numbers - ranks, number = ranks;
    for (int i = 0; i < node->leader_count; i++) {
        int count = later / node->leader_count + (i < later % node->leader_count);
        if (node->leaders[i] == node->ranks[0]) {
            node->later_first = number;
            node->later_count = count;
        }
        for (int k = 0; k < count; k++)
            node->homes[number++] = node->leaders[i];
    }
}

/* Writes into the segment which numbers are this node's, and which places a relay fills. All ranks
 * of the node write the same. */
static void mark_places(const fy_node *node, int ranks)
{
    void *base = node->segment->base;
    shm_common *common = common_at(base);
    for (int number = 0; number <= node->numbers; number++)
        if (number == node->numbers || node->homes[number] != node->ranks[0])
            /* relaxed: all ranks meet before one joins */
            atomic_fetch_or_explicit(&rank_at(base, (uint32_t)number)->state, SHM_FAR,
                                     memory_order_relaxed);
    if (node->self != 0)
        return;
    atomic_store_explicit(&common->spawned, (uint32_t)(node->later_first - ranks),
                          memory_order_relaxed);
    common->spawned_max = (uint32_t)(node->later_first - ranks + node->later_count);
    common->relay = (uint32_t)node->numbers;
}

/* Finds the node of every number, in a job that may grow. */
static int find_homes(const fy_nodes_binding *binding, fy_nodes_net *net, int ranks, fy_node *node)
{
    int32_t mine = node->ranks[0];
    node->homes = calloc((size_t)node->numbers, sizeof(*node->homes));
    node->leaders = calloc((size_t)ranks, sizeof(*node->leaders));
    if (node->homes == NULL || node->leaders == NULL)
        return fy_error_set(FERRY_ENOMEM, "open: no memory for %d numbers", node->numbers);
    int error = node_exchange(binding, net, &mine, sizeof(mine), node->homes);
    if (error != 0)
        return error;
    for (int i = 0; i < ranks; i++)
        if (node->homes[i] == i)
            node->leaders[node->leader_count++] = i;
    share_out(node, ranks);
    mark_places(node, ranks);
    return 0;
}

int fy_node_form(const fy_nodes_binding *binding, fy_nodes_net *net, const fy_shm_options *shm,
                 bool share, const fy_nodes_growth *growth, fy_node *out)
{
    int rank, ranks;
    binding->place(net, &rank, &ranks);
    fy_nodes_net *near;
    int error = binding->node(net, &near);
    if (error != 0)
        return fy_nodes_failed(binding, "finding the ranks of this node", error);
    *out = (fy_node){.fd = -1};
    binding->place(near, &out->self, &out->count);
    bool together = share && out->count > 1 && out->count <= FY_RANKS_MAX;
    fy_shm_options here = *shm;
    here.ranks = out->count;
    if (out->count < ranks || (ranks > 1 && !together)) {
        error = agree_on_numbers(binding, net, ranks, growth, &out->numbers);
        here.ranks_max = out->numbers != 0 ? out->numbers + 1 : 0;
        here.arenas = (uint32_t)here.ranks_max;
    }
    if (out->numbers != 0)
        here.ranks = ranks;
    out->ranks = calloc((size_t)out->count, sizeof(*out->ranks));
    out->pids = calloc((size_t)out->count, sizeof(*out->pids));
    if (error == 0 && (out->ranks == NULL || out->pids == NULL))
        error = fy_error_set(FERRY_ENOMEM, "open: no memory for %d ranks", out->count);
    if (error == 0 && together)
        error = form_together(binding, near, &here, rank, out);
    if (error == 0 && out->segment == NULL) {
        close_file(out);
        if (out->numbers == 0) {
            here.ranks = 1;
            here.arenas = 0;
            here.ranks_max = ranks == 1 ? shm->ranks_max : 0;
        }
        error = form_alone(&here, rank, out);
    }
    if (error == 0 && out->numbers != 0)
        error = find_homes(binding, net, ranks, out);
    binding->close(near);
    if (error != 0)
        fy_node_free(out);
    return error;
}

void fy_node_free(fy_node *node)
{
    if (node->segment != NULL)
        fy_segment_unmap(node->segment);
    close_file(node);
    free(node->ranks);
    free(node->pids);
    free(node->leaders);
    free(node->homes);
    *node = (fy_node){.fd = -1};
}
