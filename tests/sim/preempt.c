/* Goal: what ranks tell each other by their boards holds wherever a rank is stopped, and however
 * late its stores are seen. Method: the files that use boards are compiled for ThreadSanitizer,
 * whose library this file stands in for. So it is called at every atomic operation. There the seed
 * stops the rank for a moment, or for long, and the others go on. A store to a board is held back
 * until a fence, a call of the port or the seed lets it out. A relaxed store may come out before
 * earlier ones. Programs that are linked with this are run by `ferry swarm --net memory`. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/random.h"
#include "port/sim/world.h"

enum { STREAM = 77, STORES_MAX = 8, DRAIN_ODDS = 4 };
enum { SHORT_NS = 300, LONG_NS = 3000000, LONG_ODDS = 4 };

/* How often a rank is stopped, of so many operations one; the seed draws one of them. */
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

static fy_world *world;
static buffer *buffers;
static fy_random random_state;
static uint64_t stop_odds;
static bool crowded;
static fy_port_ops real;
static fy_port_main *real_main;
static void *real_arg;

static uint64_t draw(uint64_t below)
{
    return fy_random_below(&random_state, below);
}

static buffer *buffer_of(const fy_actor *actor)
{
    return &buffers[actor->rank->rank * FY_THREADS + (int)actor->thread];
}

/* The actor whose program runs; NULL: the simulator itself does. */
static fy_actor *running(void)
{
    fy_actor *actor = world == NULL ? NULL : world->running;
    return actor == NULL || actor->inside || world->ended ? NULL : actor;
}

static bool is_on_board(const volatile void *at)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)world->boards;
    return offset < (size_t)world->rank_count * FY_BOARD_BYTES;
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

static void let_all_out(buffer *b)
{
    while (b->count > 0)
        let_out(b, 0);
    b->fence = false;
}

/* Between two operations: lets a store out, or stops the rank. */
static void step(void)
{
    fy_actor *actor = running();
    if (actor == NULL)
        return;
    buffer *any = &buffers[draw((uint64_t)world->rank_count * FY_THREADS)];
    int i = any->count == 0 ? 0 : (int)draw((uint64_t)any->count);
    if (any->count > 0 && draw(DRAIN_ODDS) == 0 && may_pass(any, i))
        let_out(any, i);
    if (draw(stop_odds) != 0)
        return;
    bool is_long = draw(LONG_ODDS) == 0;
    if (is_long) /* another thread has its processor */
        let_all_out(buffer_of(actor));
    actor->inside = true;
    fy_actor_preempt(actor, 1 + draw(is_long ? LONG_NS : SHORT_NS));
    actor->inside = false;
}

static void put(volatile void *at, uint64_t value, size_t size_bytes, int order)
{
    step();
    const fy_actor *actor = running();
    buffer *b = actor == NULL || !is_on_board(at) ? NULL : buffer_of(actor);
    if (b == NULL) {
        write_now(at, value, size_bytes);
        return;
    }
    if (b->count == STORES_MAX)
        let_out(b, 0);
    b->stores[b->count++] = (store){.at = at,
                                    .value = value,
                                    .size_bytes = size_bytes,
                                    .release = order != __ATOMIC_RELAXED,
                                    .fenced = b->fence};
    b->fence = false;
    if (order == __ATOMIC_SEQ_CST)
        let_all_out(b);
    step();
}

/* The actor's own store that nobody else has seen; NULL: there is none. */
static const store *find(const volatile void *at)
{
    const fy_actor *actor = running();
    const buffer *b = actor == NULL ? NULL : buffer_of(actor);
    for (int i = b == NULL ? 0 : b->count; i > 0; i--)
        if (b->stores[i - 1].at == at)
            return &b->stores[i - 1];
    return NULL;
}

/* Before an operation that changes what it reads: it reads what all see. */
static void change(void)
{
    step();
    const fy_actor *actor = running();
    if (actor != NULL)
        let_all_out(buffer_of(actor));
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
    COMPARE(BITS, strong)                                                                          \
    COMPARE(BITS, weak)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    step();
    const fy_actor *actor = running();
    if (actor == NULL)
        return;
    if (order == __ATOMIC_SEQ_CST)
        let_all_out(buffer_of(actor));
    else
        buffer_of(actor)->fence = buffer_of(actor)->count > 0;
    step();
}

/* Nothing happens at plain accesses, nor where functions begin and end. */
#define NOTHING(NAME)                                                                              \
    void __tsan_##NAME(void *at);                                                                  \
    void __tsan_##NAME(void *at)                                                                   \
    {                                                                                              \
        (void)at;                                                                                  \
    }
NOTHING(func_entry)
NOTHING(read1)
NOTHING(read2)
NOTHING(read4)
NOTHING(read8)
NOTHING(read16)
NOTHING(write1)
NOTHING(write2)
NOTHING(write4)
NOTHING(write8)
NOTHING(write16)
NOTHING(unaligned_read2)
NOTHING(unaligned_read4)
NOTHING(unaligned_read8)
NOTHING(unaligned_read16)
NOTHING(unaligned_write2)
NOTHING(unaligned_write4)
NOTHING(unaligned_write8)
NOTHING(unaligned_write16)

void __tsan_read_range(void *at, size_t size_bytes);
void __tsan_read_range(void *at, size_t size_bytes)
{
    (void)at, (void)size_bytes;
}

void __tsan_write_range(void *at, size_t size_bytes);
void __tsan_write_range(void *at, size_t size_bytes)
{
    (void)at, (void)size_bytes;
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* Calls of the port are seen after what was stored before them. */
static void let_own_out(void)
{
    const fy_actor *actor = running();
    if (actor != NULL)
        let_all_out(buffer_of(actor));
}

static int send_seen(fy_port *port, fy_thread thread, fy_lane lane, int rank, const fy_frame *frame)
{
    let_own_out();
    return real.transport.send(port, thread, lane, rank, frame);
}

static int send_block_seen(fy_port *port, fy_thread thread, fy_lane lane, int rank,
                           const fy_frame *frame)
{
    let_own_out();
    return real.heap.send_block(port, thread, lane, rank, frame);
}

/* Ranks that do not share processors look for a while before they sleep. */
static void query_either(const fy_port *port, fy_port_info *info)
{
    real.transport.query(port, info);
    info->crowded = crowded;
}

static void wait_seen(fy_port *port, fy_thread thread, uint64_t deadline_ns)
{
    let_own_out();
    real.transport.wait(port, thread, deadline_ns);
}

static void rouse_seen(fy_port *port, int rank)
{
    let_own_out();
    real.heap.rouse(port, rank);
}

static void advance_seen(fy_port *port, uint64_t ns)
{
    let_own_out();
    real.host.advance(port, ns);
}

static void close_seen(fy_port *port)
{
    let_own_out();
    real.transport.close(port);
}

static void begin(fy_world *new_world)
{
    world = new_world;
    buffers = calloc((size_t)world->rank_count * FY_THREADS, sizeof(*buffers));
    if (buffers == NULL)
        abort();
    fy_random_init(&random_state, world->options.seed, STREAM);
    stop_odds = odds[draw(sizeof(odds) / sizeof(odds[0]))];
    crowded = draw(2) == 0;
    real = world->ops;
    world->ops.transport.query = query_either;
    world->ops.transport.send = send_seen;
    world->ops.transport.wait = wait_seen;
    world->ops.transport.close = close_seen;
    world->ops.host.advance = advance_seen;
    if (world->boards != NULL) {
        world->ops.heap.send_block = send_block_seen;
        world->ops.heap.rouse = rouse_seen;
    }
}

static int rank_main(void *arg, fy_port *port)
{
    (void)arg;
    if (world == NULL)
        begin(fy_sim_rank_of(port)->world);
    return real_main(real_arg, port);
}

/* The linker calls these instead of fy_sim_run, and that by the other name. */
int __real_fy_sim_run(const fy_sim_options *options, fy_port_main *program, void *arg);
int __wrap_fy_sim_run(const fy_sim_options *options, fy_port_main *program, void *arg);
int __wrap_fy_sim_run(const fy_sim_options *options, fy_port_main *program, void *arg)
{
    real_main = program;
    real_arg = arg;
    int status = __real_fy_sim_run(options, rank_main, arg);
    free(buffers);
    buffers = NULL;
    world = NULL;
    return status;
}
