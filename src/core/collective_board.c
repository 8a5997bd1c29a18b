/* Collectives by the board, of ranks that all share memory: barriers, and collectives of few values
 * in which each rank waits for all others.
 *
 * Each rank has a board. All ranks can read it, and only its rank writes it. A call is one line of
 * the board: the number of the call, its kind and arguments, and the rank's values. A rank that has
 * read the lines of all ranks knows everything, and combines the values by itself. A board has two
 * lines, which are used in turn. When a rank writes a line again, it has completed the call in
 * between. For that call every other rank had first finished reading the old line.
 *
 * A rank that goes to sleep says so on its board, then looks once more. A rank that finds that all
 * have come looks for sleepers and wakes them. It orders its line before these looks by a fence,
 * and the accesses of sleepers are sequentially consistent. So the last rank to come sees every
 * sleeper that has not seen its line.
 *
 * If ranks share processors, the last rank to come finds the others where they yield, not asleep.
 * So the port asks this file between two yields (board_is_over), and a rank says that it sleeps
 * only just before it does. A rank that lacks only one other looks for a moment before it yields:
 * the other one may run on another processor, and then the ranks of this processor have all come.
 *
 * Another rank may write where it should not. So a rank keeps its two lines in private memory too.
 * Before it goes to sleep, wherever it waits, it writes a line again that was changed.
 *
 * A call that is carried out by frames is announced on the board, and wakes sleepers too. So a rank
 * that waits here learns that another rank has called something else. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/relax.h"
#include "core/board.h"
#include "core/collective.h"
#include "core/fail.h"
#include "core/membership.h"
#include "core/rank.h"
#include "core/rest.h"
#include "core/run.h"

enum { RANKS_MAX = 32, VALUE_BYTES = 32 };

/* Looks at the board between two polls, and fruitless rounds of both before sleeping. */
enum { LOOKS = 32, ROUNDS = 20 };

typedef struct line {
    _Atomic uint64_t number; /* release: what follows is of that call; 0: none yet */
    _Atomic uint64_t call[3];
    unsigned char value[VALUE_BYTES];
} line;

/* For calls by frames. If a reader finds that `number` changed, it has read invalid data. */
typedef struct announcement {
    _Atomic uint64_t number;
    _Atomic uint64_t call[3];
} announcement;

typedef struct board {
    line lines[2];
    announcement announced;
    _Alignas(64) _Atomic uint32_t waiting;
} board;

_Static_assert(sizeof(line) == 64 && sizeof(board) <= FY_BOARD_CORE_BYTES - FY_BOARD_REST_BYTES,
               "a line is a cache line");

static void write_call(_Atomic uint64_t out[3], const fy_collective_call *call)
{
    /* relaxed: the number, stored after it, publishes */
    atomic_store_explicit(&out[0], call->what, memory_order_relaxed);
    atomic_store_explicit(&out[1], call->size_bytes, memory_order_relaxed);
    atomic_store_explicit(&out[2], call->signature, memory_order_relaxed);
}

/* The contents of a line. They are invalid if its rank has gone on meanwhile, after a disagreement.
 */
static fy_collective_call read_call(const _Atomic uint64_t in[3])
{
    /* acquire: before the second look at the number */
    return (fy_collective_call){atomic_load_explicit(&in[0], memory_order_acquire),
                                atomic_load_explicit(&in[1], memory_order_acquire),
                                atomic_load_explicit(&in[2], memory_order_acquire)};
}

static inline board *board_of(const ferry *f, int rank)
{
    return f->collectives.boards[rank];
}

/* The private copy of this rank's line of a turn. */
static inline line *kept_line(const ferry *f, uint32_t turn)
{
    return (line *)(void *)&f->collectives.boards[f->head.ranks] + turn % 2;
}

static inline void publish(line *own, const line *kept)
{
    /* relaxed: the number, stored after them, publishes */
    for (int i = 0; i < 3; i++)
        atomic_store_explicit(&own->call[i],
                              atomic_load_explicit(&kept->call[i], memory_order_relaxed),
                              memory_order_relaxed);
    memcpy(own->value, kept->value, VALUE_BYTES);
    /* release: pairs with the load in has_come. A locked instruction would hold up this rank while
     * others look at the line: 100 ns between distant cores. */
    atomic_store_explicit(&own->number, kept->number, memory_order_release);
    /* seq_cst: before the look at the others' lines and at sleepers */
    atomic_thread_fence(memory_order_seq_cst);
}

__attribute__((cold)) void fy_collective_board_repair(ferry *f)
{
    for (uint32_t turn = 0; f->collectives.boards != NULL && turn < 2; turn++) {
        line *own = &board_of(f, f->head.rank)->lines[turn];
        if (memcmp((void *)own, (void *)kept_line(f, turn), sizeof(line)) == 0)
            continue;
        fy_log(f, "its line of the board was overwritten: it is written again");
        publish(own, kept_line(f, turn));
    }
}

__attribute__((cold)) int fy_collective_board_init(ferry *f)
{
    if (f->head.ops->heap.board == NULL || f->head.ops->heap.rouse == NULL)
        return 0;
    void **boards = fy_calloc(1, (size_t)f->head.ranks * sizeof(*boards) + 2 * sizeof(line));
    if (boards == NULL)
        return FERRY_ENOMEM;
    for (int rank = 0; rank < f->head.ranks; rank++) {
        char *whole = f->head.ops->heap.board(f->head.port, rank);
        if (whole == NULL) {
            free(boards);
            return 0;
        }
        boards[rank] = whole + FY_BOARD_CORE_OFFSET;
    }
    f->collectives.boards = boards;
    fy_rest_init(f);
    return 0;
}

/* How much each rank writes for a call with pieces of `size_bytes`. SIZE_MAX: it goes by frames. */
static size_t written_bytes(const ferry_collective *what, size_t size_bytes, int ranks)
{
    if (what->kind == FERRY_ALLREDUCE || what->kind == FERRY_ALLGATHER)
        return size_bytes;
    if (what->kind == FERRY_ALLTOALL || what->kind == FERRY_REDUCE_SCATTER)
        return what->in_counts == NULL ? size_bytes * (size_t)ranks : SIZE_MAX;
    return what->kind == FERRY_BARRIER ? 0 : SIZE_MAX;
}

bool fy_collective_board_fits(const ferry *f, const ferry_collective *what, size_t size_bytes)
{
    int ranks = f->collectives.group->size;
    return f->collectives.boards != NULL && ranks <= RANKS_MAX &&
           written_bytes(what, size_bytes, ranks) <= VALUE_BYTES;
}

static void wake_sleepers(ferry *f, const fy_collective *c)
{
    for (int i = 0; i < c->ranks; i++)
        /* seq_cst: after the fence that follows our line or our announcement; pairs with the store
         * in board_is_over */
        if (i != c->self && atomic_load(&board_of(f, fy_group_rank(c->group, i))->waiting))
            f->head.ops->heap.rouse(f->head.port, fy_group_rank(c->group, i));
}

void fy_collective_board_announce(ferry *f, const fy_collective *c)
{
    if (f->collectives.boards == NULL)
        return;
    announcement *a = &board_of(f, f->head.rank)->announced;
    /* relaxed, with the fence: a reader that sees a part of the new call sees no old number later
     */
    atomic_store_explicit(&a->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    write_call(a->call, &c->call);
    /* release: pairs with the first look of doubt */
    atomic_store_explicit(&a->number, c->number, memory_order_release);
    /* seq_cst: before the look at sleepers */
    atomic_thread_fence(memory_order_seq_cst);
    /* So many ranks never make a call by the board, and a look at each board would map a page of
     * it. */
    if (c->ranks <= RANKS_MAX)
        wake_sleepers(f, c);
}

/* A call for which this rank waits. */
typedef struct meeting {
    fy_lookout lookout; /* first: board_is_over is called with it */
    ferry *f;
    fy_collective *c;
    uint32_t turn;   /* 0 or 1: which line */
    int first, next; /* `next` places from `first` on have come, and perhaps more */
} meeting;

static inline int place_at(const meeting *m, int offset)
{
    int place = m->first + offset;
    return place < m->c->ranks ? place : place - m->c->ranks;
}

/* Whether the rank of a place has come to this call; ends the call when it has come to another. */
static inline bool has_come(const meeting *m, int offset)
{
    const fy_collective *c = m->c;
    int rank = fy_group_rank(c->group, place_at(m, offset));
    const line *other = &board_of(m->f, rank)->lines[m->turn];
    /* seq_cst: after the store to `waiting`; as acquire it pairs with the store in publish */
    if (atomic_load(&other->number) != c->number)
        return false;
    const fy_collective_call call = read_call(other->call);
    if (fy_collective_calls_equal(&call, &c->call))
        return true;
    /* seq_cst: as above */
    if (atomic_load(&other->number) == c->number)
        fy_collective_disagree(m->f, m->c, rank, &call);
    return false;
}

/* Looks at those that had not come yet; true when all have come. */
static bool all_have_come(meeting *m)
{
    const fy_collective *c = m->c;
    int next = m->next;
    while (next < c->ranks && has_come(m, next))
        next++;
    m->next = next;
    return next == c->ranks;
}

/* Whether only one rank has not come. */
static bool lacks_one(meeting *m)
{
    int next = m->next++;
    bool one = all_have_come(m);
    m->next = next;
    return one;
}

/* Finds out why `rank` does not come: it may have called something else. */
static void doubt(ferry *f, fy_collective *c, int rank)
{
    announcement *a = &board_of(f, rank)->announced;
    /* seq_cst: the number before and after the call, so that both are of one announcement; and
     * after the store to `waiting` */
    uint64_t number = atomic_load(&a->number);
    const fy_collective_call call = read_call(a->call);
    /* seq_cst: as above */
    if (number == c->number && atomic_load(&a->number) == number &&
        !fy_collective_calls_equal(&call, &c->call))
        fy_collective_disagree(f, c, rank, &call);
}

__attribute__((cold)) void fy_collective_board_doubt(ferry *f, fy_collective *c)
{
    bool announced = f->collectives.boards != NULL && c->group->id == 0;
    for (uint32_t i = 0; announced && i < c->post_count && c->error == 0; i++)
        if (c->posts[i].open && !c->posts[i].complete)
            doubt(f, c, c->posts[i].source);
}

/* Ends the call if a member that had not come yet has gone without coming. Also ends it if any
 * member has died, because a living member may not come for that reason. Others may still finish
 * this call, so the line stays: a rank that knows of a death writes no other line until there is
 * another group. */
static void look_for_gone(meeting *m)
{
    fy_collective *c = m->c;
    fy_collective_look_lost(m->f, c);
    for (int i = m->next; i < c->ranks && c->error == 0; i++) {
        int rank = fy_group_rank(c->group, place_at(m, i));
        if (fy_peer_is_gone(m->f, rank) && !has_come(m, i))
            fy_collective_lack(m->f, c, rank);
    }
}

/* Whether the wait is over: the port calls it. */
static bool board_is_over(fy_lookout *lookout, bool sleeps)
{
    meeting *m = (meeting *)(void *)lookout;
    _Atomic uint32_t *waiting = &board_of(m->f, m->f->head.rank)->waiting;
    if (sleeps)
        /* seq_cst: before the look; pairs with the load in wake_sleepers */
        atomic_store(waiting, 1);
    if (all_have_come(m) || m->c->error != 0)
        return true;
    if (sleeps)
        doubt(m->f, m->c, fy_group_rank(m->c->group, place_at(m, m->next)));
    return m->c->error != 0;
}

static void await_all(meeting *m)
{
    ferry *f = m->f;
    const bool crowded = f->info.crowded;
    fy_patience patience = {.lookout = &m->lookout};
    f->collectives.late = place_at(m, m->next);
    /* If ranks share processors, the others come only when this rank yields. But the last one may
     * run on another processor. */
    for (bool looks = !crowded || lacks_one(m), yields = crowded;; looks = !crowded) {
        for (int i = 0; i < LOOKS && looks; i++) {
            fy_relax(); /* looks without a pause slow down the writer of the line */
            looks = !all_have_come(m) && m->c->error == 0;
        }
        /* Before the look: a rank that has died may have come before. */
        bool lost = fy_loss_is_due(f);
        if (m->c->error != 0 || all_have_come(m))
            break;
        if (lost)
            look_for_gone(m);
        if (yields) {
            fy_progress_yield(f, &m->lookout);
            yields = false;
        } else if (!crowded && patience.rounds < ROUNDS) {
            patience.rounds = fy_progress(f, true) > 0 ? 0 : patience.rounds + 1;
        } else if (m->c->error == 0) {
            patience.rounds = UINT16_MAX; /* sleep at once */
            fy_progress_wait(f, FERRY_FOREVER, &patience);
        }
    }
    _Atomic uint32_t *waiting = &board_of(f, f->head.rank)->waiting;
    /* relaxed, both: if a rank sees the 1 late, it wakes this one once too often */
    if (atomic_load_explicit(waiting, memory_order_relaxed) != 0)
        atomic_store_explicit(waiting, 0, memory_order_relaxed);
}

/* Copies values, which are at most VALUE_BYTES; one word without a call. */
static inline void copy_values(void *to, const void *from, size_t size_bytes)
{
    if (size_bytes == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, size_bytes);
}

/* The expression of allreduce.c: pairs first, then runs of neighbours. `at` is where the ranks'
 * values are, and is overwritten. Returns where the result is. */
static const void *combine_all(const fy_collective *c, const void **at, int ranks,
                               unsigned char (*room)[VALUE_BYTES])
{
    fy_pairing pairs = fy_pairing_of(ranks);
    for (int i = 0; i < pairs.power; i++) {
        int low = i < pairs.rest ? 2 * i : i + pairs.rest;
        if (i < pairs.rest)
            fy_collective_combine(c, room[i], at[low], at[low + 1], c->size_bytes);
        at[i] = i < pairs.rest ? room[i] : at[low];
    }
    /* The old value in room[i] is combined already, into a lower result or into this one. */
    for (int count = pairs.power; count > 1; count /= 2) {
        for (int i = 0; i < count / 2; i++) {
            fy_collective_combine(c, room[i], at[2 * i], at[2 * i + 1], c->size_bytes);
            at[i] = room[i];
        }
    }
    return at[0];
}

/* Reads the values where they stand: their lines are written again only after this rank's next
 * call. Combines pieces as exchange.c does. */
static __attribute__((noinline)) void read_values(ferry *f, const fy_collective *c, uint32_t turn)
{
    _Alignas(16) unsigned char room[RANKS_MAX][VALUE_BYTES];
    const void *at[RANKS_MAX];
    ferry_collective_kind kind = c->what.kind;
    size_t size = c->size_bytes;
    size_t from = kind >= FERRY_ALLTOALL ? size * (size_t)c->self : 0; /* this rank's piece */
    unsigned char *out = c->what.out, *to = out;
    for (int i = 0; i < c->ranks; i++) {
        at[i] = board_of(f, fy_group_rank(c->group, i))->lines[turn % 2].value + from;
        if (kind == FERRY_REDUCE_SCATTER && i > 0)
            fy_collective_combine(c, out, out, at[i], size);
        else if (kind != FERRY_ALLREDUCE)
            to = (unsigned char *)memcpy(to, at[i], size) + size;
    }
    if (kind == FERRY_ALLREDUCE)
        copy_values(out, combine_all(c, at, c->ranks, room), size);
}

void fy_collective_board_run(ferry *f, fy_collective *c)
{
    if (c->error != 0)
        return;
    uint32_t turn = f->collectives.turn;
    line *kept = kept_line(f, turn);
    size_t bytes = written_bytes(&c->what, c->size_bytes, c->ranks);
    write_call(kept->call, &c->call);
    if (bytes > 0)
        copy_values(kept->value, c->what.in, bytes);
    kept->number = c->number;
    publish(&board_of(f, f->head.rank)->lines[turn % 2], kept);
    meeting m = {.lookout = {board_is_over}, .f = f, .c = c, .turn = turn % 2};
    m.first = f->collectives.late < c->ranks ? f->collectives.late : 0;
    if (all_have_come(&m))
        wake_sleepers(f, c);
    else
        await_all(&m);
    if (c->error != 0)
        return;
    /* Only a call that all ranks have completed counts as a turn, so all agree which line is next.
     */
    f->collectives.turn++;
    if (bytes == 0)
        return;
    fy_nowait_begin(f);
    read_values(f, c, turn);
    fy_nowait_end(f);
}
