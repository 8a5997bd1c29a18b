/* Part: the bodies and trees of an element, and how they travel. */
#include "fmm/part.h"

#include <stdlib.h>
#include <string.h>

void *bytes_append(bytes *b, const void *data, size_t size_bytes)
{
    if (b->size + size_bytes > b->capacity) {
        size_t more =
            2 * b->capacity > b->size + size_bytes ? 2 * b->capacity : b->size + size_bytes;
        unsigned char *larger = realloc(b->at, more);
        if (larger == NULL)
            return NULL;
        b->at = larger;
        b->capacity = more;
    }
    void *to = b->at + b->size;
    if (data != NULL && size_bytes != 0)
        memcpy(to, data, size_bytes);
    b->size += size_bytes;
    return to;
}

static part *allocate(uint32_t element, uint32_t tree_count)
{
    part *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    *p = (part){.element = element, .tree_count = tree_count};
    p->trees = calloc(tree_count, sizeof *p->trees);
    if (p->trees != NULL)
        return p;
    free(p);
    return NULL;
}

part *part_create(const layout *l, uint32_t element)
{
    return allocate(element,
                    layout_is_chunk(l, element) ? l->first[element + 1] - l->first[element] : 1);
}

void part_free_trees(part *p)
{
    for (uint32_t i = 0; i < p->tree_count; i++)
        tree_free(&p->trees[i]);
}

void part_free(part *p)
{
    part_free_trees(p);
    free(p->trees);
    free(p->bodies);
    free(p->sources.at);
    free(p);
}

bool part_add_bodies(part *p, const body *bodies, size_t count)
{
    const size_t all = p->body_count + count;
    if (all > p->body_capacity) {
        size_t more = all > 2 * (size_t)p->body_capacity ? all : 2 * (size_t)p->body_capacity;
        body *larger = realloc(p->bodies, more * sizeof *larger);
        if (larger == NULL)
            return false;
        p->bodies = larger;
        p->body_capacity = (uint32_t)more;
    }
    if (count != 0)
        memcpy(p->bodies + p->body_count, bodies, count * sizeof *bodies);
    p->body_count = (uint32_t)all;
    return true;
}

/* The boxes from `first` on. */
typedef struct places {
    const layout *layout;
    uint32_t first;
} places;

static uint32_t box_of(const void *arg, const body *b)
{
    const places *p = arg;
    return layout_box_at(p->layout, b->at) - p->first;
}

bool part_build(part *p, const layout *l, const method *m)
{
    uint32_t *ends = calloc(p->tree_count, sizeof *ends), begin = 0;
    const places boxes = {l, l->first[p->element]};
    bool made =
        ends != NULL && bodies_sort(p->bodies, p->body_count, box_of, &boxes, p->tree_count, ends);
    for (uint32_t i = 0; made && i < p->tree_count; begin = ends[i++]) {
        cell root = layout_box(l, l->first[p->element] + i);
        made = tree_build(&p->trees[i], m, root, p->bodies + begin, ends[i] - begin);
    }
    free(ends);
    return made;
}

/* The head of a tree that travels. */
typedef struct packed_tree {
    uint32_t cell_count, body_count;
    uint64_t first; /* body; a tree above the boxes has none */
} packed_tree;

static size_t expansions_size(uint32_t cell_count, const method *m)
{
    return cell_count * expansion_terms(m->order) * sizeof(double complex);
}

size_t part_packed_size(const part *p, const method *m)
{
    size_t size = sizeof *p + p->body_count * sizeof(body) + p->sources.size;
    for (uint32_t i = 0; i < p->tree_count; i++)
        size += sizeof(packed_tree) + p->trees[i].cell_count * sizeof(cell) +
                2 * expansions_size(p->trees[i].cell_count, m);
    return size;
}

static unsigned char *put(unsigned char *at, const void *data, size_t size_bytes)
{
    if (size_bytes != 0)
        memcpy(at, data, size_bytes);
    return at + size_bytes;
}

void part_pack(const part *p, const method *m, void *buffer)
{
    unsigned char *at = put(buffer, p, sizeof *p);
    at = put(at, p->bodies, p->body_count * sizeof(body));
    at = put(at, p->sources.at, p->sources.size);
    for (uint32_t i = 0; i < p->tree_count; i++) {
        const tree *t = &p->trees[i];
        const packed_tree head = {t->cell_count, t->body_count,
                                  t->body_count > 0 ? (uint64_t)(t->bodies - p->bodies) : 0};
        at = put(at, &head, sizeof head);
        at = put(at, t->cells, t->cell_count * sizeof(cell));
        at = put(at, t->multipoles, expansions_size(t->cell_count, m));
        at = put(at, t->locals, expansions_size(t->cell_count, m));
    }
}

/* A copy of what stands at `*at`, which moves behind it. */
static void *get(const unsigned char **at, size_t size_bytes)
{
    void *copy = malloc(size_bytes + 1);
    if (copy != NULL)
        memcpy(copy, *at, size_bytes);
    *at += size_bytes;
    return copy;
}

static bool get_tree(part *p, tree *t, const method *m, const unsigned char **at)
{
    packed_tree head;
    memcpy(&head, *at, sizeof head);
    *at += sizeof head;
    if (head.cell_count == 0)
        return true;
    t->cell_count = head.cell_count;
    t->body_count = head.body_count;
    t->bodies = p->bodies + head.first;
    t->cells = get(at, head.cell_count * sizeof(cell));
    t->multipoles = get(at, expansions_size(head.cell_count, m));
    t->locals = get(at, expansions_size(head.cell_count, m));
    return t->cells != NULL && t->multipoles != NULL && t->locals != NULL && tree_fill_sources(t);
}

part *part_unpack(const method *m, const void *buffer)
{
    const unsigned char *at = buffer;
    part head;
    memcpy(&head, at, sizeof head);
    at += sizeof head;
    part *p = allocate(head.element, head.tree_count);
    if (p == NULL)
        return NULL;
    p->step = head.step;
    p->load = head.load;
    p->body_count = p->body_capacity = head.body_count;
    p->bodies = get(&at, head.body_count * sizeof(body));
    p->sources.size = p->sources.capacity = head.sources.size;
    p->sources.at = get(&at, head.sources.size);
    bool made = p->bodies != NULL && p->sources.at != NULL;
    for (uint32_t i = 0; made && i < p->tree_count; i++)
        made = get_tree(p, &p->trees[i], m, &at);
    if (made)
        return p;
    part_free(p);
    return NULL;
}
