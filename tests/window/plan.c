/* No round has two operations whose order matters and is not given: `allowed` refuses them. The
 * model of each array is changed when the operation takes effect at the latest. For a fetch or a
 * swap this is when it is planned, for others at the end of the round, or of the step under a lock.
 */
#include "plan.h"

static value value_copy(job *j, value from)
{
    value copy = {NULL, from.size};
    if (from.data != NULL) {
        copy.data = need(j->f, from.size);
        memcpy(copy.data, from.data, from.size);
    }
    return copy;
}

static value value_draw(job *j, size_t size)
{
    value made = {need(j->f, size), size};
    uint64_t word = draw(&j->random, UINT64_C(1) << 48);
    for (size_t i = 0; i < size; i++)
        made.data[i] = (unsigned char)(word >> (i % 6 * 8)) + (unsigned char)(i / 6);
    return made;
}

static size_t size_draw(job *j)
{
    static const size_t sizes[] = {0, 1, 3, 4, 4, 5, 8, 8, 8, 8, 9, 16, 24, 100, 1000};
    uint64_t which = draw(&j->random, 40);
    if (which == 39)
        return (size_t)draw(&j->random, LARGE);
    return sizes[which % (sizeof(sizes) / sizeof(*sizes))];
}

/* Makes `m` so long that it has `element`. */
static value *element_of(job *j, model *m, int64_t element)
{
    if (element >= m->length) {
        value *more = need(j->f, (size_t)(element + 1) * sizeof(*more));
        if (m->length > 0)
            memcpy(more, m->elements, (size_t)m->length * sizeof(*more));
        free(m->elements);
        m->elements = more;
        m->length = element + 1;
    }
    return &m->elements[element];
}

static void element_set(job *j, value *element, value from)
{
    free(element->data);
    *element = value_copy(j, from);
}

static uint64_t combine_one(ferry_reduction reduction, bool is_signed, uint64_t a, uint64_t b)
{
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    switch (reduction) {
    case FERRY_SUM:
        return a + b;
    case FERRY_MIN:
        return less ? a : b;
    case FERRY_MAX:
        return less ? b : a;
    case FERRY_AND:
        return a & b;
    default:
        return a | b;
    }
}

static size_t type_bytes(ferry_type type)
{
    return type == FERRY_INT32 ? 4 : 8;
}

static void combine(const op *o, value *into)
{
    for (size_t i = 0; i < o->count; i++) {
        if (o->type == FERRY_INT32) {
            int32_t a, b;
            memcpy(&a, into->data + 4 * i, 4);
            memcpy(&b, o->given.data + 4 * i, 4);
            a = (int32_t)(uint32_t)combine_one(o->reduction, true, (uint64_t)(int64_t)a,
                                               (uint64_t)(int64_t)b);
            memcpy(into->data + 4 * i, &a, 4);
        } else {
            uint64_t a, b;
            memcpy(&a, into->data + 8 * i, 8);
            memcpy(&b, o->given.data + 8 * i, 8);
            a = combine_one(o->reduction, o->type == FERRY_INT64, a, b);
            memcpy(into->data + 8 * i, &a, 8);
        }
    }
}

/* Does what the operation does, with the model. */
static void apply(job *j, op *o)
{
    model *m = &j->models[o->target];
    o->applied = true;
    if (o->error == FERRY_ERANGE)
        return;
    value *element = element_of(j, m, o->element);
    if (o->verb == PUT) {
        element_set(j, element, o->given);
        return;
    }
    if (element->data != NULL && element->size != o->given.size) {
        o->error = FERRY_EINVAL;
        return;
    }
    const value nothing = {need(j->f, o->given.size), o->given.size};
    o->before = value_copy(j, element->data == NULL ? nothing : *element);
    bool same = o->verb != SWAP || memcmp(o->before.data, o->compared.data, o->given.size) == 0;
    if (o->verb == SWAP ? same : element->data == NULL || o->reduction == FERRY_REPLACE)
        element_set(j, element, o->given);
    else if (o->verb != SWAP)
        combine(o, element);
    free(nothing.data);
}

static void apply_step(job *j)
{
    for (int i = 0; i < j->op_count; i++)
        if (!j->ops[i].applied)
            apply(j, &j->ops[i]);
}

/* Whether the order of `a` and `b`, at one element, is given or has no effect. */
static bool agree(const job *j, const op *a, const op *b)
{
    if (j->kind == LOCK && a->origin == b->origin && a->step != b->step)
        return true;
    if (a->verb == GET && b->verb == GET)
        return true;
    bool early = a->verb == FETCH || a->verb == SWAP || b->verb == FETCH || b->verb == SWAP;
    if (early)
        return false;
    if (a->verb == GET || b->verb == GET)
        return j->kind != LOCK && !j->direct;
    return a->verb == ACCUMULATE && b->verb == ACCUMULATE && a->type == b->type &&
           a->reduction == b->reduction && a->count == b->count && a->reduction != FERRY_REPLACE;
}

/* Whether the round may have `o`, too; then the model notes how it is addressed. */
static bool allowed(job *j, const op *o)
{
    model *m = &j->models[o->target];
    bool back = o->index < 0, changes = o->verb != GET;
    bool early = changes && (j->kind == LOCK || j->direct || o->verb == FETCH || o->verb == SWAP);
    bool grows = changes && o->element >= m->first_length;
    if (back && (changes || j->kind == LOCK ? m->grows : m->grows_early))
        return false;
    if (grows && (m->back_changed || (early && m->back_read)))
        return false;
    for (int i = 0; i < j->op_count; i++)
        if (j->ops[i].target == o->target && j->ops[i].element == o->element && o->element >= 0 &&
            !agree(j, &j->ops[i], o))
            return false;
    m->back_read |= back && !changes;
    m->back_changed |= back && changes;
    m->grows |= grows;
    m->grows_early |= grows && early;
    return true;
}

static int64_t index_draw(job *j, const model *m)
{
    int64_t length = m->first_length;
    switch (draw(&j->random, 12)) {
    case 0:
        return -1;
    case 1:
        return -1 - (int64_t)draw(&j->random, (uint64_t)length + 2);
    case 2:
        return length + (int64_t)draw(&j->random, 4);
    case 3:
        return draw(&j->random, 10) == 0 ? (int64_t)draw(&j->random, LENGTH_MAX) : length;
    default:
        return (int64_t)draw(&j->random, length == 0 ? 4 : (uint64_t)length);
    }
}

static void op_draw(job *j, op *o)
{
    static const ferry_type types[] = {FERRY_INT64, FERRY_UINT64, FERRY_INT32};
    static const ferry_reduction reductions[] = {FERRY_SUM, FERRY_SUM, FERRY_MIN,    FERRY_MAX,
                                                 FERRY_AND, FERRY_OR,  FERRY_REPLACE};
    const model *m = &j->models[o->target];
    o->verb = (verb)draw(&j->random, VERBS);
    o->index = index_draw(j, m);
    o->element = o->index < 0 ? o->index + m->first_length : o->index;
    if (o->element < 0) {
        o->element = -1;
        o->error = o->verb == GET ? 0 : FERRY_ERANGE;
    }
    o->type = types[draw(&j->random, 3)];
    o->reduction = reductions[draw(&j->random, 7)];
    o->count = o->verb == FETCH ? 1 : 1 + draw(&j->random, 3) * draw(&j->random, 2);
    o->tracked = draw(&j->random, 3) == 0;
}

static void get_plan(job *j, op *o)
{
    model *m = &j->models[o->target];
    const value none = {NULL, 0};
    bool there = o->element >= 0 && o->element < m->length;
    o->before = value_copy(j, there ? m->elements[o->element] : none);
    o->room = o->before.size + (size_t)draw(&j->random, 3);
    if (o->before.size > 0 && draw(&j->random, 20) == 0) {
        o->room = o->before.size - 1;
        o->error = FERRY_ETOOLONG;
    }
    o->applied = true;
}

static void swap_plan(job *j, op *o)
{
    const model *m = &j->models[o->target];
    bool there = o->element >= 0 && o->element < m->length && m->elements[o->element].data != NULL;
    size_t size = draw(&j->random, 2) == 0 ? 8 : 1 + (size_t)draw(&j->random, 8);
    o->given = value_draw(j, size);
    if (there && m->elements[o->element].size == size && draw(&j->random, 2) == 0)
        o->compared = value_copy(j, m->elements[o->element]);
    else
        o->compared = (value){need(j->f, size), size};
}

/* Plans one operation of `origin`, if one can be found. */
static void op_plan(job *j, int origin, int target)
{
    op o = {0};
    bool found = false;
    for (int i = 0; i < TRIES && !found && j->op_count < OPS_MAX; i++) {
        o = (op){.origin = origin, .target = target, .step = j->step};
        op_draw(j, &o);
        found = allowed(j, &o);
    }
    if (!found)
        return;
    if (o.verb == GET)
        get_plan(j, &o);
    else if (o.verb == SWAP)
        swap_plan(j, &o);
    else if (o.verb != PUT)
        o.given = value_draw(j, o.count * type_bytes(o.type));
    else if (draw(&j->random, 8) > 0)
        o.given = value_draw(j, size_draw(j));
    if (o.verb == FETCH || o.verb == SWAP)
        apply(j, &o);
    j->ops[j->op_count++] = o;
}

/* One epoch of `origin`; under a lock of some steps, with a flush after each. */
static void epoch_plan(job *j, int origin)
{
    int target = (int)draw(&j->random, (uint64_t)j->count);
    for (int n = (int)draw(&j->random, 16); n > 0; n--) {
        if (j->kind != LOCK)
            target = (int)draw(&j->random, (uint64_t)j->count);
        if (j->kind != START || j->opened[origin][target])
            op_plan(j, origin, target);
        if (j->kind == LOCK && draw(&j->random, 4) == 0) {
            apply_step(j);
            j->step++;
        }
    }
    if (j->kind == LOCK)
        apply_step(j);
    j->step += STEPS - j->step % STEPS;
}

void round_plan(job *j)
{
    j->kind = (round_kind)draw(&j->random, ROUND_KINDS);
    j->op_count = j->step = 0;
    for (int i = 0; i < j->count; i++) {
        model *m = &j->models[i];
        m->first_length = m->length;
        m->back_read = m->back_changed = m->grows = m->grows_early = false;
        for (int t = 0; t < j->count; t++)
            j->opened[i][t] = draw(&j->random, 2) == 0;
    }
    for (int origin = 0; origin < j->count; origin++)
        for (int epoch = 0; epoch < (j->kind == LOCK ? 2 : 1); epoch++)
            epoch_plan(j, origin);
    apply_step(j);
}

void models_draw(job *j)
{
    for (int place = 0; place < j->count; place++) {
        model *m = &j->models[place];
        *m = (model){0};
        for (uint64_t n = draw(&j->random, 10); n > 0; n--) {
            value drawn = {NULL, 0};
            if (draw(&j->random, 4) > 0)
                drawn = value_draw(j, size_draw(j));
            *element_of(j, m, m->length) = drawn;
        }
    }
}

void models_free(job *j)
{
    for (int place = 0; place < j->count; place++) {
        for (int64_t i = 0; i < j->models[place].length; i++)
            free(j->models[place].elements[i].data);
        free(j->models[place].elements);
    }
}

void round_free(job *j)
{
    for (int i = 0; i < j->op_count; i++) {
        free(j->ops[i].given.data);
        free(j->ops[i].compared.data);
        free(j->ops[i].before.data);
        free(j->ops[i].seen);
    }
}
