/* Queue: a linked list whose elements move between ranks while messages run along it (prema.txt,
 * appendix C).
 *
 *      ferry run -n 4 build/apps/queue [ELEMENTS] [ROUNDS]
 *
 * Rank 0 makes all elements; each is linked to the next by its name. A round sends a message with 0
 * to the first; every element adds its value and passes the sum on, and the last tells rank 0. An
 * element that has passed a sum on goes to the next rank, so each round finds the list elsewhere.
 * The library moves half of them. The program takes the other half out, carries them by a request,
 * and puts them in again. The sums are the check. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

#include "common/check.h"
#include "common/parameters.h"

typedef struct element {
    ferry_object next; /* none: the last */
    uint64_t value;
    uint64_t moves;
} element;

typedef struct state {
    ferry_object_type type;
    ferry_handler add, total, carry;
    uint64_t sums, sum; /* that have come to rank 0, and the last */
} state;

/* Adds the element's value to the sum that comes in and sends it on. */
static void on_add(ferry *f, ferry_object object, void *data, int source,
                   const ferry_message *message)
{
    const state *s = ferry_user_data(f);
    element *e = data;
    ferry_message next = *message;
    (void)source;
    next.words[0] += e->value;
    if (ferry_object_is_none(e->next)) {
        next.handler = s->total;
        check(f, ferry_request_send(f, 0, &next, NULL));
    } else {
        check(f, ferry_object_send(f, e->next, &next, NULL));
    }
    e->moves++;
    if (e->moves % 2 == 1)
        check(f, ferry_object_move(f, object, (ferry_rank(f) + 1) % ferry_ranks(f)));
}

static void on_total(ferry *f, int source, const ferry_message *message)
{
    state *s = ferry_user_data(f);
    (void)source;
    s->sum = message->words[0];
    s->sums++;
}

/* A request brings this of an element: the element, and what the library must know of it. */
typedef struct parcel {
    element element;
    uint64_t info[];
} parcel;

/* Takes `object` out and sends it to `rank`. */
static void carry(ferry *f, ferry_object object, int rank)
{
    const state *s = ferry_user_data(f);
    ferry_move_info info;
    void *data;
    check(f, ferry_object_uninstall(f, object, rank, &info, &data));
    size_t size_bytes = sizeof(parcel) + info.size_bytes;
    parcel *p = malloc(size_bytes);
    check(f, p != NULL ? 0 : FERRY_ENOMEM);
    memcpy(&p->element, data, sizeof p->element);
    memcpy(p->info, info.bytes, info.size_bytes);
    const ferry_message message = {.handler = s->carry, .data = p, .size_bytes = size_bytes};
    check(f, ferry_request_send(f, rank, &message, NULL));
    free(info.bytes);
    free(data);
    free(p);
}

static void on_carry(ferry *f, int source, const ferry_message *message)
{
    const parcel *p = message->data;
    element *e = malloc(sizeof *e);
    check(f, e != NULL ? 0 : FERRY_ENOMEM);
    *e = p->element;
    const ferry_move_info info = {.bytes = (void *)(uintptr_t)p->info,
                                  .size_bytes = message->size_bytes - sizeof *p};
    check(f, ferry_object_install(f, &info, e, source));
}

/* Makes the list on rank 0, from its end; the names go to `elements`. */
static void create(ferry *f, uint64_t count, ferry_object *elements)
{
    const state *s = ferry_user_data(f);
    ferry_object next = {0};
    for (uint64_t i = count; i-- > 0;) {
        element *e = calloc(1, sizeof *e);
        check(f, e != NULL ? 0 : FERRY_ENOMEM);
        e->next = next;
        e->value = i + 1;
        check(f, ferry_object_create(f, s->type, e, &elements[i]));
        next = elements[i];
    }
}

/* Carries on what stands here and has passed an even number of sums on: the handlers have moved the
 * others. */
static void carry_some(ferry *f, uint64_t count, const ferry_object *elements)
{
    for (uint64_t i = 0; i < count && ferry_ranks(f) > 1; i++) {
        const element *e = ferry_object_data(f, elements[i]);
        if (e != NULL && e->moves > 0 && e->moves % 2 == 0)
            carry(f, elements[i], (ferry_rank(f) + 1) % ferry_ranks(f));
    }
}

/* Returns how many sums were wrong. */
static uint64_t run(ferry *f, uint64_t count, uint64_t rounds, ferry_object *elements)
{
    const state *s = ferry_user_data(f);
    uint64_t wrong = 0;
    if (ferry_rank(f) == 0)
        create(f, count, elements);
    check(f, ferry_broadcast(f, 0, elements, count * sizeof *elements));
    for (uint64_t i = 0; i < rounds; i++) {
        const ferry_message zero = {.handler = s->add, .word_count = 1};
        if (ferry_rank(f) == 0)
            check(f, ferry_object_send(f, elements[0], &zero, NULL));
        check(f, ferry_quiesce(f));
        wrong +=
            ferry_rank(f) == 0 && (s->sums != i + 1 || s->sum != count * (count + 1) / 2) ? 1 : 0;
        carry_some(f, count, elements);
    }
    check(f, ferry_quiesce(f));
    return wrong;
}

static int rank_main(ferry *f, int argc, char **argv)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "element", .flat_bytes = sizeof(element)};
    state s = {0};
    long count = 10, rounds = 20;
    const parameter table[] = {
        {"ELEMENTS", "of the list", 1, 1e6, .whole = &count},
        {"ROUNDS", "of messages along it", 1, 1e9, .whole = &rounds},
        {0},
    };
    int status = parameters_read(f, argc, argv, "A list whose elements move between ranks.", table);
    if (status >= 0)
        return status;
    ferry_user_data_set(f, &s);
    check(f, ferry_object_type_register(f, &ops, &s.type));
    check(f, ferry_object_handler_register(f, "add", on_add, &s.add));
    check(f, ferry_handler_register(f, "total", on_total, &s.total));
    check(f, ferry_handler_register(f, "carry", on_carry, &s.carry));
    ferry_object *elements = calloc((size_t)count, sizeof *elements);
    check(f, elements != NULL ? 0 : FERRY_ENOMEM);
    uint64_t totals[2] = {run(f, (uint64_t)count, (uint64_t)rounds, elements),
                          ferry_object_count(f)};
    check(f, ferry_allreduce(f, FERRY_UINT64, FERRY_SUM, totals, totals, 2));
    free(elements);
    bool right = totals[0] == 0 && totals[1] == (uint64_t)count;
    if (ferry_rank(f) == 0)
        printf("%" PRIu64 " elements, %ld rounds: sum %" PRIu64 ", %s\n", totals[1], rounds, s.sum,
               right ? "right each time" : "WRONG");
    return right ? 0 : 1;
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
