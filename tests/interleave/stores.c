#include "stores.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/random.h"

enum { STREAM = 77, STORES_MAX = 8, DRAIN_ODDS = 4, HOLDS_ODDS = 6, PLAIN_MOST = 16 };

/* An actor is stopped at one of so many steps; the seed draws which. */
static const uint64_t odds[] = {3, 12, 60, 400, 3000};

typedef struct store {
    volatile void *at;
    uint64_t value;
    size_t size_bytes;
    bool release; /* it comes after all that are older */
    bool fenced;  /* a fence stands before it */
} store;

/* The stores of an actor that nobody else has seen. */
typedef struct buffer {
    store stores[STORES_MAX];
    int count;
    bool fence; /* since the last store */
} buffer;

static buffer *buffers;
static int buffer_count;
static fy_random random_state;
static uint64_t stop_odds;
static uint64_t plain_left; /* plain accesses until the next step; 0: they are none */

void stores_open(int actors, uint64_t seed)
{
    buffers = calloc((size_t)actors, sizeof(*buffers));
    if (buffers == NULL)
        abort();
    buffer_count = actors;
    fy_random_init(&random_state, seed, STREAM);
    stop_odds = odds[stores_draw(sizeof(odds) / sizeof(odds[0]))];
}

void stores_close(void)
{
    plain_left = 0;
    free(buffers);
    buffers = NULL;
    buffer_count = 0;
}

uint64_t stores_draw(uint64_t bound)
{
    return fy_random_below(&random_state, bound);
}

bool stores_draw_stop(int actor)
{
    bool often = buffers[actor].count > 0 && stop_odds > HOLDS_ODDS;
    return stores_draw(often ? HOLDS_ODDS : stop_odds) == 0;
}

static void write_now(volatile void *at, uint64_t value, size_t size_bytes)
{
    if (size_bytes == 8)
        __atomic_store_n((volatile uint64_t *)at, value, __ATOMIC_SEQ_CST);
    else if (size_bytes == 4)
        __atomic_store_n((volatile uint32_t *)at, (uint32_t)value, __ATOMIC_SEQ_CST);
    else if (size_bytes == 2)
        __atomic_store_n((volatile uint16_t *)at, (uint16_t)value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((volatile uint8_t *)at, (uint8_t)value, __ATOMIC_SEQ_CST);
}

/* Whether store `i` may be seen before those that are older. */
static bool may_pass(const buffer *b, int i)
{
    if (i > 0 && (b->stores[i].release || b->stores[i].fenced))
        return false;
    for (int older = 0; older < i; older++)
        if (b->stores[older].at == b->stores[i].at || (older > 0 && b->stores[older].fenced))
            return false;
    return true;
}

static void let_out(buffer *b, int i)
{
    write_now(b->stores[i].at, b->stores[i].value, b->stores[i].size_bytes);
    b->count--;
    for (; i < b->count; i++)
        b->stores[i] = b->stores[i + 1];
}

void stores_let_out(int actor)
{
    buffer *b = &buffers[actor];
    while (b->count > 0)
        let_out(b, 0);
    b->fence = false;
}

void stores_let_all_out(void)
{
    for (int i = 0; i < buffer_count; i++)
        stores_let_out(i);
}

void stores_stop_plain(void)
{
    plain_left = PLAIN_MOST;
}

/* A plain access to memory. */
static void touch(void)
{
    if (plain_left == 0 || --plain_left != 0)
        return;
    plain_left = 1 + stores_draw(PLAIN_MOST);
    int actor = interleave_actor();
    if (actor >= 0)
        interleave_step(actor);
}

/* Between two operations: lets a store out, and may stop the actor. Returns the actor, or -1. */
static int step(void)
{
    int actor = interleave_actor();
    if (actor < 0)
        return -1;
    buffer *any = &buffers[stores_draw((uint64_t)buffer_count)];
    int i = any->count == 0 ? 0 : (int)stores_draw((uint64_t)any->count);
    if (any->count > 0 && stores_draw(DRAIN_ODDS) == 0 && may_pass(any, i))
        let_out(any, i);
    interleave_step(actor);
    return actor;
}

static void put(volatile void *at, uint64_t value, size_t size_bytes, int order)
{
    int actor = step();
    if (actor < 0 || !interleave_shares(at)) {
        write_now(at, value, size_bytes);
        return;
    }
    buffer *b = &buffers[actor];
    if (b->count == STORES_MAX)
        let_out(b, 0);
    b->stores[b->count++] = (store){.at = at,
                                    .value = value,
                                    .size_bytes = size_bytes,
                                    .release = order != __ATOMIC_RELAXED,
                                    .fenced = b->fence};
    b->fence = false;
    if (order == __ATOMIC_SEQ_CST)
        stores_let_out(actor);
    (void)step();
}

/* The actor's own store that nobody else has seen; NULL: there is none. */
static const store *find(const volatile void *at)
{
    int actor = interleave_actor();
    const buffer *b = actor < 0 ? NULL : &buffers[actor];
    for (int i = b == NULL ? 0 : b->count; i > 0; i--)
        if (b->stores[i - 1].at == at)
            return &b->stores[i - 1];
    return NULL;
}

/* Before an operation that changes what it reads: it reads what all see. */
static void change(void)
{
    int actor = step();
    if (actor >= 0)
        stores_let_out(actor);
}

/* The compiler calls these for operations on so many bits. */
#define CHANGE(BITS, NAME, BUILTIN)                                                                \
    word##BITS __tsan_atomic##BITS##_##NAME(volatile word##BITS *at, word##BITS value, int order); \
    word##BITS __tsan_atomic##BITS##_##NAME(volatile word##BITS *at, word##BITS value, int order)  \
    {                                                                                              \
        (void)order;                                                                               \
        change();                                                                                  \
        return BUILTIN(at, value, __ATOMIC_SEQ_CST);                                               \
    }
#define COMPARE(BITS, NAME)                                                                        \
    int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile word##BITS *at, word##BITS *old,    \
                                                      word##BITS value, int order, int failed);    \
    int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile word##BITS *at, word##BITS *old,    \
                                                      word##BITS value, int order, int failed)     \
    {                                                                                              \
        (void)order, (void)failed;                                                                 \
        change();                                                                                  \
        return __atomic_compare_exchange_n(at, old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }
#define ATOMICS(BITS)                                                                              \
    typedef uint##BITS##_t word##BITS;                                                             \
    word##BITS __tsan_atomic##BITS##_load(const volatile word##BITS *at, int order);               \
    word##BITS __tsan_atomic##BITS##_load(const volatile word##BITS *at, int order)                \
    {                                                                                              \
        (void)order;                                                                               \
        step();                                                                                    \
        const store *own = find(at);                                                               \
        return own != NULL ? (word##BITS)own->value : __atomic_load_n(at, __ATOMIC_SEQ_CST);       \
    }                                                                                              \
    void __tsan_atomic##BITS##_store(volatile word##BITS *at, word##BITS value, int order);        \
    void __tsan_atomic##BITS##_store(volatile word##BITS *at, word##BITS value, int order)         \
    {                                                                                              \
        put(at, value, BITS / 8, order);                                                           \
    }                                                                                              \
    CHANGE(BITS, exchange, __atomic_exchange_n)                                                    \
    CHANGE(BITS, fetch_add, __atomic_fetch_add)                                                    \
    CHANGE(BITS, fetch_sub, __atomic_fetch_sub)                                                    \
    CHANGE(BITS, fetch_and, __atomic_fetch_and)                                                    \
    CHANGE(BITS, fetch_or, __atomic_fetch_or)                                                      \
    CHANGE(BITS, fetch_xor, __atomic_fetch_xor)                                                    \
    COMPARE(BITS, strong)                                                                          \
    COMPARE(BITS, weak)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    int actor = step();
    if (actor < 0)
        return;
    if (order == __ATOMIC_SEQ_CST)
        stores_let_out(actor);
    else
        buffers[actor].fence = buffers[actor].count > 0;
    (void)step();
}

/* It is for the compiler alone. */
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

#define TOUCH(NAME)                                                                                \
    void __tsan_##NAME(void *at);                                                                  \
    void __tsan_##NAME(void *at)                                                                   \
    {                                                                                              \
        (void)at;                                                                                  \
        touch();                                                                                   \
    }
TOUCH(read1)
TOUCH(read2)
TOUCH(read4)
TOUCH(read8)
TOUCH(read16)
TOUCH(write1)
TOUCH(write2)
TOUCH(write4)
TOUCH(write8)
TOUCH(write16)
TOUCH(unaligned_read2)
TOUCH(unaligned_read4)
TOUCH(unaligned_read8)
TOUCH(unaligned_read16)
TOUCH(unaligned_write2)
TOUCH(unaligned_write4)
TOUCH(unaligned_write8)
TOUCH(unaligned_write16)

void __tsan_read_range(void *at, size_t size_bytes);
void __tsan_read_range(void *at, size_t size_bytes)
{
    (void)at, (void)size_bytes;
    touch();
}

void __tsan_write_range(void *at, size_t size_bytes);
void __tsan_write_range(void *at, size_t size_bytes)
{
    (void)at, (void)size_bytes;
    touch();
}

/* Nothing happens where functions begin and end. */
#define NOTHING(NAME)                                                                              \
    void __tsan_##NAME(void *at);                                                                  \
    void __tsan_##NAME(void *at)                                                                   \
    {                                                                                              \
        (void)at;                                                                                  \
    }
NOTHING(acquire)
NOTHING(release)
NOTHING(func_entry)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
