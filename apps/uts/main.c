/* UTS: unbalanced tree search. Counts the nodes of a tree that nobody knows before it is searched,
 * in tasks of about a microsecond that the balancer moves.
 *
 *      ferry run -n 2 build/apps/uts --tree T3
 *
 * An object is a bag of nodes still to be searched. Its task searches a few of them, deepest first,
 * and then sends itself the next. As long as its rank has few bags, a bag that has enough nodes
 * gives half of them to a new object: those nearest to the root, below which most is to be
 * expected. --sequential searches without Ferry. The size that was published is the check. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/parameters.h"

#include "tree.h"

/* Bags that a rank keeps for itself and others, and nodes that make it worth to split one. */
enum { BAGS = 8, SPLIT_NODES = 8, CAPACITY = 64 };

typedef struct options {
    const uts_tree *tree;
    long grain;     /* children made by a task */
    double node_ns; /* spent for each node, in the simulator */
    bool sequential;
} options;

/* The counts of a rank. */
typedef struct counts {
    uint64_t nodes, leaves, depth_max, tasks;
} counts;

typedef struct bag {
    size_t count, capacity;
    uts_node *nodes;
} bag;

typedef struct state {
    options options;
    counts counts;
    uint64_t bags;
    int error;
    ferry_object_type type;
    ferry_handler search;
} state;

/* Makes room for `more` nodes. */
static bool reserve(bag *b, size_t more)
{
    if (b->count + more <= b->capacity)
        return true;
    size_t capacity = b->capacity > 0 ? b->capacity : CAPACITY;
    while (capacity < b->count + more)
        capacity *= 2;
    uts_node *nodes = realloc(b->nodes, capacity * sizeof *nodes);
    if (nodes == NULL)
        return false;
    b->nodes = nodes;
    b->capacity = capacity;
    return true;
}

/* Takes nodes off the bag until it is empty or `grain` hashes were made: the children's, or one for
 * a leaf that is only looked at. False when there is no memory. */
static bool search(const uts_tree *tree, bag *b, long grain, counts *c)
{
    while (b->count > 0 && grain > 0) {
        uts_node node = b->nodes[--b->count];
        int children = uts_children(tree, &node);
        if (!reserve(b, (size_t)children))
            return false;
        for (int i = 0; i < children; i++)
            uts_child(&node, i, &b->nodes[b->count++]);
        c->nodes++;
        c->leaves += children == 0;
        if ((uint64_t)node.depth > c->depth_max)
            c->depth_max = (uint64_t)node.depth;
        grain -= children > 0 ? children : 1;
    }
    return true;
}

static size_t bag_packed_size(ferry *f, const void *data)
{
    (void)f;
    return ((const bag *)data)->count * sizeof(uts_node);
}

static void bag_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    memcpy(buffer, ((const bag *)data)->nodes, size_bytes);
}

static bag *bag_create(const uts_node *nodes, size_t count)
{
    bag *b = calloc(1, sizeof *b);
    if (b == NULL || !reserve(b, count)) {
        free(b);
        return NULL;
    }
    memcpy(b->nodes, nodes, count * sizeof *nodes);
    b->count = count;
    return b;
}

static void *bag_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f;
    (void)object;
    return bag_create(buffer, size_bytes / sizeof(uts_node));
}

static void bag_destroy(ferry *f, void *data)
{
    bag *b = data;
    (void)f;
    free(b->nodes);
    free(b);
}

/* Makes an object of `nodes` and sends it its first task. */
static int start_bag(ferry *f, state *s, const uts_node *nodes, size_t count)
{
    ferry_object object;
    bag *b = bag_create(nodes, count);
    if (b == NULL)
        return FERRY_ENOMEM;
    int error = ferry_object_create(f, s->type, b, &object);
    if (error != 0) {
        bag_destroy(f, b);
        return error;
    }
    error = ferry_balance_add(f, object, NULL);
    if (error == 0)
        error = ferry_object_send(f, object, &(ferry_message){.handler = s->search}, NULL);
    s->bags++;
    return error;
}

static int split(ferry *f, state *s, bag *b)
{
    size_t half = b->count / 2;
    int error = start_bag(f, s, b->nodes, half);
    if (error != 0)
        return error;
    b->count -= half;
    memmove(b->nodes, b->nodes + half, b->count * sizeof *b->nodes);
    return 0;
}

static void on_search(ferry *f, ferry_object object, void *data, int source,
                      const ferry_message *message)
{
    state *s = ferry_user_data(f);
    bag *b = data;
    (void)source;
    if (s->error != 0)
        return; /* what is left of the tree does not matter any more */
    s->counts.tasks++;
    uint64_t before = s->counts.nodes;
    if (!search(s->options.tree, b, s->options.grain, &s->counts)) {
        s->error = FERRY_ENOMEM;
        return;
    }
    if (s->options.node_ns > 0)
        ferry_compute(f, s->options.node_ns * 1e-9 * (double)(s->counts.nodes - before));
    if (b->count == 0) {
        (void)ferry_object_destroy(f, object); /* it runs here */
        return;
    }
    if (b->count >= SPLIT_NODES && ferry_object_count(f) < BAGS)
        s->error = split(f, s, b);
    if (s->error == 0)
        s->error = ferry_object_send(f, object, message, NULL);
}

static bool is_right(const uts_tree *tree, const counts *c)
{
    return c->nodes == tree->nodes && c->leaves == tree->leaves &&
           c->depth_max == (uint64_t)tree->depth_max;
}

static int report(const options *o, const counts *c, const char *how, uint64_t took_ns)
{
    printf("%s: %" PRIu64 " nodes, %" PRIu64 " leaves, depth %" PRIu64 ": %s\n", o->tree->name,
           c->nodes, c->leaves, c->depth_max, is_right(o->tree, c) ? "as published" : "WRONG");
    printf("%s: %.2f ms, %" PRIu64 " tasks, %.3f us each\n", how, (double)took_ns / 1e6, c->tasks,
           (double)took_ns / 1e3 / (double)(c->tasks > 0 ? c->tasks : 1));
    return is_right(o->tree, c) ? 0 : 1;
}

/* The same search with the same grain, without objects, messages and tasks. */
static int search_alone(ferry *f, const options *o)
{
    counts c = {0};
    bag b = {0};
    bool room = reserve(&b, 1);
    uint64_t start_ns = ferry_now(f);
    if (room)
        uts_root(o->tree, &b.nodes[b.count++]);
    for (; room && b.count > 0; c.tasks++)
        room = search(o->tree, &b, o->grain, &c);
    uint64_t took_ns = ferry_now(f) - start_ns;
    free(b.nodes);
    if (!room)
        fprintf(stderr, "uts: no memory\n");
    return room ? report(o, &c, "sequential", took_ns) : 1;
}

/* Searches the tree on all ranks. `*took_ns` is this rank's time. */
static int search_together(ferry *f, state *s, uint64_t *took_ns)
{
    static const ferry_object_ops ops = {.size = sizeof ops,
                                         .name = "bag",
                                         .packed_size = bag_packed_size,
                                         .pack = bag_pack,
                                         .unpack = bag_unpack,
                                         .destroy = bag_destroy};
    uts_node root;
    int error = ferry_object_type_register(f, &ops, &s->type);
    if (error == 0)
        error = ferry_object_handler_register(f, "search", on_search, &s->search);
    if (error == 0)
        error = ferry_balance_enable(f, true);
    uint64_t start_ns = ferry_now(f);
    uts_root(s->options.tree, &root);
    if (error == 0 && ferry_rank(f) == 0)
        error = start_bag(f, s, &root, 1);
    if (error == 0)
        error = ferry_quiesce(f);
    *took_ns = ferry_now(f) - start_ns;
    return error != 0 ? error : s->error;
}

static int gather_counts(ferry *f, counts *c)
{
    uint64_t sums[3] = {c->nodes, c->leaves, c->tasks};
    int error = ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, sums, sums, 3);
    if (error == 0)
        error = ferry_allreduce(f, FERRY_UINT64, FERRY_MAX, &c->depth_max, &c->depth_max, 1);
    c->nodes = sums[0];
    c->leaves = sums[1];
    c->tasks = sums[2];
    return error;
}

static void print_rank(ferry *f, const state *s)
{
    ferry_stats stats = FERRY_STATS_DEFAULTS;
    ferry_stats_get(f, &stats);
    printf("rank %d: %" PRIu64 " nodes in %" PRIu64 " tasks, %" PRIu64 " bags made, %" PRIu64
           " in, %" PRIu64 " out; task %.2f, runtime %.2f, idle %.2f ms\n",
           ferry_rank(f), s->counts.nodes, s->counts.tasks, s->bags, stats.objects_in,
           stats.objects_out, (double)stats.task_ns / 1e6, (double)stats.runtime_ns / 1e6,
           (double)stats.idle_ns / 1e6);
}

static int read_options(ferry *f, int argc, char **argv, options *o)
{
    const char *trees[UTS_TREES_MAX + 1] = {0};
    int tree = 0;
    for (int i = 0; uts_tree_name(i) != NULL && i < UTS_TREES_MAX; i++) {
        trees[i] = uts_tree_name(i);
        tree = strcmp(trees[i], "T3") == 0 ? i : tree;
    }
    const parameter table[] = {
        {"tree", "by its published name", .choice = &tree, .of = trees},
        {"grain", "hashes per task", 1, 1e9, .whole = &o->grain},
        {"node-ns", "spent for each node, for the simulator", 0, 1e9, .real = &o->node_ns},
        {"sequential", "one rank, without tasks", .flag = &o->sequential},
        {0},
    };
    int status = parameters_read(f, argc, argv, "Counts the nodes of an unbalanced tree.", table);
    o->tree = uts_tree_find(trees[tree]);
    return status;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    state s = {.options = {.grain = 40}};
    uint64_t took_ns = 0;
    int status = read_options(f, argc, argv, &s.options);
    if (status >= 0)
        return status;
    if (s.options.sequential)
        return ferry_rank(f) == 0 ? search_alone(f, &s.options) : 0;
    ferry_user_data_set(f, &s);
    int error = search_together(f, &s, &took_ns);
    if (error == 0) {
        print_rank(f, &s);
        error = gather_counts(f, &s.counts);
    }
    if (error != 0) {
        fprintf(stderr, "uts: rank %d: %s: %s\n", ferry_rank(f), ferry_strerror(error),
                ferry_error_message(f));
        return 1;
    }
    char how[32];
    (void)snprintf(how, sizeof how, "%d ranks", ferry_ranks(f));
    return ferry_rank(f) == 0 ? report(&s.options, &s.counts, how, took_ns)
                              : !is_right(s.options.tree, &s.counts);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
