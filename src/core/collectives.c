/* The calls of collectives: checks, the record of a call, and the way each is carried out. Every
 * call of the program runs through this file, so it is built for speed (CMakeLists.txt). */
#include "core/collective.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/rank.h"
#include "core/reduce.h"

static const char *const names[] = {"barrier", "broadcast", "allreduce", "reduce",
                                    "scan",    "gather",    "allgather"};

static bool reduces(const ferry_collective *what)
{
    return what->kind >= FERRY_ALLREDUCE && what->kind <= FERRY_SCAN;
}

/* Whether this rank's `in` and `out` are read and written. */
static bool needs_in(const ferry_collective *what)
{
    return what->kind >= FERRY_ALLREDUCE;
}

static bool needs_out(const ferry *f, const ferry_collective *what)
{
    bool at_root = what->kind == FERRY_REDUCE || what->kind == FERRY_GATHER;
    return what->kind != FERRY_BARRIER && (!at_root || f->rank == what->root);
}

static int check_values(ferry *f, const ferry_collective *what, const char *name)
{
    size_t value_bytes = what->value_bytes != 0 ? what->value_bytes : fy_type_bytes(what->type);
    if (value_bytes == 0)
        return fy_fail(f, FERRY_EINVAL, "%s: type %d is unknown", name, (int)what->type);
    if (reduces(what) && what->combine == NULL &&
        (what->value_bytes != 0 || !fy_reduces(what->type, what->reduction)))
        return fy_fail(f, FERRY_EINVAL, "%s: type %d with reduction %d is unknown", name,
                       (int)what->type, (int)what->reduction);
    size_t all_bytes;
    if (__builtin_mul_overflow(what->count, value_bytes, &all_bytes) ||
        __builtin_mul_overflow(all_bytes, (size_t)f->collectives.group->size, &all_bytes) ||
        all_bytes > PTRDIFF_MAX)
        return fy_fail(f, FERRY_EINVAL, "%s: %zu values are too many", name, what->count);
    bool missing =
        (needs_in(what) && what->in == NULL) || (needs_out(f, what) && what->out == NULL);
    if (what->count > 0 && missing)
        return fy_fail(f, FERRY_EINVAL, "%s: %zu values at NULL", name, what->count);
    return 0;
}

/* Whether this rank and the root are among those that make the call. */
static int check_group(ferry *f, const ferry_collective *what, const char *name)
{
    const fy_group *group = f->collectives.group;
    bool rooted =
        what->kind == FERRY_BROADCAST || what->kind == FERRY_REDUCE || what->kind == FERRY_GATHER;
    if (group->self < 0)
        return fy_fail(
            f, FERRY_ESTATE,
            "%s: rank %d is a member of no group before its first ferry_quiesce has ended", name,
            f->rank);
    if (rooted && fy_group_place(group, what->root) < 0)
        return fy_fail(f, FERRY_EPEER, "%s: rank %d is no member of the group", name, what->root);
    return 0;
}

static int check(ferry *f, const ferry_collective *what)
{
    if ((unsigned)what->kind > FERRY_ALLGATHER)
        return fy_fail(f, FERRY_EINVAL, "collective: kind %d is unknown", (int)what->kind);
    const char *name = names[what->kind];
    int error = fy_check_outside(f, name);
    if (error == 0)
        error = fy_check_rank(f, name, what->root);
    if (error == 0)
        error = check_group(f, what, name);
    return error == 0 ? check_values(f, what, name) : error;
}

/* Copies what the program asks for, whatever its version, and checks it. */
static int read_request(ferry *f, const ferry_collective *given, ferry_collective *out)
{
    if (given == NULL)
        return fy_fail(f, FERRY_EINVAL, "collective: NULL, expected a ferry_collective");
    int error = fy_read_sized(f, "ferry_collective", given, out, sizeof *out);
    return error == 0 ? check(f, out) : error;
}

static uint64_t encode(const ferry *f, const ferry_collective *what, bool by_board)
{
    bool reduces = what->kind >= FERRY_ALLREDUCE && what->kind <= FERRY_SCAN;
    uint64_t type = what->value_bytes != 0 ? FY_CALL_OF_PROGRAM : (uint64_t)what->type;
    uint64_t reduction = what->combine != NULL ? FY_CALL_OF_PROGRAM : (uint64_t)what->reduction;
    uint64_t closes = f->closing == FY_CLOSING_NOT ? 0
                      : f->kept_by_main            ? FY_CALL_CLOSES | FY_CALL_RETURNED
                                                   : FY_CALL_CLOSES;
    return (uint64_t)what->kind | closes | (reduces ? type << FY_CALL_TYPE_SHIFT : 0) |
           (reduces ? reduction << FY_CALL_REDUCTION_SHIFT : 0) |
           (uint64_t)by_board << FY_CALL_BOARD_SHIFT | (uint64_t)what->root << FY_CALL_ROOT_SHIFT;
}

/* Ranks whose schedulers differ do not make the same call. */
static __attribute__((cold)) void name_phase(fy_collectives *all, fy_collective_call *call)
{
    char name[FY_PHASE_NAME + 1] = "";
    uint32_t rest;
    (void)snprintf(name, sizeof(name), "%s", all->phase);
    memcpy(&call->size_bytes, name, sizeof(call->size_bytes));
    memcpy(&rest, name + sizeof(call->size_bytes), sizeof(rest));
    call->what |=
        (uint64_t)rest << FY_CALL_ROOT_SHIFT | FY_CALL_PHASE | (all->phase_on ? FY_CALL_ON : 0);
    all->phase = NULL;
}

fy_collective *fy_collective_begin(ferry *f, const ferry_collective *what, bool by_board)
{
    fy_collectives *all = &f->collectives;
    fy_collective *c = all->spare;
    if (c != NULL)
        all->spare = c->next;
    else if ((c = fy_calloc(1, sizeof(*c))) == NULL)
        return NULL;
    if (c->steps == NULL) {
        c->steps = c->own_steps;
        c->posts = c->own_posts;
        c->step_capacity = FY_OWN_STEPS;
        c->post_capacity = FY_OWN_POSTS;
    }
    c->next = NULL;
    c->number = ++all->number;
    c->error = 0;
    c->told = c->finished = c->kept = c->last = false;
    c->by_board = by_board;
    c->op = 0;
    c->what = *what;
    c->group = fy_group_use(all->group);
    c->ranks = c->group->size;
    c->self = c->group->self;
    c->root = fy_group_place(c->group, what->root);
    c->value_bytes = what->value_bytes != 0 ? what->value_bytes : fy_type_bytes(what->type);
    c->size_bytes = c->value_bytes * what->count;
    c->call =
        (fy_collective_call){encode(f, what, by_board), c->size_bytes, fy_handlers_signature(f)};
    if (all->phase != NULL)
        name_phase(all, &c->call);
    c->part = c->at = c->step_count = c->post_count = 0;
    c->sent = c->done = 0;
    if (all->first == NULL)
        all->first = c;
    else
        all->last->next = c;
    all->last = c;
    if (!by_board && c->ranks > 1)
        fy_meet_announce(f, c);
    if (all->early.head != NULL)
        fy_collective_look_early(f, c);
    fy_collective_look_lost(f, c);
    return c;
}

static fy_plan *plan_of(ferry_collective_kind kind)
{
    static fy_plan *const plans[] = {fy_plan_barrier,  fy_plan_broadcast, fy_plan_allreduce,
                                     fy_plan_reduce,   fy_plan_scan,      fy_plan_gather,
                                     fy_plan_allgather};
    return plans[kind];
}

static int no_memory(ferry *f, const ferry_collective *what)
{
    return fy_fail(f, FERRY_ENOMEM, "%s: no memory for another call", names[what->kind]);
}

static void run_steps(ferry *f, fy_collective *c)
{
    fy_patience patience = {0};
    c->plan = plan_of(c->what.kind);
    fy_collective_advance(f, c);
    while (!c->finished)
        fy_progress_wait(f, true, FERRY_FOREVER, &patience);
}

int fy_collective_run(ferry *f, const ferry_collective *what, fy_doing doing)
{
    size_t value_bytes = what->value_bytes != 0 ? what->value_bytes : fy_type_bytes(what->type);
    bool by_board =
        f->collectives.group->size > 1 && fy_meet_fits(f, what, what->count * value_bytes);
    fy_collective *c = fy_collective_begin(f, what, by_board);
    if (c == NULL)
        return no_memory(f, what);
    fy_doing before = fy_account_enter(f, doing);
    c->kept = true;
    if (by_board) {
        fy_meet(f, c);
        fy_collective_finish(f, c);
    } else {
        run_steps(f, c);
    }
    int error = c->error;
    fy_collective_free(f, c);
    fy_account_leave(f, before);
    return error;
}

int ferry_collective_run(ferry *f, const ferry_collective *given)
{
    ferry_collective what;
    int error = read_request(f, given, &what);
    if (error != 0)
        return error;
    return fy_collective_run(f, &what,
                             what.kind == FERRY_BARRIER ? FY_DOING_BARRIER : FY_DOING_COLLECTIVE);
}

/* Its operation was cancelled or timed out. Its buffers are the caller's again, so that it cannot
 * go on; the others, which would wait for this rank's part, are told. */
static void on_gone(ferry *f, void *arg, uint32_t op, int error)
{
    fy_collective *c = arg;
    (void)op;
    (void)error;
    c->op = 0;
    c->error = FERRY_ECANCELED;
    fy_collective_finish(f, c);
}

int ferry_collective_start(ferry *f, const ferry_collective *given, const ferry_track *track)
{
    ferry_collective known, *what = &known;
    int error = read_request(f, given, &known);
    uint32_t op = 0;
    if (error == 0)
        error = fy_op_start(f, track, f->rank, 0, 0, &op);
    if (error != 0)
        return error;
    fy_collective *c = fy_collective_begin(f, what, false);
    if (c == NULL) {
        fy_op_drop(f, op);
        return no_memory(f, what);
    }
    c->op = op;
    if (op != 0)
        fy_op_own(f, op, on_gone, c);
    c->plan = plan_of(what->kind);
    fy_collective_advance(f, c);
    return 0;
}

static const ferry_collective barrier = {.size = sizeof(barrier), .kind = FERRY_BARRIER};

int fy_barrier(ferry *f, fy_doing doing)
{
    return fy_collective_run(f, &barrier, doing);
}

int fy_barrier_phase(ferry *f, const char *scheduler, bool on)
{
    f->collectives.phase = scheduler;
    f->collectives.phase_on = on;
    int error = ferry_barrier(f);
    f->collectives.phase = NULL;
    return error;
}

int ferry_barrier(ferry *f)
{
    int error = fy_check_outside(f, "barrier");
    if (error == 0)
        error = check_group(f, &barrier, "barrier");
    return error != 0 ? error : fy_barrier(f, FY_DOING_BARRIER);
}

int ferry_broadcast(ferry *f, int root, void *data, size_t size_bytes)
{
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_BROADCAST,
                                   .root = root,
                                   .out = data,
                                   .count = size_bytes,
                                   .type = FERRY_BYTE};
    return ferry_collective_run(f, &what);
}

int ferry_allreduce(ferry *f, ferry_type type, ferry_reduction reduction, const void *in, void *out,
                    size_t count)
{
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_ALLREDUCE,
                                   .in = in,
                                   .out = out,
                                   .count = count,
                                   .type = type,
                                   .reduction = reduction};
    return ferry_collective_run(f, &what);
}

int ferry_reduce(ferry *f, int root, ferry_type type, ferry_reduction reduction, const void *in,
                 void *out, size_t count)
{
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_REDUCE,
                                   .root = root,
                                   .in = in,
                                   .out = out,
                                   .count = count,
                                   .type = type,
                                   .reduction = reduction};
    return ferry_collective_run(f, &what);
}

int ferry_scan(ferry *f, ferry_type type, ferry_reduction reduction, const void *in, void *out,
               size_t count)
{
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_SCAN,
                                   .in = in,
                                   .out = out,
                                   .count = count,
                                   .type = type,
                                   .reduction = reduction};
    return ferry_collective_run(f, &what);
}

int ferry_gather(ferry *f, int root, const void *in, size_t size_bytes, void *out)
{
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_GATHER,
                                   .root = root,
                                   .in = in,
                                   .out = out,
                                   .count = size_bytes,
                                   .type = FERRY_BYTE};
    return ferry_collective_run(f, &what);
}

int ferry_allgather(ferry *f, const void *in, size_t size_bytes, void *out)
{
    const ferry_collective what = {.size = sizeof(what),
                                   .kind = FERRY_ALLGATHER,
                                   .in = in,
                                   .out = out,
                                   .count = size_bytes,
                                   .type = FERRY_BYTE};
    return ferry_collective_run(f, &what);
}
