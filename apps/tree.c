/* Tree: a computation over a binary tree whose nodes are spread over the ranks (prema.txt 4.2.3),
 * and the same with balancing (5.3), for which not a line of the computation changes.
 *
 *     ferry run -n 4 build/apps/tree [--depth D] [--balance] [--direct]
 *
 * Each rank makes a subtree; rank 0 joins them under nodes of its own. A message to the root brings
 * a number; each node computes with it and its own data and sends the result to its children, by
 * name, wherever they are. With --direct a child that is on this rank is called instead (Figure
 * 4.10). Leaves add up, and the sum over all ranks is compared with that of a recursive function.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/parameters.h"

enum { DEPTH_MAX = 20, WORK_US = 20 };

typedef struct node {
    ferry_object left, right; /* none: a leaf */
    uint64_t number;          /* as in a heap: the children of n are 2n and 2n + 1 */
} node;

typedef struct state {
    ferry_object_type type;
    ferry_handler work;
    bool balance, direct;
    uint64_t visited, sum;
} state;

static uint64_t compute(uint64_t number, uint64_t from_parent)
{
    return (from_parent ^ number) * 0x9e3779b97f4a7c15u >> 7;
}

static void work_at(ferry *f, const node *n, uint64_t from_parent);

static void pass_on(ferry *f, ferry_object child, uint64_t value)
{
    const state *s = ferry_user_data(f);
    const node *here = s->direct ? ferry_object_data(f, child) : NULL;
    const ferry_message message = {.handler = s->work, .word_count = 1, .words = {value}};
    if (here != NULL)
        work_at(f, here, value);
    else
        check(f, ferry_object_send(f, child, &message, NULL));
}

static void work_at(ferry *f, const node *n, uint64_t from_parent)
{
    state *s = ferry_user_data(f);
    uint64_t value = compute(n->number, from_parent);
    ferry_compute(f, WORK_US * 1e-6);
    s->visited++;
    if (ferry_object_is_none(n->left)) {
        s->sum += value;
        return;
    }
    pass_on(f, n->left, value);
    pass_on(f, n->right, value);
}

static void on_work(ferry *f, ferry_object object, void *data, int source,
                    const ferry_message *message)
{
    (void)object;
    (void)source;
    work_at(f, data, message->words[0]);
}

static ferry_object create_node(ferry *f, uint64_t number, ferry_object left, ferry_object right)
{
    const state *s = ferry_user_data(f);
    ferry_object object;
    node *n = malloc(sizeof *n);
    check(f, n != NULL ? 0 : FERRY_ENOMEM);
    *n = (node){left, right, number};
    check(f, ferry_object_create(f, s->type, n, &object));
    if (s->balance)
        check(f, ferry_balance_add(f, object, NULL));
    return object;
}

static ferry_object create_below(ferry *f, uint64_t number, int depth)
{
    ferry_object none = {0};
    if (depth == 0)
        return create_node(f, number, none, none);
    ferry_object left = create_below(f, 2 * number, depth - 1);
    return create_node(f, number, left, create_below(f, 2 * number + 1, depth - 1));
}

/* Makes the node `number` and joins what is below it; `parts` are the roots of the subtrees, which
 * begin with number `first`. */
static ferry_object join(ferry *f, uint64_t number, uint64_t first, const ferry_object *parts)
{
    if (number >= first)
        return parts[number - first];
    ferry_object left = join(f, 2 * number, first, parts);
    return create_node(f, number, left, join(f, 2 * number + 1, first, parts));
}

/* Each rank makes some of the subtrees, rank 0 what is above them. Gives the root there. */
static ferry_object create_tree(ferry *f, int depth)
{
    int top = 0;
    while (top < depth && (1 << top) < 2 * ferry_ranks(f))
        top++;
    uint64_t first = (uint64_t)1 << top;
    uint64_t *parts = calloc(first, sizeof *parts);
    check(f, parts != NULL ? 0 : FERRY_ENOMEM);
    for (uint64_t i = 0; i < first; i++)
        if ((int)(i % (uint64_t)ferry_ranks(f)) == ferry_rank(f))
            parts[i] = create_below(f, first + i, depth - top).word;
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, parts, parts, first));
    ferry_object root = {0};
    if (ferry_rank(f) == 0) {
        ferry_object *names = calloc(first, sizeof *names);
        check(f, names != NULL ? 0 : FERRY_ENOMEM);
        for (uint64_t i = 0; i < first; i++)
            names[i].word = parts[i];
        root = join(f, 1, first, names);
        free(names);
    }
    free(parts);
    return root;
}

/* The sum of the leaves below a node, without objects and messages. */
static uint64_t expected_sum(uint64_t number, int depth, uint64_t from_parent)
{
    uint64_t value = compute(number, from_parent);
    if (depth == 0)
        return value;
    return expected_sum(2 * number, depth - 1, value) +
           expected_sum(2 * number + 1, depth - 1, value);
}

static int run(ferry *f, int depth)
{
    state *s = ferry_user_data(f);
    ferry_object root = create_tree(f, depth);
    if (s->balance)
        check(f, ferry_balance_enable(f, true));
    else
        check(f, ferry_barrier(f));
    const ferry_message zero = {.handler = s->work, .word_count = 1};
    if (ferry_rank(f) == 0)
        check(f, ferry_object_send(f, root, &zero, NULL));
    check(f, ferry_quiesce(f));
    uint64_t totals[2] = {s->visited, s->sum};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, totals, totals, 2));
    bool right = totals[0] == ((uint64_t)2 << depth) - 1 && totals[1] == expected_sum(1, depth, 0);
    printf("rank %d visited %" PRIu64 " of %" PRIu64 " nodes\n", ferry_rank(f), s->visited,
           totals[0]);
    if (ferry_rank(f) == 0)
        printf("sum %" PRIu64 ", %s\n", totals[1], right ? "right" : "WRONG");
    return right ? 0 : 1;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "node", .flat_bytes = sizeof(node)};
    state s = {0};
    long depth = 10;
    const parameter table[] = {
        {"depth", "of the tree", 0, DEPTH_MAX, .whole = &depth},
        {"balance", "move nodes from busy ranks to idle ones", .flag = &s.balance},
        {"direct", "call children that are on this rank, send to others", .flag = &s.direct},
        {0},
    };
    int status = parameters_read(f, argc, argv, "A tree whose nodes are objects.", table);
    if (status >= 0)
        return status;
    ferry_user_data_set(f, &s);
    check(f, ferry_object_type_register(f, &ops, &s.type));
    check(f, ferry_object_handler_register(f, "work", on_work, &s.work));
    return run(f, (int)depth);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
