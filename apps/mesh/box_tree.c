/* The leaves follow a Hilbert curve through the centres of the boxes, so that the boxes below one
 * node lie near each other. */
#include "box_tree.h"

#include "hilbert.h"

#include <stdlib.h>

static const mesh_box empty_box = {{INT32_MAX, INT32_MAX}, {INT32_MIN, INT32_MIN}};

static mesh_box join(const mesh_box *a, const mesh_box *b)
{
    return (mesh_box){
        {a->low.x < b->low.x ? a->low.x : b->low.x, a->low.y < b->low.y ? a->low.y : b->low.y},
        {a->high.x > b->high.x ? a->high.x : b->high.x,
         a->high.y > b->high.y ? a->high.y : b->high.y}};
}

static mesh_ranked *order_boxes(const mesh_box *box, int32_t count)
{
    mesh_point *centre = malloc((size_t)count * sizeof *centre);
    mesh_ranked *order = NULL;
    if (centre != NULL) {
        for (int32_t i = 0; i < count; i++) {
            centre[i] = mesh_middle(box[i].low, box[i].high);
        }
        order = mesh_hilbert_order(centre, count);
    }
    free(centre);
    return order;
}

int mesh_box_tree_init(mesh_box_tree *out, const mesh_box *box, int32_t count)
{
    *out = (mesh_box_tree){.leaves = 1};
    while (out->leaves < count) {
        out->leaves *= 2;
    }
    out->node = malloc(2 * (size_t)out->leaves * sizeof *out->node);
    out->item = malloc((size_t)out->leaves * sizeof *out->item);
    mesh_ranked *order = order_boxes(box, count);
    if (out->node == NULL || out->item == NULL || order == NULL) {
        free(order);
        mesh_box_tree_fini(out);
        return -1;
    }
    for (int32_t i = 0; i < out->leaves; i++) {
        out->item[i] = i < count ? order[i].index : -1;
        out->node[out->leaves + i] = i < count ? box[order[i].index] : empty_box;
    }
    for (int32_t i = out->leaves - 1; i > 0; i--) {
        out->node[i] = join(&out->node[2 * i], &out->node[2 * i + 1]);
    }
    free(order);
    return 0;
}

void mesh_box_tree_fini(mesh_box_tree *tree)
{
    free(tree->node);
    free(tree->item);
    *tree = (mesh_box_tree){0};
}

typedef struct search {
    const mesh_box_tree *tree;
    mesh_point a, b;
    mesh_box around; /* the segment, widened by the reach */
    int32_t reach;
    mesh_box_visit visit;
    void *arg;
} search;

/* False when the box lies apart from the widened box around the segment, or on one side of the
 * line through it. */
static bool may_touch(const search *s, const mesh_box *box)
{
    if (box->low.x > s->around.high.x || box->high.x < s->around.low.x ||
        box->low.y > s->around.high.y || box->high.y < s->around.low.y) {
        return false;
    }
    int32_t x0 = box->low.x - s->reach, x1 = box->high.x + s->reach;
    int32_t y0 = box->low.y - s->reach, y1 = box->high.y + s->reach;
    const mesh_point corner[4] = {{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}};
    int left = 0, right = 0;
    for (int i = 0; i < 4; i++) {
        int64_t turn = mesh_orient(s->a, s->b, corner[i]);
        left += turn > 0;
        right += turn < 0;
    }
    return left < 4 && right < 4;
}

static int search_node(const search *s, int32_t node)
{
    if (!may_touch(s, &s->tree->node[node])) {
        return 0;
    }
    if (node >= s->tree->leaves) {
        return s->visit(s->arg, s->tree->item[node - s->tree->leaves]);
    }
    int rc = search_node(s, 2 * node);
    return rc != 0 ? rc : search_node(s, 2 * node + 1);
}

int mesh_box_tree_search(const mesh_box_tree *tree, mesh_point a, mesh_point b, int32_t reach,
                         mesh_box_visit visit, void *arg)
{
    search s = {tree, a, b, mesh_box_around(a, b), reach, visit, arg};
    s.around.low = (mesh_point){s.around.low.x - reach, s.around.low.y - reach};
    s.around.high = (mesh_point){s.around.high.x + reach, s.around.high.y + reach};
    return search_node(&s, 1);
}
