/* Allreduce by recursive doubling, piece by piece.
 *
 * At each step two ranks that hold the results of neighbouring runs of ranks exchange them and both
 * combine lower with higher, so operands keep the order of ranks and every rank computes the same
 * expression. When the number of ranks is no power of two, the first ranks pair up before, and the
 * upper of each pair gets the result afterwards. */
#include <stdlib.h>
#include <string.h>

#include "core/collective.h"
#include "core/rank.h"
#include "core/reduce.h"

enum { PIECE_BYTES = 32 * 1024, SMALL_BYTES = 256, STEPS_PER_PIECE = 64 };
enum { STEP_PAIR = 40, STEP_RESULT = 41 }; /* the others are numbers of rounds */

typedef struct reduction_plan {
    ferry_type type;
    ferry_reduction reduction;
    size_t value_bytes;
    void *other; /* room for a piece */
    int power;   /* the largest power of two that is not above the number of ranks */
    int rest;    /* ranks beyond */
} reduction_plan;

static int receive(ferry *f, int source, int32_t step, void *buffer, size_t size_bytes)
{
    fy_collective_want(f, source, step, buffer, size_bytes);
    return fy_collective_await(f, 0);
}

/* Rounds among ranks that hold a run each; `position` counts those. */
static int double_up(ferry *f, const reduction_plan *plan, int32_t step, void *piece, size_t bytes)
{
    int position = f->rank < 2 * plan->rest ? f->rank / 2 : f->rank - plan->rest;
    for (int mask = 1, round = 0; mask < plan->power; mask *= 2, round++) {
        int other = position ^ mask;
        int rank = other < plan->rest ? other * 2 : other + plan->rest;
        int error = fy_collective_send(f, rank, step + round, piece, bytes);
        if (error == 0)
            error = receive(f, rank, step + round, plan->other, bytes);
        if (error != 0)
            return error;
        fy_reduce(plan->type, plan->reduction, piece, other < position ? plan->other : piece,
                  other < position ? piece : plan->other, bytes / plan->value_bytes);
    }
    return 0;
}

static int reduce_piece(ferry *f, const reduction_plan *plan, int32_t step, void *piece,
                        size_t bytes)
{
    int error;
    bool paired = f->rank < 2 * plan->rest;
    if (paired && f->rank % 2 == 1) {
        error = fy_collective_send(f, f->rank - 1, step + STEP_PAIR, piece, bytes);
        return error != 0 ? error : receive(f, f->rank - 1, step + STEP_RESULT, piece, bytes);
    }
    if (paired) {
        error = receive(f, f->rank + 1, step + STEP_PAIR, plan->other, bytes);
        if (error != 0)
            return error;
        fy_reduce(plan->type, plan->reduction, piece, piece, plan->other,
                  bytes / plan->value_bytes);
    }
    error = double_up(f, plan, step, piece, bytes);
    if (error == 0 && paired)
        error = fy_collective_send(f, f->rank + 1, step + STEP_RESULT, piece, bytes);
    return error;
}

static int reduce_all(ferry *f, reduction_plan *plan, unsigned char *values, size_t size_bytes)
{
    uint64_t small[SMALL_BYTES / sizeof(uint64_t)];
    size_t room = size_bytes < PIECE_BYTES ? size_bytes : PIECE_BYTES;
    plan->other = room <= SMALL_BYTES ? small : malloc(room);
    if (plan->other == NULL)
        return fy_fail(f, FERRY_ENOMEM, "allreduce: no memory for %zu bytes", room);
    int error = 0;
    int32_t step = 0;
    /* An empty one is still a meeting of all. */
    size_t done = 0;
    do {
        size_t bytes = size_bytes - done < PIECE_BYTES ? size_bytes - done : PIECE_BYTES;
        error = reduce_piece(f, plan, step, values + done, bytes);
        done += bytes;
        step += STEPS_PER_PIECE;
    } while (error == 0 && done < size_bytes);
    if (plan->other != small)
        free(plan->other);
    return error;
}

static int check(ferry *f, ferry_type type, ferry_reduction reduction, const void *in,
                 const void *out, size_t count)
{
    int error = fy_check_outside(f, "allreduce");
    if (error != 0)
        return error;
    if ((unsigned)type > FERRY_DOUBLE || (unsigned)reduction > FERRY_MAX)
        return fy_fail(f, FERRY_EINVAL, "allreduce: type %d with reduction %d is unknown",
                       (int)type, (int)reduction);
    /* Steps are numbered by piece. */
    if (count > (size_t)INT32_MAX / STEPS_PER_PIECE * (PIECE_BYTES / 8))
        return fy_fail(f, FERRY_EINVAL, "allreduce: %zu values are too many", count);
    if (count > 0 && (in == NULL || out == NULL))
        return fy_fail(f, FERRY_EINVAL, "allreduce: %zu values at NULL", count);
    return 0;
}

int ferry_allreduce(ferry *f, ferry_type type, ferry_reduction reduction, const void *in, void *out,
                    size_t count)
{
    int error = check(f, type, reduction, in, out, count);
    if (error != 0)
        return error;
    size_t size_bytes = count * fy_type_bytes(type);
    if (size_bytes > 0 && in != out)
        memmove(out, in, size_bytes);
    if (f->ranks == 1)
        return 0;
    reduction_plan plan = {
        .type = type, .reduction = reduction, .value_bytes = fy_type_bytes(type), .power = 1};
    while (plan.power <= f->ranks / 2)
        plan.power *= 2;
    plan.rest = f->ranks - plan.power;
    unsigned char nothing = 0;
    fy_doing before = fy_account_enter(f, FY_DOING_COLLECTIVE);
    const fy_collective_call call = {
        .what = fy_collective_what(FY_ALLREDUCE, (unsigned)type, (unsigned)reduction, 0),
        .size_bytes = size_bytes};
    fy_collective_begin(f, &call);
    error = reduce_all(f, &plan, out == NULL ? &nothing : out, size_bytes);
    error = fy_collective_end(f, error);
    fy_account_leave(f, before);
    return error;
}
