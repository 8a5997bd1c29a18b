/* Exchanges. A frame finds its exchange by number. A frame for an exchange that has ended is
 * dropped. But if it asks, its sender gets an error as the answer, since it waits for one. That
 * happens if other ranks have asked in its place. */
#include "mover/bind/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/outgoing.h"
#include "mover/bind/link.h"
#include "mover/geometry/fail.h"

void fy_exchange_begin(fy_exchange *x, ferry *f)
{
    fy_movers *movers = fy_movers_of(f);
    *x = (fy_exchange){.next = movers->exchanges, .f = f, .number = movers->next_exchange++};
    movers->exchanges = x;
}

int fy_exchange_expect(fy_exchange *x, int error, const bool *asked, size_t *asking)
{
    const int ranks = ferry_ranks(x->f);
    int64_t *counts = fy_calloc((size_t)ranks, sizeof *counts);
    if (error == 0 && counts == NULL)
        error = fy_mover_no_memory(x->f, FERRY_ENOMEM, "exchange with other ranks");
    /* After a death ranks may have counted different numbers of exchanges. */
    uint64_t number = x->number;
    int failed = fy_mover_agree_on(x->f, error, &number);
    x->number = (uint32_t)number;
    if (fy_movers_of(x->f)->next_exchange <= x->number)
        fy_movers_of(x->f)->next_exchange = x->number + 1;
    for (int r = 0; r < ranks && failed == 0; r++)
        counts[r] = asked[r];
    if (failed == 0)
        failed = ferry_allreduce(x->f, FERRY_INT64, FERRY_SUM, counts, counts, (size_t)ranks);
    *asking = failed == 0 ? (size_t)counts[ferry_rank(x->f)] : 0;
    free(counts);
    return failed;
}

/* Answers a request that comes after all that were expected, or after the end of its exchange: with
 * an error. */
static void refuse_late(ferry *f, int source, uint32_t number, uint64_t round)
{
    fy_exchange over = {.f = f, .number = number};
    if (round == FY_EXCHANGE_ASK && source != ferry_rank(f))
        (void)fy_exchange_send(&over, source, FY_EXCHANGE_ANSWER, FERRY_EINVAL, NULL, 0);
}

/* Keeps a message. If a request came with an error, or there is no memory for it, its sender gets
 * the error as the answer, since it waits for one. */
static void exchange_keep(fy_exchange *x, int source, fy_exchange_round round, int error,
                          const void *data, size_t size_bytes)
{
    if (x->is_over[round]) {
        refuse_late(x->f, source, x->number, round);
        return;
    }
    fy_exchange_post *post = error ? NULL : fy_malloc(sizeof *post + size_bytes);
    x->count[round]++;
    fy_movers_news(x->f);
    if (post != NULL) {
        *post =
            (fy_exchange_post){.next = x->inbox[round], .source = source, .size_bytes = size_bytes};
        if (size_bytes > 0)
            memcpy(post->data, data, size_bytes);
        x->inbox[round] = post;
        return;
    }
    x->error = error ? error : FERRY_ENOMEM;
    if (round == FY_EXCHANGE_ASK)
        (void)fy_exchange_send(x, source, FY_EXCHANGE_ANSWER, x->error, NULL, 0);
}

int fy_exchange_send(fy_exchange *x, int rank, fy_exchange_round round, int error, const void *data,
                     size_t size_bytes)
{
    fy_frame frame = {.kind = FY_KIND_MOVER,
                      .word_count = 3,
                      .aux = FY_MOVER_POST,
                      .words = {x->number, round, (uint64_t)(int64_t)error},
                      .data = data,
                      .size_bytes = size_bytes};
    if (rank == ferry_rank(x->f)) {
        exchange_keep(x, rank, round, error, data, size_bytes);
        return 0;
    }
    int sent = fy_send(x->f, FY_DATA, rank, &frame);
    if (sent == 0 || size_bytes == 0)
        return sent;
    /* There was no memory for the data. The other rank waits: it gets the error, which needs none.
     */
    frame.words[2] = (uint64_t)(int64_t)sent;
    frame.data = NULL;
    frame.size_bytes = 0;
    (void)fy_send(x->f, FY_DATA, rank, &frame);
    return sent;
}

void fy_exchange_take(ferry *f, int source, const fy_frame *frame)
{
    for (fy_exchange *x = fy_movers_of(f)->exchanges; x != NULL; x = x->next)
        if (x->number == frame->words[0] && frame->words[1] <= FY_EXCHANGE_ANSWER) {
            const int error = (int)(int64_t)frame->words[2];
            exchange_keep(x, source, (fy_exchange_round)frame->words[1],
                          error > 0 ? FERRY_EINVAL : error, frame->data, frame->size_bytes);
            return;
        }
    if (frame->words[0] < fy_movers_of(f)->next_exchange)
        refuse_late(f, source, (uint32_t)frame->words[0], frame->words[1]);
}

int fy_exchange_receive(fy_exchange *x, fy_exchange_round round, size_t count)
{
    while (x->count[round] < count) {
        (void)ferry_wait(x->f, FY_LOOK_NS);
        if (x->count[round] < count && fy_mover_any_dead(x->f))
            return FERRY_EPEER;
    }
    x->is_over[round] = true;
    return x->error;
}

void fy_exchange_end(fy_exchange *x)
{
    for (fy_exchange **at = &fy_movers_of(x->f)->exchanges; *at != NULL; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            break;
        }
    for (int round = 0; round < 2; round++)
        for (fy_exchange_post *post; (post = x->inbox[round]) != NULL;) {
            x->inbox[round] = post->next;
            free(post);
        }
}
