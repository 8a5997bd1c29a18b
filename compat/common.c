#include "common.h"

#include <ferry/member.h>

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fy_compat_state fy_compat;

enum { TEXT_BYTES = 512, TURNS_PER_YIELD = 32 };

void fy_compat_fail(const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (fy_compat.f != NULL)
        ferry_abort(fy_compat.f, 1, text);
    fprintf(stderr, "ferry: %s\n", text);
    exit(1);
}

void fy_compat_check(const char *call, int error)
{
    if (error != 0)
        fy_compat_fail("%s: %s", call, ferry_error_message(fy_compat.f));
}

void *fy_compat_need(const char *call, void *memory)
{
    if (memory == NULL)
        fy_compat_fail("%s: no memory", call);
    return memory;
}

typedef struct fy_compat_lock {
    struct fy_compat_lock *next;
    const void *at;
    int rank;
} fy_compat_lock;

void fy_compat_want(const char *call, const void *lock, int rank)
{
    const fy_compat_lock *held = fy_compat.held;
    while (held != NULL && (held->at != lock || held->rank != rank))
        held = held->next;
    if (held != NULL)
        fy_compat_fail("%s: process %d holds the lock at %p of process %d already", call,
                       fy_compat.me, lock, rank);
}

const void *fy_compat_held(int *rank)
{
    if (fy_compat.held == NULL)
        return NULL;
    *rank = fy_compat.held->rank;
    return fy_compat.held->at;
}

void fy_compat_hold(const char *call, const void *lock, int rank)
{
    fy_compat_lock *held = fy_compat_need(call, malloc(sizeof(*held)));
    *held = (fy_compat_lock){fy_compat.held, lock, rank};
    fy_compat.held = held;
}

void fy_compat_release(const char *call, const void *lock, int rank)
{
    fy_compat_lock **link = &fy_compat.held;
    while (*link != NULL && ((*link)->at != lock || (*link)->rank != rank))
        link = &(*link)->next;
    fy_compat_lock *held = *link;
    if (held == NULL)
        fy_compat_fail("%s: process %d does not hold the lock at %p of process %d", call,
                       fy_compat.me, lock, rank);
    *link = held->next;
    free(held);
}

void fy_compat_turn(unsigned *turns)
{
    int handled = ferry_poll(fy_compat.f);
    if (handled < 0)
        fy_compat_check("ferry_poll", handled);
    if (++*turns % TURNS_PER_YIELD == 0)
        sched_yield();
}

/* Sets `mapped` by trying a get from each rank. In a handler a get without a track succeeds only if
 * its source is mapped in this process. words[0] is the address of a list by rank: for each, the
 * address of a word in its heap. */
static void probe(ferry *f, int source, const ferry_message *message)
{
    void *const *words = (void *const *)(uintptr_t)message->words[0];
    (void)source;
    for (int rank = 0; rank < fy_compat.count; rank++) {
        uint64_t word;
        fy_compat.mapped[rank] =
            rank == fy_compat.me || ferry_get(f, rank, &word, words[rank], sizeof(word), NULL) == 0;
    }
}

/* Finds the ranks whose heap is mapped in this process. */
static void find_mapped(const char *call)
{
    ferry *f = fy_compat.f;
    ferry_handler handler;
    void *own;
    fy_compat.mapped = fy_compat_need(call, calloc((size_t)fy_compat.count, sizeof(bool)));
    void **words = fy_compat_need(call, calloc((size_t)fy_compat.count, sizeof(*words)));
    fy_compat_check(call, ferry_alloc(f, sizeof(uint64_t), &own));
    memset(own, 0, sizeof(uint64_t));
    fy_compat_check(call, ferry_allgather(f, &own, sizeof(own), words));
    fy_compat_check(call, ferry_handler_register(f, "compat probe", probe, &handler));
    ferry_op op = {0};
    const ferry_message message = {
        .handler = handler, .word_count = 1, .words = {(uintptr_t)words}};
    const ferry_track track = {.size = sizeof(track), .op = &op};
    fy_compat_check(call, ferry_request_send(f, fy_compat.me, &message, &track));
    fy_compat_check(call, ferry_op_wait(f, &op));
    int all = 0, whole = 1;
    for (int rank = 0; rank < fy_compat.count; rank++)
        whole = whole && fy_compat.mapped[rank];
    fy_compat_check(call, ferry_allreduce(f, FERRY_INT32, FERRY_MIN, &whole, &all, 1));
    fy_compat.all_mapped = all != 0;
    fy_compat_check(call, ferry_free(f, own));
    free((void *)words);
}

/* Atomic operations. A word that is mapped in this process is changed by the compiler's atomics, as
 * Ferry does it. ferry_atomic_update would take 48 ns in place of 26 (two processes add to one
 * word, bench/shmem.c). Another word of 8 bytes is changed by ferry_atomic_update. Ferry has no
 * words of 4 bytes, so for those a request runs change_half on the rank of the word. */

static uint64_t update_here(ferry_atomic_verb verb, uint64_t *word, uint64_t operand,
                            uint64_t expected)
{
    switch (verb) {
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
    case FERRY_COMPARE_SWAP:
        __atomic_compare_exchange_n(word, &expected, operand, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return expected;
    }
    return 0;
}

/* The new value of a word that is `old`. */
static uint32_t changed(ferry_atomic_verb verb, uint32_t old, uint32_t operand, uint32_t expected)
{
    switch (verb) {
    case FERRY_FETCH_ADD:
        return old + operand;
    case FERRY_FETCH_AND:
        return old & operand;
    case FERRY_FETCH_OR:
        return old | operand;
    case FERRY_FETCH_XOR:
        return old ^ operand;
    case FERRY_SWAP:
        return operand;
    case FERRY_COMPARE_SWAP:
        return old == expected ? operand : old;
    }
    return old;
}

static uint32_t update_half_here(ferry_atomic_verb verb, uint32_t *word, uint32_t operand,
                                 uint32_t expected)
{
    uint32_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (verb == FERRY_FETCH_ADD)
        return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &old, changed(verb, old, operand, expected), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return old;
}

static const char *caller(void)
{
    return fy_compat.call != NULL ? fy_compat.call : "atomic operation";
}

static uint64_t update_there(const ferry_atomic *what, int pe)
{
    uint64_t old = 0;
    fy_compat_check(caller(), ferry_atomic_update(fy_compat.f, pe, what, &old, NULL));
    return old;
}

/* Runs on the rank of the word. Words: its address, verb, operand, expected value. The word must be
 * memory that others may reach: a get of it says so. The answer has a second word if it is not. */
static void change_half(ferry *f, int source, const ferry_message *message)
{
    uint32_t *word = (uint32_t *)(uintptr_t)message->words[0], old = 0;
    bool open = ferry_get(f, fy_compat.me, &old, word, sizeof(old), NULL) == 0;
    if (open)
        old = update_half_here((ferry_atomic_verb)message->words[1], word,
                               (uint32_t)message->words[2], (uint32_t)message->words[3]);
    const ferry_message answer = {
        .handler = fy_compat.take_half, .word_count = open ? 1 : 2, .words = {old}};
    fy_compat_check("atomic operation", ferry_request_send(f, source, &answer, NULL));
}

static void take_half(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    fy_compat.half = (uint32_t)message->words[0];
    fy_compat.half_is_none = message->word_count == 2;
    fy_compat.half_has_come = true;
}

/* Changes `remote`, a word of 4 bytes in memory of `pe`, by a request. */
static uint32_t update_half_there(ferry_atomic_verb verb, const char *remote, uint32_t operand,
                                  uint32_t expected, int pe)
{
    unsigned turns = 0;
    const ferry_message message = {.handler = fy_compat.change_half,
                                   .word_count = 4,
                                   .words = {(uintptr_t)remote, verb, operand, expected}};
    fy_compat.half_has_come = false;
    fy_compat_check(caller(), ferry_request_send(fy_compat.f, pe, &message, NULL));
    while (!fy_compat.half_has_come)
        fy_compat_turn(&turns);
    if (fy_compat.half_is_none)
        fy_compat_fail(
            "atomic operation: 4 bytes at %p on rank %d are outside every allocation and "
            "registered region there",
            (const void *)remote, pe);
    return fy_compat.half;
}

uint64_t fy_compat_update(const ferry_atomic *what, size_t bytes, int rank, bool mapped)
{
    if (bytes == sizeof(uint32_t)) {
        char *word = (char *)what->target;
        uint32_t operand = (uint32_t)what->operand, old = (uint32_t)what->expected;
        return mapped ? update_half_here(what->verb, (uint32_t *)(void *)word, operand, old)
                      : update_half_there(what->verb, word, operand, old, rank);
    }
    return mapped ? update_here(what->verb, what->target, what->operand, what->expected)
                  : update_there(what, rank);
}

void fy_compat_open(const char *call, size_t heap_bytes)
{
    ferry_options options = FERRY_OPTIONS_DEFAULTS;
    options.heap_bytes = heap_bytes;
    if (ferry_open(&options, &fy_compat.f) != 0)
        fy_compat_fail("%s: %s", call, ferry_error_message(NULL));
    fy_compat.me = ferry_rank(fy_compat.f);
    fy_compat.count = ferry_member_count(fy_compat.f);
    if (fy_compat.count == 0)
        fy_compat_fail("%s: rank %d joins a job that runs; expected a process that was begun with "
                       "it (ferry run -n)",
                       call, fy_compat.me);
    find_mapped(call);
    fy_compat_check(call, ferry_handler_register(fy_compat.f, "compat atomic", change_half,
                                                 &fy_compat.change_half));
    fy_compat_check(call, ferry_handler_register(fy_compat.f, "compat answer", take_half,
                                                 &fy_compat.take_half));
}

void fy_compat_close(const char *call)
{
    int error = ferry_close(fy_compat.f);
    fy_compat.f = NULL;
    if (error != 0)
        fy_compat_fail("%s: %s", call, ferry_strerror(error));
    free(fy_compat.mapped);
    while (fy_compat.held != NULL)
        fy_compat_release(call, fy_compat.held->at, fy_compat.held->rank);
    memset(&fy_compat, 0, sizeof(fy_compat));
}
