#include "tree.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include <nettle/sha1.h>

/* The benchmark's sample trees T1 to T5. */
static const uts_tree trees[] = {
    {"T1", UTS_GEOMETRIC, UTS_FIXED, 4, 10, 19, 0, 0, 4130071, 3305118, 10},
    {"T2", UTS_GEOMETRIC, UTS_CYCLIC, 6, 16, 502, 0, 0, 4117769, 2342762, 81},
    {"T3", UTS_BINOMIAL, UTS_LINEAR, 2000, 0, 42, 0.124875, 8, 4112897, 3599034, 1572},
    {"T4", UTS_HYBRID, UTS_LINEAR, 6, 16, 1, 0.234375, 4, 4132453, 3108986, 134},
    {"T5", UTS_GEOMETRIC, UTS_LINEAR, 4, 20, 34, 0, 0, 4147582, 2181318, 20},
};

const uts_tree *uts_tree_find(const char *name)
{
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        if (strcmp(trees[i].name, name) == 0)
            return &trees[i];
    return NULL;
}

const char *uts_tree_name(int index)
{
    return (size_t)index < sizeof trees / sizeof *trees ? trees[index].name : NULL;
}

static void put_word(unsigned char *out, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(word >> (24 - 8 * i));
}

void uts_root(const uts_tree *tree, uts_node *out)
{
    unsigned char start[UTS_HASH_BYTES] = {0};
    struct sha1_ctx sha;
    put_word(start + 16, (uint32_t)tree->seed);
    sha1_init(&sha);
    sha1_update(&sha, sizeof start, start);
    sha1_digest(&sha, UTS_HASH_BYTES, out->hash);
    out->depth = 0;
}

void uts_child(const uts_node *parent, int number, uts_node *out)
{
    unsigned char bytes[UTS_HASH_BYTES + 4];
    struct sha1_ctx sha;
    memcpy(bytes, parent->hash, UTS_HASH_BYTES);
    put_word(bytes + UTS_HASH_BYTES, (uint32_t)number);
    int depth = parent->depth + 1;
    sha1_init(&sha);
    sha1_update(&sha, sizeof bytes, bytes);
    sha1_digest(&sha, UTS_HASH_BYTES, out->hash);
    out->depth = depth;
}

/* A number in [0, 1) that the node's hash gives. */
static double chance(const uts_node *node)
{
    const unsigned char *h = node->hash + 16;
    uint32_t word = (uint32_t)h[0] << 24 | (uint32_t)h[1] << 16 | (uint32_t)h[2] << 8 | h[3];
    return (double)(word & INT32_MAX) / 2147483648.0;
}

static int binomial_children(const uts_tree *tree, const uts_node *node)
{
    if (node->depth == 0)
        return (int)tree->branching;
    return chance(node) < tree->probability ? tree->children : 0;
}

static double expected_children(const uts_tree *tree, int depth)
{
    if (depth == 0)
        return tree->branching;
    switch (tree->shape) {
    case UTS_CYCLIC:
        if (depth > 5 * tree->depth)
            return 0;
        return pow(tree->branching, sin(2 * 3.141592653589793 * depth / tree->depth));
    case UTS_FIXED:
        return depth < tree->depth ? tree->branching : 0;
    case UTS_LINEAR:
        break;
    }
    return tree->branching * (1 - (double)depth / tree->depth);
}

static int geometric_children(const uts_tree *tree, const uts_node *node)
{
    double p = 1 / (1 + expected_children(tree, node->depth));
    int count = (int)floor(log(1 - chance(node)) / log(1 - p));
    return count < UTS_CHILDREN_MAX ? count : UTS_CHILDREN_MAX;
}

int uts_children(const uts_tree *tree, const uts_node *node)
{
    bool geometric =
        tree->kind == UTS_GEOMETRIC || (tree->kind == UTS_HYBRID && node->depth < tree->depth / 2);
    return geometric ? geometric_children(tree, node) : binomial_children(tree, node);
}
