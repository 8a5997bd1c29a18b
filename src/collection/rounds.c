/* Reductions while elements move.
 *
 * Reduction n is round n. Each element has the number of its next round. A rank combines the values
 * that its elements give to a round. It sends the partial result to the root when no element here
 * has this round, or an earlier one, as its next. An element that comes later and contributes to
 * the round makes a further partial result. The result goes down a tree to all ranks, so an element
 * finds it wherever it is.
 *
 * The root completes a round on two conditions:
 *
 * - Of the elements that took part in the round before, each has contributed or has ended.
 * - No new element is missing. An element that inserts another adds a hash of it to its own
 *   contribution. The new element subtracts the hash with its first contribution. If it ends before
 *   that, its end subtracts the hash; if the index had an element already, the home does. So while
 *   the sum of hashes is not 0, a contribution is missing. By chance it is 0 once in 2^64. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "collection/state.h"
#include "core/fail.h"
#include "core/handler.h"
#include "core/run.h"
#include "mover/kernels/move.h"

/* The data of FY_PARTIAL and FY_RESULT before the values. Fields as in fy_round. */
typedef struct fy_round_head {
    uint64_t count, fresh, sum;
    bool described;
    ferry_contribution how;
} fy_round_head;

int fy_rounds_root(const ferry_collection *c)
{
    return c->members[c->id % (uint32_t)c->ranks];
}

static size_t type_bytes(ferry_type type)
{
    switch (type) {
    case FERRY_DOUBLE:
    case FERRY_INT64:
    case FERRY_UINT64:
        return 8;
    case FERRY_FLOAT:
    case FERRY_INT32:
        return 4;
    case FERRY_BYTE:
        return 1;
    default:
        return 0;
    }
}

static size_t values_bytes(const ferry_collection *c, const ferry_contribution *how)
{
    size_t each = c->options.value_bytes != 0 ? c->options.value_bytes : type_bytes(how->type);
    return how->count * each;
}

/* The round with this number in a list sorted by number. If there is none it is made. NULL: no
 * memory. */
static fy_round *round_at(fy_round **list, uint64_t number)
{
    while (*list != NULL && (*list)->number < number)
        list = &(*list)->next;
    if (*list != NULL && (*list)->number == number)
        return *list;
    fy_round *round = fy_calloc(1, sizeof *round);
    if (round == NULL)
        return NULL;
    round->number = number;
    round->next = *list;
    *list = round;
    return round;
}

static fy_round *round_pop(fy_round **list)
{
    fy_round *round = *list;
    *list = round->next;
    return round;
}

static void round_free(fy_round *round)
{
    free(round->values);
    free(round);
}

static bool same(const ferry_contribution *a, const ferry_contribution *b)
{
    return a->count == b->count && a->type == b->type && a->reduction == b->reduction &&
           a->to == b->to && a->handler.index == b->handler.index && a->rank == b->rank &&
           ferry_index_equal(a->index, b->index);
}

static void combine(const ferry_collection *c, const ferry_contribution *how, void *into,
                    const void *values)
{
    size_t each = type_bytes(how->type);
    if (c->options.combine != NULL) {
        c->options.combine(c->options.combine_arg, into, into, values, how->count);
        return;
    }
    const ferry_operation operation = {.reduction = how->reduction, .type = how->type};
    fy_combine plain;
    if (fy_combine_init(&plain, &operation, each) == 0)
        plain.row(&plain, into, (ptrdiff_t)plain.unit, values, (ptrdiff_t)plain.unit,
                  how->count * plain.each);
}

/* Combines values into a round. FERRY_EINVAL: the round has another `how`. */
static int rounds_add(const ferry_collection *c, fy_round *round, const ferry_contribution *how,
                      const void *values)
{
    size_t bytes = values_bytes(c, how);
    if (round->described && !same(&round->how, how))
        return FERRY_EINVAL;
    if (round->described) {
        if (bytes != 0)
            combine(c, how, round->values, values);
        return 0;
    }
    round->values = bytes != 0 ? fy_malloc(bytes) : NULL;
    if (bytes != 0 && round->values == NULL)
        return FERRY_ENOMEM;
    if (bytes != 0)
        memcpy(round->values, values, bytes);
    round->how = *how;
    round->how.values = NULL;
    round->described = true;
    return 0;
}

/* Sends the contents of a round to `rank`. */
static int send_round(ferry_collection *c, int rank, fy_collection_frame what,
                      const fy_round *round)
{
    fy_round_head head = {.count = round->count,
                          .fresh = round->fresh,
                          .sum = round->sum,
                          .described = round->described,
                          .how = round->how};
    size_t bytes = round->described ? values_bytes(c, &round->how) : 0;
    unsigned char *data = fy_malloc(sizeof head + bytes);
    if (data == NULL)
        return FERRY_ENOMEM;
    memcpy(data, &head, sizeof head);
    if (bytes != 0)
        memcpy(data + sizeof head, round->values, bytes);
    int error = fy_collection_tell(c, rank, what, round->number, 0, 0, data, sizeof head + bytes);
    free(data);
    return error;
}

/* Puts back a round that was not sent for want of memory. The next poll sends it. */
static void round_push(ferry_collection *c, fy_round **list, fy_round *round)
{
    round->next = *list;
    *list = round;
    fy_collection_again(c);
}

/* Sends the partial results to which no element on this rank contributes any more. */
static void rounds_settle(ferry_collection *c)
{
    while (c->rounds != NULL && c->rounds->here == 0) {
        fy_round *round = round_pop(&c->rounds);
        int error = round->described ? send_round(c, fy_rounds_root(c), FY_PARTIAL, round) : 0;
        if (error == FERRY_ENOMEM) {
            round_push(c, &c->rounds, round);
            return;
        }
        if (error != 0)
            fy_stray(c, "a part of reduction %llu is lost: it could not be sent to rank %d",
                     (unsigned long long)round->number, fy_rounds_root(c));
        round_free(round);
    }
}

int fy_rounds_enter(ferry_collection *c, uint64_t number)
{
    fy_round *round = round_at(&c->rounds, number);
    if (round == NULL)
        return fy_fail(c->f, FERRY_ENOMEM, "collection: no memory for a reduction");
    round->here++;
    return 0;
}

void fy_rounds_leave(ferry_collection *c, uint64_t number)
{
    round_at(&c->rounds, number)->here--;
    rounds_settle(c);
}

static int rounds_check(const ferry_collection *c, const ferry_contribution *how)
{
    ferry *f = c->f;
    if (how->values == NULL && how->count != 0)
        return fy_fail(f, FERRY_EINVAL, "element_contribute: %zu values at NULL", how->count);
    if (c->options.value_bytes == 0 && how->count != 0) {
        const ferry_operation operation = {.reduction = how->reduction, .type = how->type};
        fy_combine plain;
        if (type_bytes(how->type) == 0 || how->reduction == FERRY_REPLACE ||
            how->reduction == FERRY_USER ||
            fy_combine_init(&plain, &operation, type_bytes(how->type)) != 0)
            return fy_fail(f, FERRY_EINVAL,
                           "element_contribute: reduction %d cannot combine values of type %d; for "
                           "your own, give the collection `value_bytes` and `combine`",
                           (int)how->reduction, (int)how->type);
    }
    if (how->to == FERRY_REDUCED_RANK && fy_collection_place(c, how->rank) < 0)
        return fy_fail(f, FERRY_EINVAL,
                       "element_contribute: rank %d is none of the %d members of the collection, "
                       "from %d to %d",
                       how->rank, c->ranks, c->members[0], c->members[c->ranks - 1]);
    if (how->to == FERRY_REDUCED_ELEMENT && fy_index_key(c, how->index) == 0)
        return fy_index_refuse(c, "element_contribute", how->index);
    if ((int)how->to < 0 || how->to > FERRY_REDUCED_RANKS)
        return fy_fail(f, FERRY_EINVAL, "element_contribute: target %d is unknown; expected 0..%d",
                       (int)how->to, FERRY_REDUCED_RANKS);
    fy_handler_kind kind =
        how->to == FERRY_REDUCED_ELEMENT ? FY_HANDLER_OBJECT : FY_HANDLER_REQUEST;
    if (how->to != FERRY_REDUCED_NOWHERE && fy_handler_find(f, how->handler.index, kind) == NULL)
        return fy_fail(f, FERRY_EINVAL,
                       "element_contribute: handler %u was not registered by "
                       "ferry_%shandler_register, as its target needs",
                       how->handler.index, kind == FY_HANDLER_OBJECT ? "object_" : "");
    return 0;
}

int ferry_element_contribute(ferry_element *element, const ferry_contribution *contribution)
{
    fy_element *e = fy_element_of(element);
    ferry_collection *c = element->collection;
    ferry_contribution how = FERRY_CONTRIBUTION_DEFAULTS;
    char text[FY_TEXT_BYTES];
    int error = fy_read_sized(c->f, "element_contribute: ferry_contribution", contribution, &how,
                              sizeof how);
    if (error != 0 || (error = rounds_check(c, &how)) != 0)
        return error;
    if (e->need.waiting && e->need.reduction)
        return fy_fail(c->f, FERRY_ESTATE,
                       "element_contribute: the step of element %s waits for reduction %llu",
                       fy_index_text(c, element->index, text), (unsigned long long)e->need.round);
    fy_round *round = round_at(&c->rounds, e->round);
    fy_round *next = round != NULL ? round_at(&c->rounds, e->round + 1) : NULL;
    error = next == NULL ? FERRY_ENOMEM : rounds_add(c, round, &how, how.values);
    if (error != 0)
        return fy_fail(
            c->f, error, "element_contribute: element %s gives %zu values to reduction %llu: %s",
            fy_index_text(c, element->index, text), how.count, (unsigned long long)e->round,
            error == FERRY_EINVAL ? "another element gives another count, type, reduction or target"
                                  : "no memory");
    if (element->object.word != 0) { /* in `make` the element is not counted here yet */
        round->here--;
        next->here++;
    }
    round->count += !e->fresh;
    round->fresh += e->fresh;
    round->sum += e->births - (e->fresh ? fy_birth_hash(e->key, e->round) : 0);
    e->fresh = false;
    e->births = 0;
    e->round++;
    rounds_settle(c);
    return 0;
}

uint64_t fy_birth_hash(uint64_t key, uint64_t number)
{
    return fy_mix(fy_mix(number + 1, key), key) | 1;
}

void fy_rounds_change(ferry_collection *c, uint64_t number, int64_t change, uint64_t sum)
{
    int root = fy_rounds_root(c), error = 0;
    if (change != 0 || sum != 0)
        error = fy_collection_tell(c, root, FY_CHANGE, number, (uint64_t)change, sum, NULL, 0);
    if (error != 0)
        fy_stray(c, "rank %d completes reductions and was not told of a new or removed element: %s",
                 root, error == FERRY_ENOMEM ? "no memory" : "it has gone");
}

int fy_change_take(ferry_collection *c, const fy_frame *frame)
{
    uint64_t number = frame->words[1];
    int64_t change = (int64_t)frame->words[2];
    bool late = number < c->root_done;
    fy_round *round = late ? NULL : round_at(&c->root_rounds, number);
    if (round != NULL) {
        round->change += change;
        round->sum += frame->words[3];
    } else if (late) { /* an element inserted by the program joins the next round */
        c->total += change != 0 ? change : 1;
    } else {
        return FERRY_ENOMEM;
    }
    fy_rounds_try(c);
    return 0;
}

int fy_partial_take(ferry_collection *c, int source, const fy_frame *frame)
{
    fy_round_head head;
    uint64_t number = frame->words[1];
    if (frame->size_bytes < sizeof head)
        return 0;
    memcpy(&head, frame->data, sizeof head);
    if (head.described && values_bytes(c, &head.how) != frame->size_bytes - sizeof head)
        return 0;
    bool late = number < c->root_done;
    fy_round *round = late ? NULL : round_at(&c->root_rounds, number);
    int error = round == NULL && !late ? FERRY_ENOMEM : 0;
    if (round != NULL && head.described)
        error = rounds_add(c, round, &head.how, (const unsigned char *)frame->data + sizeof head);
    if (error == FERRY_ENOMEM)
        return error;
    if (error != 0 || late) {
        fy_stray(c, "reduction %llu leaves out the contributions of rank %d: %s",
                 (unsigned long long)number, source,
                 late ? "it is complete already"
                      : "elements differ in count, type, reduction or target");
        return 0;
    }
    round->count += head.count;
    round->fresh += head.fresh;
    round->sum += head.sum;
    fy_rounds_try(c);
    return 0;
}

/* At the root: sends the results of complete rounds, in their order. */
static void results_send(ferry_collection *c)
{
    while (c->complete != NULL) {
        fy_round *round = round_pop(&c->complete);
        if (send_round(c, c->rank, FY_RESULT, round) != 0) {
            round_push(c, &c->complete, round);
            return;
        }
        round_free(round);
    }
}

/* At the root: completes rounds, in their order. */
void fy_rounds_try(ferry_collection *c)
{
    while (c->total_known && c->root_rounds != NULL && c->root_rounds->number == c->root_done) {
        fy_round *round = c->root_rounds, **last = &c->complete;
        int64_t expected = c->total + round->change;
        if (!round->described || round->sum != 0 || (int64_t)round->count != expected)
            return;
        (void)round_pop(&c->root_rounds);
        c->total = expected + (int64_t)round->fresh;
        c->root_done++;
        while (*last != NULL)
            last = &(*last)->next;
        *last = round;
        round->next = NULL;
        results_send(c);
    }
}

void fy_rounds_again(ferry_collection *c)
{
    rounds_settle(c);
    results_send(c);
}

typedef struct delivery {
    ferry_collection *c;
    const ferry_contribution *how;
    ferry_message message;
    int error;
} delivery;

static void rounds_deliver(ferry *f, void *arg)
{
    delivery *d = arg;
    const ferry_contribution *how = d->how;
    if (how->to != FERRY_REDUCED_ELEMENT) {
        fy_post_here(f, &d->message);
        return;
    }
    uint64_t key = fy_index_key(d->c, how->index);
    d->error = fy_names_send(d->c, key, &d->message, NULL);
    if (d->error != 0 && d->error != FERRY_ENOMEM)
        fy_stray(d->c, "the result of reduction %llu could not be sent to its element: %s",
                 (unsigned long long)d->message.words[0], ferry_error_message(f));
}

/* Forwards a result to the children of this rank in the tree that have not got it. */
static int rounds_pass_on(ferry_collection *c, const fy_frame *frame)
{
    enum { CHILDREN = 2 };
    int root = (int)(c->id % (uint32_t)c->ranks), place = (c->place - root + c->ranks) % c->ranks;
    for (; c->passed < CHILDREN; c->passed++) {
        int child = CHILDREN * place + 1 + c->passed;
        if (child >= c->ranks)
            break;
        int rank = c->members[(child + root) % c->ranks];
        int error = fy_collection_tell(c, rank, FY_RESULT, frame->words[1], 0, 0, frame->data,
                                       frame->size_bytes);
        if (error == FERRY_ENOMEM)
            return error;
        if (error != 0)
            fy_stray(c, "the result of reduction %llu did not reach rank %d",
                     (unsigned long long)frame->words[1], rank);
    }
    return 0;
}

static int rounds_keep(ferry_collection *c, const fy_round_head *head, const void *values,
                       size_t bytes)
{
    void *room = bytes > c->result_bytes ? fy_realloc(c->result, bytes) : c->result;
    if (bytes != 0 && room == NULL)
        return FERRY_ENOMEM;
    c->result = room;
    if (bytes > c->result_bytes)
        c->result_bytes = bytes;
    if (bytes != 0)
        memcpy(c->result, values, bytes);
    c->result_count = (size_t)head->how.count;
    return 0;
}

/* Sends the result to the handler that the contributions name, if this rank has to. */
static int rounds_tell(ferry_collection *c, const fy_round_head *head, uint64_t number,
                       const void *values, size_t bytes)
{
    const ferry_contribution *how = &head->how;
    bool here = how->to == FERRY_REDUCED_RANKS ||
                (how->to == FERRY_REDUCED_RANK && how->rank == c->rank) ||
                (how->to == FERRY_REDUCED_ELEMENT && c->rank == fy_rounds_root(c));
    delivery d = {.c = c,
                  .how = how,
                  .message = {.handler = how->handler,
                              .word_count = 1,
                              .words = {number},
                              .data = bytes != 0 ? values : NULL,
                              .size_bytes = bytes}};
    if (here)
        fy_run(c->f, FY_DOING_HANDLER, how->handler.index, rounds_deliver, &d);
    return d.error == FERRY_ENOMEM ? d.error : 0;
}

int fy_result_take(ferry_collection *c, int source, const fy_frame *frame)
{
    fy_round_head head;
    uint64_t number = frame->words[1];
    (void)source;
    if (frame->size_bytes < sizeof head)
        return 0;
    memcpy(&head, frame->data, sizeof head);
    const unsigned char *values = (const unsigned char *)frame->data + sizeof head;
    size_t bytes = frame->size_bytes - sizeof head;
    if (rounds_pass_on(c, frame) != 0 || rounds_keep(c, &head, values, bytes) != 0 ||
        rounds_tell(c, &head, number, values, bytes) != 0)
        return FERRY_ENOMEM;
    c->passed = 0;
    c->done = number + 1;
    fy_steps_wake(c);
    return 0;
}

void fy_rounds_fini(ferry_collection *c)
{
    while (c->rounds != NULL)
        round_free(round_pop(&c->rounds));
    while (c->root_rounds != NULL)
        round_free(round_pop(&c->root_rounds));
    while (c->complete != NULL)
        round_free(round_pop(&c->complete));
    free(c->result);
}
