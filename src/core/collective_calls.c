/* The calls of collectives: the record of a call, and the way each is carried out. */
#include "core/collective.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/copy.h"
#include "core/fail.h"
#include "core/operation.h"
#include "core/rank.h"
#include "core/reduce.h"

/* Copies what the program asks for, whatever its version, and checks it. */
static int read_request(ferry *f, const ferry_collective *given, ferry_collective *out)
{
    int error = fy_read_sized(f, "ferry_collective", given, out, sizeof *out);
    if (error == 0)
        error = fy_collective_check(f, out);
    if (error == 0 && out->kind < FERRY_REDUCE_SCATTER)
        out->in_counts = out->in_offsets = out->out_counts = out->out_offsets = NULL;
    return error;
}

/* Sets `what` and the size on which all ranks must agree. If all ranks give the counts of pieces, a
 * hash of these stands in place of the root, and the size is their sum. */
static void identify(const ferry *f, fy_collective *c)
{
    const ferry_collective *what = &c->what;
    bool reduces = (fy_collective_kinds[what->kind].flags & FY_COMBINES) != 0;
    /* Pieces end between values: ranks whose values differ in size would send other pieces. */
    uint64_t own = (what->value_bytes ^ what->value_bytes >> 14) & 0x3fff;
    uint64_t type = what->value_bytes != 0 ? FY_CALL_OF_PROGRAM | (own & 0x7f) : what->type;
    uint64_t reduction = what->combine != NULL ? FY_CALL_OF_PROGRAM | own >> 7 : what->reduction;
    uint64_t closes = f->closing == FY_CLOSING_NOT ? 0
                      : f->kept_by_main            ? FY_CALL_CLOSES | FY_CALL_RETURNED
                                                   : FY_CALL_CLOSES;
    const size_t *counts = what->kind == FERRY_ALLGATHERV       ? what->out_counts
                           : what->kind == FERRY_REDUCE_SCATTER ? what->in_counts
                                                                : NULL;
    uint32_t root = counts != NULL ? 0 : (uint32_t)what->root;
    size_t count = counts != NULL || (fy_collective_kinds[what->kind].flags & FY_VARIES) != 0
                       ? 0
                       : what->count;
    for (int i = 0; counts != NULL && i < c->ranks; i++) {
        root = (root ^ (uint32_t)counts[i]) * 16777619u + (uint32_t)((uint64_t)counts[i] >> 32);
        count += counts[i];
    }
    c->call.size_bytes = count * c->value_bytes;
    c->call.what = (uint64_t)what->kind | closes | (reduces ? type << FY_CALL_TYPE_SHIFT : 0) |
                   (reduces ? reduction << FY_CALL_REDUCTION_SHIFT : 0) |
                   (uint64_t)c->by_board << FY_CALL_BOARD_SHIFT |
                   (uint64_t)root << FY_CALL_ROOT_SHIFT |
                   (c->group->id != 0 ? FY_CALL_OVER_GROUP : 0);
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

/* A call of the next number for `what`, which was checked; NULL without memory. It is among the
 * running calls until it has finished. */
static fy_collective *collective_begin(ferry *f, const ferry_collective *what, bool by_board)
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
    c->group = fy_group_use(what->group != NULL ? what->group : all->group);
    c->number = ++c->group->number;
    c->by_board = by_board;
    c->spread = all->boards == NULL;
    c->error = 0;
    c->told = c->finished = c->kept = c->last = false;
    c->op = c->part = c->at = c->step_count = c->post_count = 0;
    c->doubt_ns = c->sent = c->done = 0;
    all->polls = 0;
    fy_copy(&c->what, what, sizeof(c->what));
    c->ranks = c->group->size;
    c->self = c->group->self;
    c->root = fy_collective_is_rooted(what->kind) ? fy_group_place(c->group, what->root) : 0;
    c->value_bytes = what->value_bytes != 0 ? what->value_bytes : fy_type_bytes(what->type);
    c->size_bytes = c->value_bytes * what->count;
    identify(f, c);
    c->id = c->group->id;
    c->call.signature = c->id == 0 ? fy_handlers_signature(f) : c->id;
    if (all->phase != NULL)
        name_phase(all, &c->call);
    if (all->first == NULL)
        all->first = c;
    else
        all->last->next = c;
    all->last = c;
    /* First what this rank knows itself: ranks that have not learnt of a death yet make other calls
     * in place of this one, and none is wrong. */
    fy_collective_look_lost(f, c);
    if (!by_board) {
        fy_rest_due(f);
        if (c->ranks > 1 && c->group->id == 0 && c->error == 0)
            fy_collective_board_announce(f, c);
    }
    fy_collective_look_early(f, c);
    return c;
}

static fy_plan *plan_of(ferry_collective_kind kind)
{
    static fy_plan *const plans[] = {fy_plan_barrier,   fy_plan_broadcast,      fy_plan_allreduce,
                                     fy_plan_reduce,    fy_plan_scan,           fy_plan_gather,
                                     fy_plan_allgather, fy_plan_scan,           fy_plan_exchange,
                                     fy_plan_exchange,  fy_plan_reduce_scatter, fy_plan_exchange,
                                     fy_plan_exchange,  fy_plan_exchange,       fy_plan_exchange};
    return plans[kind];
}

static int collective_no_memory(ferry *f, const ferry_collective *what)
{
    return fy_fail(f, FERRY_ENOMEM, "%s: no memory for another call",
                   fy_collective_kinds[what->kind].name);
}

static void run_steps(ferry *f, fy_collective *c)
{
    fy_patience patience = {0};
    c->plan = plan_of(c->what.kind);
    fy_collective_advance(f, c);
    while (!c->finished)
        fy_progress_wait(f, FERRY_FOREVER, &patience);
}

int fy_collective_run(ferry *f, const ferry_collective *what, fy_doing doing)
{
    size_t value_bytes = what->value_bytes != 0 ? what->value_bytes : fy_type_bytes(what->type);
    bool by_board = what->group == NULL && f->collectives.group->size > 1 &&
                    fy_collective_board_fits(f, what, what->count * value_bytes);
    fy_collective *c = collective_begin(f, what, by_board);
    if (c == NULL)
        return collective_no_memory(f, what);
    fy_doing before = fy_account_enter(f, doing);
    c->kept = true;
    if (by_board) {
        fy_collective_board_run(f, c);
        fy_collective_finish(f, c);
    } else {
        run_steps(f, c);
    }
    int error = c->error;
    fy_collective_free(f, c);
    fy_account_leave(f, before);
    return error;
}

/* The kinds in which each rank waits for all others, at each size. */
enum {
    ALL_MEET = 1 << FERRY_BARRIER | 1 << FERRY_ALLREDUCE | 1 << FERRY_ALLGATHER |
               1 << FERRY_ALLTOALL | 1 << FERRY_REDUCE_SCATTER
};

static int run_checked(ferry *f, const ferry_collective *what)
{
    fy_doing doing = what->kind == FERRY_BARRIER ? FY_DOING_BARRIER : FY_DOING_COLLECTIVE;
    if (what->group != NULL || (ALL_MEET >> what->kind & 1) == 0)
        doing += FY_DOING_BARRIER_OF_SOME - FY_DOING_BARRIER;
    return fy_collective_run(f, what, doing);
}

int fy_collective_call_own(ferry *f, const ferry_collective *what)
{
    int error = fy_collective_check(f, what);
    return error != 0 ? error : run_checked(f, what);
}

int ferry_collective_run(ferry *f, const ferry_collective *given)
{
    ferry_collective what;
    int error = read_request(f, given, &what);
    return error != 0 ? error : run_checked(f, &what);
}

/* The operation of a call was cancelled or has timed out. The buffers belong to the caller again,
 * so the call cannot go on. The other ranks would wait for this rank's part, so they are told. */
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
        error = fy_op_start(f, track, f->head.rank, 0, 0, &op);
    if (error != 0)
        return error;
    fy_collective *c = collective_begin(f, what, false);
    if (c == NULL) {
        fy_op_drop(f, op);
        return collective_no_memory(f, what);
    }
    c->op = op;
    if (op != 0)
        fy_op_own(f, op, on_gone, c);
    fy_op_aside(f, op);
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
    int error = fy_collective_check_group(f, f->collectives.group, "barrier");
    return error != 0 ? error : fy_barrier(f, FY_DOING_BARRIER);
}
