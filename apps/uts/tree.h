/* Tree: the trees of the unbalanced tree search benchmark (Olivier et al., UTS). Each node is a
 * hash of its parent's and of its number among the children, and its hash alone decides how many
 * children it has. So a tree can be searched in any order and anywhere, and its size is known only
 * when all of it has been seen. */
#ifndef UTS_TREE_H
#define UTS_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { UTS_HASH_BYTES = 20, UTS_CHILDREN_MAX = 100 };

typedef enum uts_kind { UTS_BINOMIAL, UTS_GEOMETRIC, UTS_HYBRID } uts_kind;

/* How the expected number of children changes with the depth in a geometric tree. */
typedef enum uts_shape { UTS_LINEAR, UTS_CYCLIC, UTS_FIXED } uts_shape;

/* A tree, with what has been published of it. */
typedef struct uts_tree {
    const char *name;
    uts_kind kind;
    uts_shape shape;
    double branching; /* children of the root; expected ones of a node of a geometric tree */
    int depth;        /* to which a geometric tree grows */
    int seed;
    double probability; /* that a node of a binomial tree has `children` */
    int children;
    uint64_t nodes, leaves; /* published */
    int depth_max;
} uts_tree;

typedef struct uts_node {
    unsigned char hash[UTS_HASH_BYTES];
    int32_t depth;
} uts_node;

/* The published tree of that name, or NULL. */
const uts_tree *uts_tree_find(const char *name);

/* The name of the `index`th tree, or NULL. */
const char *uts_tree_name(int index);

enum { UTS_TREES_MAX = 8 };

void uts_root(const uts_tree *tree, uts_node *out);

int uts_children(const uts_tree *tree, const uts_node *node);

/* Makes child `number` of `parent`. */
void uts_child(const uts_node *parent, int number, uts_node *out);

#endif
