/* Calls that another rank answers with one word: atomic changes of its memory, remote allocation
 * and freeing. A word in the shared heap of the node is changed by the caller itself. A request
 * names the slot of the call that waits for its answer. */
#include <stdlib.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "core/work.h"
#include "memory/state.h"

/* A frame's handler field: a ferry_atomic_verb, or one of these. Words of a request: address or
 * size, operand, expected value, index of the slot. Words of an answer: index of the slot, the
 * word, an error or 0. `aux` of both is the generation of the slot. */
enum { WORD_ALLOC = 16, WORD_FREE, WORD_ANSWER, QUERY_WORDS = 4, ANSWER_WORDS = 3 };

#define NOBODY UINT32_MAX /* instead of a slot's index: no call waits for the answer */

/* A request to `rank`, for the call `name`. */
typedef struct query {
    const char *name;
    int rank;
    uint16_t verb;
    uint64_t words[3];
} query;

static int word_ask(ferry *f, const query *q, uint64_t *out, const ferry_track *track)
{
    fy_call_slots *w = &fy_memory_of(f)->words;
    uint32_t op = 0, index = NOBODY;
    fy_frame frame;
    fy_frame_begin(&frame, FY_KIND_WORD, q->verb, QUERY_WORDS);
    fy_words_copy(frame.words, q->words, 3);
    frame.words[3] = NOBODY;
    if (track != NULL) {
        const void *there = q->verb == WORD_ALLOC ? NULL : (void *)(uintptr_t)q->words[0];
        const fy_op_about about = fy_memory_about(out, there);
        int error = fy_memory_start(f, q->rank, &about, sizeof(uint64_t), track, &op);
        if (error != 0)
            return error;
        fy_word_wait *wait = fy_call_slot_take(w, q->rank, op);
        if (wait == NULL) {
            fy_op_drop(f, op);
            return fy_fail(f, FERRY_ENOMEM, "%s: no memory to wait for the answer", q->name);
        }
        wait->out = out;
        index = wait->slot.index;
        frame.aux = wait->slot.generation;
        frame.words[3] = index;
    }
    (void)fy_op_hold(f, op, true);
    int error = fy_send_paced(f, q->rank, &frame, q->name);
    (void)fy_op_hold(f, op, false);
    if (error == 0 && index == NOBODY) {
        fy_work_goes(f, q->rank);
    } else if (error != 0 && index != NOBODY) {
        fy_call_slot_give(w, index);
        fy_op_drop(f, op);
    }
    return error;
}

static int ask_and_wait(ferry *f, const query *q, uint64_t *out)
{
    ferry_op op;
    const ferry_track track = {.size = sizeof(track), .op = &op};
    int error = fy_memory_check_wait(f, q->name, q->rank);
    if (error == 0)
        error = word_ask(f, q, out, &track);
    return error == 0 ? ferry_op_wait(f, &op) : error;
}

static uint64_t change(uint64_t *word, uint16_t verb, uint64_t operand, uint64_t expected)
{
    switch (verb) {
    /* seq_cst: the promise of ferry_atomic_update */
    case FERRY_FETCH_ADD:
        return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_FETCH_AND:
        return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_FETCH_OR:
        return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_FETCH_XOR:
        return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);
    case FERRY_SWAP:
        return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);
    default: /* either way `expected` is then the old value; seq_cst as above */
        __atomic_compare_exchange_n(word, &expected, operand, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return expected;
    }
}

static int check_atomic(ferry *f, int rank, const ferry_atomic *what)
{
    static const char name[] = "atomic_update";
    if (what == NULL || (unsigned)what->verb > FERRY_COMPARE_SWAP)
        return fy_fail(f, FERRY_EINVAL,
                       what == NULL ? "%s: no change given"
                                    : "%s: verb %d is unknown; expected 0..%d",
                       name, what == NULL ? 0 : (int)what->verb, FERRY_COMPARE_SWAP);
    if ((uintptr_t)what->target % sizeof(uint64_t) != 0)
        return fy_fail(f, FERRY_EINVAL, "%s: %p is not 8-byte aligned", name, (void *)what->target);
    return fy_memory_check(f, name, rank, what->target, what, sizeof(uint64_t));
}

int ferry_atomic_update(ferry *f, int rank, const ferry_atomic *what, uint64_t *old,
                        const ferry_track *track)
{
    int error = check_atomic(f, rank, what);
    if (error != 0)
        return error;
    const fy_op_about about = fy_memory_about(old, what->target);
    bool here = rank == ferry_rank(f);
    if (here ? fy_memory_is_open(f, what->target, sizeof(uint64_t))
             : fy_memory_is_direct(f, rank, what->target, sizeof(uint64_t))) {
        error = fy_memory_done(f, rank, &about, sizeof(uint64_t), track);
        if (error != 0)
            return error;
        uint64_t before = change(what->target, (uint16_t)what->verb, what->operand, what->expected);
        if (old != NULL)
            *old = before;
        return 0;
    }
    if (here)
        return fy_memory_refused(f, "atomic_update", rank, (uintptr_t)what->target,
                                 sizeof(uint64_t));
    const query q = {.name = "atomic_update",
                     .rank = rank,
                     .verb = (uint16_t)what->verb,
                     .words = {(uintptr_t)what->target, what->operand, what->expected}};
    if (track == NULL && old != NULL)
        return ask_and_wait(f, &q, old);
    return word_ask(f, &q, old, track);
}

_Static_assert(sizeof(void *) == sizeof(uint64_t), "an address is an answer");

int ferry_remote_alloc(ferry *f, int rank, size_t size_bytes, void **out, const ferry_track *track)
{
    static const char name[] = "remote_alloc";
    if (out == NULL || size_bytes == 0)
        return fy_fail(f, FERRY_EINVAL, "%s: %s", name,
                       out == NULL ? "the result is missing" : "0 bytes; expected at least 1");
    int error = fy_memory_check(f, name, rank, NULL, out, 0);
    if (error != 0)
        return error;
    if (rank == ferry_rank(f)) {
        const fy_op_about about = fy_memory_about(out, NULL);
        error = ferry_alloc(f, size_bytes, out);
        return error == 0 ? fy_memory_done(f, rank, &about, size_bytes, track) : error;
    }
    const query q = {.name = name, .rank = rank, .verb = WORD_ALLOC, .words = {size_bytes}};
    uint64_t *word = (uint64_t *)(void *)out;
    return track == NULL ? ask_and_wait(f, &q, word) : word_ask(f, &q, word, track);
}

int ferry_remote_free(ferry *f, int rank, void *address, const ferry_track *track)
{
    int error = fy_memory_check(f, "remote_free", rank, NULL, f, 0);
    if (error != 0)
        return error;
    if (rank == ferry_rank(f) || fy_memory_is_direct(f, rank, address, 1)) {
        const fy_op_about about = fy_memory_about(NULL, address);
        error = ferry_free(f, address);
        return error == 0 ? fy_memory_done(f, rank, &about, 0, track) : error;
    }
    const query q = {
        .name = "remote_free", .rank = rank, .verb = WORD_FREE, .words = {(uintptr_t)address}};
    return word_ask(f, &q, NULL, track);
}

/* Carries out a request and sets the word to answer. */
static int answer_to(ferry *f, const fy_frame *frame, uint64_t *word)
{
    uint64_t *address = (uint64_t *)(uintptr_t)frame->words[0];
    if (frame->handler == WORD_ALLOC) {
        void *block;
        int error = ferry_alloc(f, (size_t)frame->words[0], &block);
        *word = error == 0 ? (uintptr_t)block : 0;
        return error;
    }
    if (frame->handler == WORD_FREE)
        return ferry_free(f, address);
    if (frame->handler > FERRY_COMPARE_SWAP || (uintptr_t)address % sizeof(uint64_t) != 0)
        return FERRY_EINVAL;
    if (!fy_memory_is_open(f, address, sizeof(uint64_t)))
        return fy_memory_refused(f, "atomic_update", ferry_rank(f), frame->words[0],
                                 sizeof(uint64_t));
    *word = change(address, frame->handler, frame->words[1], frame->words[2]);
    return 0;
}

static fy_verdict take_query(ferry *f, int source, const fy_frame *frame)
{
    /* Memory for the answer comes first: a frame that is left is delivered again, and the change
     * must not be made twice. */
    bool answers = frame->words[3] != NOBODY;
    if (answers ? !fy_op_end_reserve(f) : fy_work_comes(f, source) != 0)
        return FY_LEAVE;
    fy_frame answer = {.kind = FY_KIND_WORD,
                       .word_count = ANSWER_WORDS,
                       .handler = WORD_ANSWER,
                       .aux = frame->aux,
                       .words = {frame->words[3]}};
    int error = answer_to(f, frame, &answer.words[1]);
    answer.words[2] = (uint64_t)(int64_t)error;
    if (answers)
        fy_op_tell(f, source, &answer);
    else if (error != 0)
        fy_memory_log(f);
    return FY_TAKEN;
}

static void take_answer(ferry *f, int source, const fy_frame *frame)
{
    fy_call_slots *w = &fy_memory_of(f)->words;
    const fy_word_wait *wait = fy_call_slot_find(w, source, frame->words[0], frame->aux);
    if (frame->word_count != ANSWER_WORDS || wait == NULL) {
        fy_bad_frame(f, source, frame, "an answer to no request");
        return;
    }
    int64_t error = (int64_t)frame->words[2];
    uint32_t op = wait->slot.op;
    if (error == 0 && wait->out != NULL && fy_op_is_pending(f, op))
        *wait->out = frame->words[1];
    fy_call_slot_give(w, wait->slot.index);
    fy_op_end(f, op, error > 0 || error < INT16_MIN ? FERRY_EINVAL : (int)error);
}

fy_verdict fy_word_deliver(ferry *f, int source, const fy_frame *frame)
{
    if (frame->handler == WORD_ANSWER) {
        take_answer(f, source, frame);
        return FY_TAKEN;
    }
    if (frame->word_count != QUERY_WORDS) {
        fy_bad_frame(f, source, frame, "a request for a word");
        return FY_TAKEN;
    }
    return take_query(f, source, frame);
}
