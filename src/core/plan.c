/* The parts that plans of collectives are made of. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/collective.h"
#include "core/rank.h"
#include "core/reduce.h"

/* Twice as many items as `capacity`, in memory of their own. NULL without memory. */
static void *plan_grow(void *items, const void *own, uint32_t *capacity, size_t item_bytes)
{
    void *more = fy_realloc(items == own ? NULL : items, (size_t)*capacity * 2 * item_bytes);
    if (more == NULL)
        return NULL;
    if (items == own)
        memcpy(more, own, *capacity * item_bytes);
    *capacity *= 2;
    return more;
}

/* Adds a step, whose other fields the caller sets. NULL: `c` has failed. */
static fy_step *add_step(fy_collective *c, fy_step_kind kind, int rank)
{
    if (c->error == 0 && c->step_count == c->step_capacity) {
        void *steps = plan_grow(c->steps, c->own_steps, &c->step_capacity, sizeof(*c->steps));
        if (steps == NULL)
            c->error = FERRY_ENOMEM;
        else
            c->steps = steps;
    }
    if (c->error != 0)
        return NULL;
    fy_step *step = &c->steps[c->step_count++];
    step->kind = (uint8_t)kind;
    step->rank = rank;
    return step;
}

uint32_t fy_plan_receive(fy_collective *c, int source, int32_t tag, void *buffer, size_t size_bytes)
{
    if (c->error == 0 && c->post_count == c->post_capacity) {
        void *posts = plan_grow(c->posts, c->own_posts, &c->post_capacity, sizeof(*c->posts));
        if (posts == NULL)
            c->error = FERRY_ENOMEM;
        else
            c->posts = posts;
    }
    if (c->error != 0)
        return 0;
    uint32_t index = c->post_count++;
    fy_post *post = &c->posts[index];
    post->source = fy_group_rank(c->group, source);
    post->tag = tag;
    post->buffer = buffer;
    post->size_bytes = size_bytes;
    post->received = 0;
    post->open = post->complete = false;
    (void)add_step(c, FY_STEP_POST, (int)index);
    return index;
}

void fy_plan_await_bytes(fy_collective *c, uint32_t post, size_t size_bytes)
{
    fy_step *step = add_step(c, FY_STEP_AWAIT, (int)post);
    if (step != NULL)
        step->size_bytes = size_bytes;
}

void fy_plan_await(fy_collective *c, uint32_t post)
{
    fy_plan_await_bytes(c, post, 0);
}

void fy_plan_take(fy_collective *c, int source, int32_t tag, void *buffer, size_t size_bytes)
{
    fy_plan_await(c, fy_plan_receive(c, source, tag, buffer, size_bytes));
}

void fy_plan_send(fy_collective *c, int rank, int32_t tag, const void *data, size_t size_bytes)
{
    fy_step *step = add_step(c, FY_STEP_SEND, fy_group_rank(c->group, rank));
    if (step == NULL)
        return;
    step->tag = tag;
    step->from = data;
    step->size_bytes = step->whole_bytes = size_bytes;
}

void fy_plan_announce(fy_collective *c, int rank, int32_t tag, size_t whole_bytes)
{
    fy_plan_send(c, rank, tag, NULL, 0);
    if (c->error == 0)
        c->steps[c->step_count - 1].whole_bytes = whole_bytes;
}

void fy_plan_combine(fy_collective *c, void *into, const void *low, const void *high,
                     size_t size_bytes)
{
    /* An operation of the program need not accept 0 values. */
    fy_step *step = size_bytes > 0 ? add_step(c, FY_STEP_COMBINE, 0) : NULL;
    if (step == NULL)
        return;
    step->to = into;
    step->from = low;
    step->high = high;
    step->size_bytes = size_bytes;
}

void fy_plan_copy(fy_collective *c, void *to, const void *from, size_t size_bytes)
{
    fy_step *step = to != from && size_bytes > 0 ? add_step(c, FY_STEP_COPY, 0) : NULL;
    if (step == NULL)
        return;
    step->to = to;
    step->from = from;
    step->size_bytes = size_bytes;
}

bool fy_plan_scratch(fy_collective *c, size_t size_bytes)
{
    c->scratch = size_bytes <= FY_OWN_SCRATCH_BYTES ? c->own_scratch : fy_malloc(size_bytes);
    if (c->scratch == NULL)
        c->error = FERRY_ENOMEM;
    return c->scratch != NULL;
}

void fy_plan_scratch_end(fy_collective *c)
{
    if (c->scratch != c->own_scratch)
        free(c->scratch);
    c->scratch = NULL;
}

void fy_collective_combine(const fy_collective *c, void *into, const void *low, const void *high,
                           size_t size_bytes)
{
    size_t count = size_bytes / c->value_bytes;
    if (c->what.combine != NULL)
        c->what.combine(c->what.combine_arg, into, low, high, count);
    else
        fy_reduce(c->what.type, c->what.reduction, into, low, high, count);
}

/* Dissemination: in round r a rank sends to the rank 2^r above it and receives from the rank 2^r
 * below it. After log2(ranks) rounds it has received from all, directly or through others. */
static void plan_add_barrier(fy_collective *c, int32_t tag)
{
    for (int distance = 1; distance < c->ranks; distance *= 2, tag++) {
        int to = (int)(((int64_t)c->self + distance) % c->ranks);
        int from = (int)(((int64_t)c->self + c->ranks - distance) % c->ranks);
        uint32_t post = fy_plan_receive(c, from, tag, NULL, 0);
        fy_plan_send(c, to, tag, NULL, 0);
        fy_plan_await(c, post);
    }
}

void fy_plan_add_barrier_sometimes(fy_collective *c, int32_t tag)
{
    enum { BARRIER_INTERVAL = 16 };
    if (c->number % BARRIER_INTERVAL == 0)
        plan_add_barrier(c, tag);
}

void fy_plan_barrier(fy_collective *c)
{
    plan_add_barrier(c, 0);
    c->last = true;
}

fy_pairing fy_pairing_of(int ranks)
{
    fy_pairing p = {.power = 1};
    while (p.power <= ranks / 2)
        p.power *= 2;
    p.rest = ranks - p.power;
    return p;
}
