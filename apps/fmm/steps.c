/* Steps: a time step of a part is four steps of its element.
 *
 *   UP    a chunk builds its trees, a parent has the expansions of its eight cells. They send
 *         views to their neighbours, and the expansion of the root to the parent above.
 *   SIDE  all views are here. The element counts the operations of its interactions.
 *   WORK  all elements have come so far. The interactions are computed: a task whose load is known,
 *         which the scheduler may move with all that it needs.
 *   DOWN  the local expansion from above is here, too. It goes down to the cells of a parent, or
 *         to the bodies. Bodies move, and those that leave a chunk go to its neighbours.
 *
 * All but WORK is short. Without the barrier before WORK, a rank would compute its first task while
 * other messages wait. These make its other tasks, which no rank can take before, and those of its
 * neighbours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/fmm.h"

enum { UP, SIDE, WORK, DOWN, PHASES, OCTANTS = 8 };

static ferry_index index_of(uint32_t element)
{
    return ferry_index_of(element, 0, 0);
}

/* Spends the time of `flops`, and counts what has passed since `begin_ns` as work. */
static void account(fmm *s, const part *p, double flops, uint64_t begin_ns)
{
    s->flops[layout_chunk(&s->layout, p->element)] += flops;
    cost_add(&s->cost, flops);
    cost_spend(&s->cost, s->f);
    s->work_ns += ferry_now(s->f) - begin_ns;
}

/* Says what step `phase` of time step `step` needs. */
static void go_on(const fmm *s, ferry_element *e, int64_t step, int phase, uint32_t messages)
{
    ferry_step needs = FERRY_STEP_DEFAULTS;
    if (step == s->steps)
        return;
    needs.messages = messages;
    needs.number = (uint64_t)(step * PHASES + phase);
    needs.reduction = phase == WORK;
    check(s->f, ferry_step_next(e, &needs));
}

static void send(const fmm *s, const ferry_element *e, uint32_t to, int64_t step, int phase,
                 const ferry_message *message)
{
    check(s->f, ferry_step_send(e->collection, e, index_of(to), (uint64_t)(step * PHASES + phase),
                                message, NULL));
}

/* Sends an expansion with two words: which cell of the receiver it is of, and how many bodies. */
static void send_expansion(const fmm *s, const ferry_element *e, uint32_t to, int phase,
                           uint64_t which, uint64_t count, const double complex *expansion)
{
    const ferry_message message = {.word_count = 2,
                                   .words = {which, count},
                                   .data = expansion,
                                   .size_bytes =
                                       expansion_terms(s->method.order) * sizeof *expansion};
    send(s, e, to, ((const part *)e->data)->step, phase, &message);
}

static void add_expansion(const fmm *s, double complex *to, const ferry_message *message)
{
    const double complex *from = message->data;
    for (size_t i = 0; i < expansion_terms(s->method.order); i++)
        to[i] += from[i];
}

/* The cells of `element` that views are made for. Gives `*count` of them, freed with free. */
static cell *roots_of(const fmm *s, uint32_t element, uint32_t *count)
{
    const layout *l = &s->layout;
    const bool is_chunk = layout_is_chunk(l, element);
    *count = is_chunk ? l->first[element + 1] - l->first[element] : 1;
    cell *roots = malloc(*count * sizeof *roots);
    fmm_need(s->f, roots != NULL);
    for (uint32_t i = 0; i < *count; i++)
        roots[i] = is_chunk ? layout_box(l, l->first[element] + i) : layout_parent(l, element);
    return roots;
}

/* Sends each neighbour what it may need of the trees. Returns how many neighbours there are. */
static uint32_t send_views(const fmm *s, const ferry_element *e)
{
    const part *p = e->data;
    uint32_t count = 0, root_count;
    uint32_t *neighbours = layout_neighbours(&s->layout, p->element, &count);
    bytes out = {0};
    fmm_need(s->f, neighbours != NULL);
    for (uint32_t i = 0; i < count; i++) {
        cell *roots = roots_of(s, neighbours[i], &root_count);
        out.size = 0;
        for (uint32_t t = 0; t < p->tree_count; t++)
            fmm_need(s->f, view_pack(&p->trees[t], &s->method, roots, root_count, &out));
        const ferry_message message = {.data = out.at, .size_bytes = out.size};
        send(s, e, neighbours[i], p->step, SIDE, &message);
        free(roots);
    }
    free(out.at);
    free(neighbours);
    return count;
}

/* Sends the expansion of each root to the parent above, if there is one. */
static void send_multipoles(const fmm *s, const ferry_element *e)
{
    const part *p = e->data;
    for (uint32_t i = 0; i < p->tree_count; i++) {
        const cell *root = &p->trees[i].cells[0];
        if (root->level < 2)
            continue;
        const cell above = {.level = root->level - 1,
                            .at = {root->at[0] / 2, root->at[1] / 2, root->at[2] / 2}};
        const uint32_t octant = layout_box_of(root) % OCTANTS;
        send_expansion(s, e, layout_parent_of(&s->layout, &above), UP, octant, root->count,
                       p->trees[i].multipoles);
    }
}

static double build_chunk(const fmm *s, part *p, const ferry_inputs *in)
{
    double flops = 0;
    for (size_t i = 0; i < in->count; i++) {
        const ferry_message *m = in->inputs[i].message;
        fmm_need(s->f, part_add_bodies(p, m->data, m->size_bytes / sizeof(body)));
    }
    for (body *b = p->bodies; b < p->bodies + p->body_count; b++) {
        b->potential = 0;
        memset(b->acceleration, 0, sizeof b->acceleration);
    }
    fmm_need(s->f, part_build(p, &s->layout, &s->method));
    for (uint32_t i = 0; i < p->tree_count; i++)
        flops += tree_build_flops(&p->trees[i], &s->method);
    return flops;
}

static double build_parent(const fmm *s, part *p, const ferry_inputs *in)
{
    tree *t = &p->trees[0];
    fmm_need(s->f, tree_build_cut(t, &s->method, layout_parent(&s->layout, p->element)));
    for (size_t i = 0; i < in->count; i++) {
        const ferry_message *m = in->inputs[i].message;
        const size_t child = 1 + (size_t)m->words[0];
        t->cells[child].count = (uint32_t)m->words[1];
        add_expansion(s, t->multipoles + child * expansion_terms(s->method.order), m);
    }
    tree_combine(t, &s->method);
    return tree_build_flops(t, &s->method);
}

static void go_up(fmm *s, ferry_element *e, const ferry_inputs *in)
{
    part *p = e->data;
    const uint64_t begin_ns = ferry_now(s->f);
    const bool is_chunk = layout_is_chunk(&s->layout, p->element);
    account(s, p, is_chunk ? build_chunk(s, p, in) : build_parent(s, p, in), begin_ns);
    send_multipoles(s, e);
    go_on(s, e, p->step, SIDE, send_views(s, e));
}

/* Computes all interactions of the part, or counts their operations. */
static double interact(const fmm *s, part *p, bool dry)
{
    double flops = 0;
    for (uint32_t i = 0; i < p->tree_count; i++) {
        tree *t = &p->trees[i];
        for (uint32_t k = 0; k < p->tree_count; k++) {
            const view v = tree_view(&p->trees[k]);
            if (cell_touches(&v.cells[0], &t->cells[0]))
                flops += tree_interact(t, &v, &s->method, dry);
        }
        for (const unsigned char *at = p->sources.at; at != p->sources.at + p->sources.size;) {
            const view v = view_unpack(&s->method, &at);
            if (cell_touches(&v.cells[0], &t->cells[0]))
                flops += tree_interact(t, &v, &s->method, dry);
        }
    }
    return flops;
}

/* Keeps the views, and says what the task will cost. */
static void go_aside(const fmm *s, ferry_element *e, const ferry_inputs *in)
{
    part *p = e->data;
    const ferry_contribution barrier = FERRY_CONTRIBUTION_DEFAULTS;
    for (size_t i = 0; i < in->count; i++) {
        const ferry_message *m = in->inputs[i].message;
        fmm_need(s->f,
                 m->size_bytes == 0 || bytes_append(&p->sources, m->data, m->size_bytes) != NULL);
    }
    p->load = interact(s, p, true);
    check(s->f, ferry_element_contribute(e, &barrier));
    go_on(s, e, p->step, WORK, 0);
}

static void work(fmm *s, ferry_element *e)
{
    part *p = e->data;
    const uint64_t begin_ns = ferry_now(s->f);
    account(s, p, interact(s, p, false), begin_ns);
    free(p->sources.at);
    p->sources = (bytes){0};
    p->load = 0;
    go_on(s, e, p->step, DOWN, p->trees[0].cells[0].level >= 2 ? p->tree_count : 0);
}

/* Sends the local expansions of a parent to its cells. */
static void send_locals(const fmm *s, const ferry_element *e)
{
    const part *p = e->data;
    const layout *l = &s->layout;
    for (uint32_t i = 1; i <= OCTANTS; i++) {
        const cell *c = &p->trees[0].cells[i];
        const bool is_box = c->level == l->level;
        const uint32_t box = layout_box_of(c);
        const uint32_t to = is_box ? l->chunk_of[box] : layout_parent_of(l, c);
        send_expansion(s, e, to, DOWN, is_box ? box - l->first[to] : 0, 0,
                       p->trees[0].locals + i * expansion_terms(s->method.order));
    }
}

/* Moves the bodies of tree `t`. A body that has moved further than to the boxes that touch its own
 * has no way there. */
static void move_bodies(const fmm *s, const tree *t)
{
    for (body *b = t->bodies; b < t->bodies + t->body_count; b++) {
        body_move(&s->scene, b);
        const cell to = layout_box(&s->layout, layout_box_at(&s->layout, b->at));
        if (cell_touches(&to, &t->cells[0]))
            continue;
        fprintf(stderr,
                "fmm: body %llu moves %g, %g, %g in a step: expected no more than a box (%g); give "
                "a smaller --speed or --pull\n",
                (unsigned long long)b->id, b->velocity[0], b->velocity[1], b->velocity[2],
                1 / (double)(1L << s->layout.level));
        exit(1);
    }
}

/* Sends the bodies that are in the boxes of chunk `to` there. */
static void send_bodies(const fmm *s, const ferry_element *e, uint32_t to)
{
    part *p = e->data;
    const layout *l = &s->layout;
    uint32_t kept = 0;
    bytes out = {0};
    for (uint32_t i = 0; i < p->body_count; i++)
        if (l->chunk_of[layout_box_at(l, p->bodies[i].at)] != to)
            p->bodies[kept++] = p->bodies[i];
        else
            fmm_need(s->f, bytes_append(&out, &p->bodies[i], sizeof(body)) != NULL);
    p->body_count = kept;
    const ferry_message message = {.data = out.at, .size_bytes = out.size};
    send(s, e, to, p->step + 1, UP, &message);
    free(out.at);
}

/* Returns how many neighbours send bodies, too. */
static uint32_t exchange_bodies(const fmm *s, const ferry_element *e)
{
    part *p = e->data;
    uint32_t count = 0, *neighbours = layout_neighbours(&s->layout, p->element, &count);
    fmm_need(s->f, neighbours != NULL);
    for (uint32_t i = 0; i < p->tree_count; i++)
        move_bodies(s, &p->trees[i]);
    for (uint32_t i = 0; i < count; i++)
        send_bodies(s, e, neighbours[i]);
    free(neighbours);
    return count;
}

static void go_down(fmm *s, ferry_element *e, const ferry_inputs *in)
{
    part *p = e->data;
    const uint64_t begin_ns = ferry_now(s->f);
    uint32_t needed = OCTANTS;
    double flops = 0;
    for (size_t i = 0; i < in->count; i++)
        add_expansion(s, p->trees[in->inputs[i].message->words[0]].locals, in->inputs[i].message);
    for (uint32_t i = 0; i < p->tree_count; i++) {
        tree_descend(&p->trees[i], &s->method);
        flops += tree_descend_flops(&p->trees[i], &s->method);
    }
    account(s, p, flops, begin_ns);
    if (!layout_is_chunk(&s->layout, p->element))
        send_locals(s, e);
    else if (p->step + 1 < s->steps)
        needed = exchange_bodies(s, e);
    part_free_trees(p);
    go_on(s, e, ++p->step, UP, needed);
}

static void step(ferry *f, ferry_element *e, const ferry_inputs *in)
{
    fmm *s = ferry_user_data(f);
    switch (in->step % PHASES) {
    case UP:
        go_up(s, e, in);
        break;
    case SIDE:
        go_aside(s, e, in);
        break;
    case WORK:
        work(s, e);
        break;
    case DOWN:
        go_down(s, e, in);
        break;
    }
}

/* The type of parts, and the collection. */

static size_t packed_size(ferry *f, const void *data)
{
    return part_packed_size(data, &((const fmm *)ferry_user_data(f))->method);
}

static void pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)size_bytes;
    part_pack(data, &((const fmm *)ferry_user_data(f))->method, buffer);
}

static void *unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object, (void)size_bytes;
    return part_unpack(&((const fmm *)ferry_user_data(f))->method, buffer);
}

static void destroy(ferry *f, void *data)
{
    (void)f;
    part_free(data);
}

/* A message that is no task of interactions has load 0. */
static double load(ferry *f, const void *data, const ferry_message *message)
{
    (void)f, (void)message;
    return ((const part *)data)->load;
}

static int map(void *arg, ferry_index index, int ranks)
{
    (void)ranks;
    return layout_rank(arg, (uint32_t)index.at[0]);
}

static void *make(ferry *f, ferry_element *e, void *arg, const void *data, size_t size_bytes)
{
    const fmm *s = arg;
    const uint32_t element = (uint32_t)e->index.at[0];
    const bool is_chunk = layout_is_chunk(&s->layout, element);
    part *p = part_create(&s->layout, element);
    (void)f, (void)data, (void)size_bytes;
    if (p == NULL)
        return NULL;
    if (is_chunk) {
        const uint32_t begin = element > 0 ? s->begun_end[element - 1] : 0;
        fmm_need(s->f, part_add_bodies(p, s->begun + begin, s->begun_end[element] - begin));
    }
    go_on(s, e, 0, UP, is_chunk ? 0 : OCTANTS);
    return p;
}

uint64_t fmm_run(fmm *s, bool fixed)
{
    const ferry_object_ops ops = {.size = sizeof ops,
                                  .name = "part",
                                  .packed_size = packed_size,
                                  .pack = pack,
                                  .unpack = unpack,
                                  .destroy = destroy,
                                  .load = load};
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    options.extents[0] = s->layout.elements;
    options.ops = &ops;
    options.make = make;
    options.make_arg = s;
    options.map_fn = map;
    options.map_arg = &s->layout;
    options.step = step;
    options.fixed = fixed;
    s->work_ns = 0;
    check(s->f, ferry_barrier(s->f));
    const uint64_t begin_ns = ferry_now(s->f);
    check(s->f, ferry_collection_create(s->f, &options, &s->parts));
    check(s->f, ferry_quiesce(s->f));
    const uint64_t took_ns = ferry_now(s->f) - begin_ns;
    check(s->f, ferry_collection_check(s->parts));
    return took_ns;
}
