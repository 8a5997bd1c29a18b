/* The shared heap, by its owner and by others, as threads and as processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ferry/error.h>

#include "../support/random.h"
#include "base/clock.h"
#include "base/heap.h"

#define HEAP_BYTES ((size_t)64 << 20)

/* A sanitizer looks at each access. */
#ifdef FERRY_SANITIZED
enum { ADDRESSES = 100000, TURNS = 20000, ROUNDS = 8000, ACTS = 20000 };
#else
enum { ADDRESSES = 1000000, TURNS = 100000, ROUNDS = 30000, ACTS = 60000 };
#endif

typedef struct fixture {
    void *base;
    fy_arena arena;
    fy_heap *heap;
} fixture;

static int make(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return -1;
    f->base = mmap(NULL, fy_arena_bytes(HEAP_BYTES), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    f->arena = fy_arena_at(f->base, HEAP_BYTES);
    *state = f;
    return f->base == MAP_FAILED ? -1 : fy_heap_create(&f->arena, &f->heap);
}

static int drop(void **state)
{
    fixture *f = *state;
    fy_heap_destroy(f->heap);
    munmap(f->base, fy_arena_bytes(HEAP_BYTES));
    free(f);
    return 0;
}

/* Whether the range lies in one live block. */
static bool lies_in_block(const fixture *f, const void *address, size_t size_bytes)
{
    fy_block_memo memo;
    return fy_arena_find(&f->arena, address, &memo) && fy_memo_holds(&memo, address, size_bytes);
}

static size_t random_size(uint64_t *seed)
{
    uint64_t r = xorshift(seed);
    return (r >> 8) % ((size_t)1 << (4 + r % 18)) + 1;
}

/* Goal: every size from 1 B to 2 MiB gets an aligned block of its own of exactly that size.
 * Method: allocate around each power of two, fill, ask about the ends, check the fill. */
static void test_heap_gives_blocks_of_each_size(void **state)
{
    fixture *f = *state;
    for (size_t size = 1; size <= (2u << 20); size = size * 5 / 4 + 1) {
        unsigned char *a = fy_heap_alloc(f->heap, size, 0), *b = fy_heap_alloc(f->heap, size, 0);
        assert_non_null(a);
        assert_non_null(b);
        assert_true((uintptr_t)a % FY_HEAP_ALIGN == 0 && (uintptr_t)b % FY_HEAP_ALIGN == 0);
        assert_true(size < (1u << 20) || (uintptr_t)a % 4096 == 0);
        memset(a, 1, size);
        memset(b, 2, size);
        assert_true(a[0] == 1 && a[size - 1] == 1);
        assert_int_equal(fy_arena_block_bytes(&f->arena, a), size);
        assert_true(lies_in_block(f, a, size));
        assert_true(lies_in_block(f, a + size - 1, 1));
        assert_false(lies_in_block(f, a + 1, size));
        assert_false(lies_in_block(f, a + size, 1));
        assert_int_equal(fy_heap_release(f->heap, a), 0);
        assert_int_equal(fy_arena_release(&f->arena, b), 0);
        assert_false(lies_in_block(f, a, 1));
        assert_false(lies_in_block(f, b, 1));
    }
}

/* Goal: a second free and a free of what is no block fail and change nothing, whoever frees.
 * Method: free each in all four orders of owner and other; free addresses inside and around. */
static void test_heap_refuses_double_and_wild_free(void **state)
{
    fixture *f = *state;
    for (size_t size = 64; size <= (4u << 20); size *= 8) {
        char *a = fy_heap_alloc(f->heap, size, 0), *b = fy_heap_alloc(f->heap, size, 0);
        assert_int_equal(fy_heap_release(f->heap, a + 64), size > 64 ? FERRY_EINVAL : 0);
        if (size == 64)
            b = fy_heap_alloc(f->heap, size, 0);
        assert_int_equal(fy_heap_release(f->heap, a + 1), FERRY_EINVAL);
        assert_int_equal(fy_arena_release(&f->arena, a + 32), FERRY_EINVAL);
        assert_int_equal(fy_heap_release(f->heap, a), 0);
        assert_int_equal(fy_heap_release(f->heap, a), FERRY_EINVAL);
        assert_int_equal(fy_arena_release(&f->arena, a), FERRY_EINVAL);
        assert_int_equal(fy_arena_release(&f->arena, b), 0);
        assert_int_equal(fy_arena_release(&f->arena, b), FERRY_EINVAL);
        assert_int_equal(fy_heap_release(f->heap, b), FERRY_EINVAL);
    }
    char outside[128];
    const uintptr_t wild[] = {0,
                              1,
                              64,
                              (uintptr_t)outside,
                              (uintptr_t)f->base,
                              UINTPTR_MAX,
                              UINTPTR_MAX - 63,
                              (uintptr_t)f->base + 4096};
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        assert_int_equal(fy_heap_release(f->heap, (void *)wild[i]), FERRY_EINVAL);
        assert_int_equal(fy_arena_release(&f->arena, (void *)wild[i]), FERRY_EINVAL);
        assert_false(lies_in_block(f, (void *)wild[i], 1));
    }
}

/* Goal: any address of the arena may be asked about at any time.
 * Method: ask about many random addresses of an arena in use. */
static void test_heap_answers_for_any_address(void **state)
{
    fixture *f = *state;
    uint64_t seed = 7;
    for (int i = 0; i < 2000; i++)
        (void)fy_heap_alloc(f->heap, random_size(&seed) / 64 + 1, 0);
    for (int i = 0; i < ADDRESSES; i++) {
        char *at = (char *)f->base + xorshift(&seed) % fy_arena_bytes(HEAP_BYTES);
        size_t size = (size_t)xorshift(&seed);
        assert_false(lies_in_block(f, at, size | (size_t)1 << 40));
        (void)fy_arena_block_bytes(&f->arena, at);
    }
}

/* Goal: the limit is an error and not the end: what is freed can be had again, also by merging.
 * Method: fill with small blocks, fail, free all, then take nearly everything as one block. */
static void test_heap_reaches_its_limit_and_recovers(void **state)
{
    fixture *f = *state;
    static void *blocks[HEAP_BYTES / 1024];
    for (int round = 0; round < 3; round++) {
        size_t count = 0;
        while (count < HEAP_BYTES / 1024 &&
               (blocks[count] = fy_heap_alloc(f->heap, 1000, 0)) != NULL)
            count++;
        assert_true(count > HEAP_BYTES / 1024 * 9 / 10);
        assert_null(fy_heap_alloc(f->heap, 1000, 0));
        for (size_t i = 0; i < count; i++) {
            int error = i % 2 == 0 ? fy_heap_release(f->heap, blocks[i])
                                   : fy_arena_release(&f->arena, blocks[i]);
            assert_int_equal(error, 0);
        }
        void *all = fy_heap_alloc(f->heap, HEAP_BYTES * 9 / 10, 0);
        assert_non_null(all);
        assert_null(fy_heap_alloc(f->heap, HEAP_BYTES / 2, 0));
        assert_null(fy_heap_alloc(f->heap, SIZE_MAX, 0));
        assert_int_equal(fy_heap_release(f->heap, all), 0);
    }
}

/* Pages of the arena that exist. */
static size_t resident_bytes(const fixture *f)
{
    size_t pages = fy_arena_bytes(HEAP_BYTES) / 4096, count = 0;
    unsigned char *vector = malloc(pages);
    assert_non_null(vector);
    assert_int_equal(mincore(f->base, pages * 4096, vector), 0);
    for (size_t i = 0; i < pages; i++)
        count += vector[i] & 1;
    free(vector);
    return count * 4096;
}

/* Goal: memory that stays free goes back to the system; a buffer in use does not.
 * Method: touch and free 32 MiB, trim until it is gone. Then free and take one buffer repeatedly
 * and look that its pages stay. */
static void test_heap_returns_pages_that_stay_free(void **state)
{
    fixture *f = *state;
    char *big = fy_heap_alloc(f->heap, 32u << 20, 0);
    memset(big, 1, 32u << 20);
    assert_true(resident_bytes(f) > (32u << 20));
    assert_int_equal(fy_heap_release(f->heap, big), 0);
    uint64_t limit = fy_clock_now_ns() + 20 * UINT64_C(1000000000);
    while (resident_bytes(f) > (4u << 20) && fy_clock_now_ns() < limit)
        fy_heap_trim(f->heap);
    assert_true(resident_bytes(f) < (4u << 20));
    for (int i = 0; i < 1000; i++) {
        big = fy_heap_alloc(f->heap, 8u << 20, 0);
        if (i == 0)
            memset(big, 1, 8u << 20);
        else
            assert_int_equal(big[(size_t)i * 8000], 1);
        assert_int_equal(fy_heap_release(f->heap, big), 0);
    }
}

/* The bytes of the pages in use after the pages that hold no block were given back, as they are
 * when memory is short. */
static size_t needed_bytes(const fixture *f)
{
    assert_null(fy_heap_alloc(f->heap, f->arena.span_count * FY_HEAP_SPAN_BYTES, 0));
    return resident_bytes(f);
}

/* Goal: blocks of one size that are free are room for blocks of all others. Method: take and free
 * one block of each size below 896 KiB. The pages are those of the largest few, and nearly the
 * whole heap can be had as one block. */
static void test_heap_keeps_no_room_for_each_size(void **state)
{
    fixture *f = *state;
    for (size_t size = 1; size <= (896u << 10); size = size * 9 / 8 + 1) {
        unsigned char *block = fy_heap_alloc(f->heap, size, 0);
        assert_non_null(block);
        memset(block, 1, size);
        assert_int_equal(fy_heap_release(f->heap, block), 0);
    }
    void *last = fy_heap_alloc(f->heap, 1, 0);
    assert_non_null(last);
    assert_in_range(needed_bytes(f), 0, 1u << 20);
    void *all = fy_heap_alloc(f->heap, HEAP_BYTES / 64 * 63, 0);
    assert_non_null(all);
    assert_int_equal(fy_heap_release(f->heap, all), 0);
    assert_int_equal(fy_heap_release(f->heap, last), 0);
}

/* Goal: no growth over a long random use.
 * Method: random allocations and frees with a bound on what lives; what the pages take at the end
 * is what they took when every size had come up often, and a quarter. Pages stay for a while after
 * their blocks, which on a busy machine is more blocks or fewer: those are given back first. */
static void test_heap_does_not_grow(void **state)
{
    fixture *f = *state;
    enum { SLOTS = 400 };
    void *blocks[SLOTS] = {0};
    uint64_t seed = 99;
    size_t early = 0;
    for (int i = 0; i < TURNS; i++) {
        size_t slot = xorshift(&seed) % SLOTS;
        if (blocks[slot] != NULL) {
            int error = i % 3 == 0 ? fy_arena_release(&f->arena, blocks[slot])
                                   : fy_heap_release(f->heap, blocks[slot]);
            assert_int_equal(error, 0);
        }
        size_t size = random_size(&seed) / 4 + 1;
        blocks[slot] = fy_heap_alloc(f->heap, size, 0);
        assert_non_null(blocks[slot]);
        memset(blocks[slot], 1, size);
        if (i == TURNS / 10 * 6)
            early = needed_bytes(f);
    }
    assert_true(needed_bytes(f) < early + early / 4);
}

static bool holds(const unsigned char *block, size_t size, int fill)
{
    return block[0] == fill && memcmp(block, block + 1, size - 1) == 0;
}

/* Goal: what is given back of a heap whose owner has gone is never part of a live block, and all in
 * the end. Method: a long random use; discard; look at every byte of what lives; then others
 * release the blocks one by one, with a look at one of the rest each time. */
static void test_heap_of_the_dead_is_given_back(void **state)
{
    enum { SLOTS = 200 };
    fixture *f = *state;
    unsigned char *blocks[SLOTS] = {0};
    size_t sizes[SLOTS] = {0};
    uint64_t seed = 4711;
    for (int i = 0; i < ROUNDS; i++) {
        size_t slot = xorshift(&seed) % SLOTS;
        if (blocks[slot] != NULL)
            assert_int_equal(fy_heap_release(f->heap, blocks[slot]), 0);
        sizes[slot] = random_size(&seed) / 4 + 1;
        blocks[slot] = fy_heap_alloc(f->heap, sizes[slot], 0);
        assert_non_null(blocks[slot]);
        memset(blocks[slot], (int)slot, sizes[slot]);
    }
    size_t before = resident_bytes(f);
    fy_arena_discard(&f->arena, NULL);
    assert_true(resident_bytes(f) < before);
    for (size_t slot = 0; slot < SLOTS; slot++)
        assert_true(blocks[slot] == NULL || holds(blocks[slot], sizes[slot], (int)slot));
    for (size_t slot = 0; slot < SLOTS; slot++) {
        if (blocks[slot] == NULL)
            continue;
        assert_int_equal(fy_arena_release(&f->arena, blocks[slot]), 0);
        fy_arena_discard(&f->arena, blocks[slot]);
        size_t other = slot + 1 + xorshift(&seed) % SLOTS;
        if (other < SLOTS && blocks[other] != NULL)
            assert_true(holds(blocks[other], sizes[other], (int)other));
        assert_int_equal(fy_arena_release(&f->arena, blocks[slot]), FERRY_EINVAL);
    }
    fy_arena_discard(&f->arena, NULL);
    assert_int_equal(resident_bytes(f), 0);
    assert_false(lies_in_block(f, blocks[0], 1));
}

/* Goal: what is kept for a keeper that has gone is released, and nothing else; being kept changes
 * nothing of what may be asked of a block. Method: blocks of random sizes for several keepers, some
 * freed again; the keepers go one by one. */
static void test_heap_releases_what_was_kept(void **state)
{
    enum { BLOCKS = 1000, KEEPERS = 5 };
    fixture *f = *state;
    void *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    uint64_t seed = 99;
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = random_size(&seed) / 16 + 1;
        blocks[i] = fy_heap_alloc(f->heap, sizes[i], 0);
        assert_non_null(blocks[i]);
        if (i % KEEPERS != 0)
            assert_int_equal(fy_arena_keep_for(&f->arena, blocks[i], (uint32_t)(i % KEEPERS)), 0);
        assert_int_equal(fy_arena_block_bytes(&f->arena, blocks[i]), sizes[i]);
        assert_true(lies_in_block(f, blocks[i], sizes[i]));
        assert_false(lies_in_block(f, blocks[i], sizes[i] + 1));
    }
    for (int i = 0; i < BLOCKS; i += 7)
        assert_int_equal(fy_heap_release(f->heap, blocks[i]), 0);
    assert_int_equal(fy_arena_keep_for(&f->arena, blocks[0], 1), FERRY_EINVAL);
    assert_int_equal(fy_arena_keep_for(&f->arena, (char *)blocks[1] + 1, 1), FERRY_EINVAL);
    for (uint32_t gone = 1; gone < KEEPERS; gone++) {
        fy_arena_release_kept(&f->arena, gone);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            bool live = i % 7 != 0 && (i % KEEPERS == 0 || i % KEEPERS > gone);
            assert_int_equal(fy_arena_block_bytes(&f->arena, blocks[i]), live ? sizes[i] : 0);
        }
    }
    for (uint32_t i = 0; i < BLOCKS; i += KEEPERS)
        if (i % 7 != 0)
            assert_int_equal(fy_heap_release(f->heap, blocks[i]), 0);
}

/* Blocks on their way from those that allocate to those that free. */
typedef struct exchange {
    _Atomic uint64_t place[256]; /* offset of a block, 0: empty */
    _Atomic uint32_t stop, broken;
} exchange;

typedef struct actor {
    fixture *f;
    exchange *x;
    uint64_t seed;
    bool owner;
} actor;

/* Owner: fills each block with its size and puts it into a random place, taking out what was there.
 * Everyone: takes blocks out, checks the fill and frees them. */
static void *act(void *arg)
{
    actor *a = arg;
    const fy_arena *arena = &a->f->arena;
    for (int i = 0; i < ACTS && !atomic_load(&a->x->stop); i++) {
        uint64_t put = 0;
        if (a->owner && (xorshift(&a->seed) & 1)) {
            size_t size = random_size(&a->seed) / 8 + 16;
            uint64_t *block = fy_heap_alloc(a->f->heap, size, 0);
            if (block == NULL)
                continue;
            block[0] = size;
            memset(block + 1, (int)(size & 0xff), size - 8);
            put = (uint64_t)((char *)block - arena->base);
        }
        size_t place = xorshift(&a->seed) % 256;
        uint64_t got = atomic_exchange(&a->x->place[place], put);
        if (got == 0)
            continue;
        uint64_t *block = (uint64_t *)(void *)(arena->base + got);
        const unsigned char *fill = (const unsigned char *)(block + 1);
        uint64_t size = block[0];
        bool sound = fy_arena_block_bytes(arena, block) == size && fill[0] == (size & 0xff) &&
                     fill[size - 9] == (size & 0xff);
        block[0] = 0;
        if (!sound ||
            (a->owner ? fy_heap_release(a->f->heap, block) : fy_arena_release(arena, block)) != 0)
            atomic_fetch_add(&a->x->broken, 1);
    }
    return NULL;
}

static exchange *new_exchange(void)
{
    exchange *x = mmap(NULL, sizeof(*x), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(x != MAP_FAILED);
    return x;
}

/* Goal: two threads of the owner and two other threads never get or free the same block twice.
 * Method: blocks pass through shared places; each holder checks what is written in its block. */
static void test_heap_is_shared_by_threads(void **state)
{
    fixture *f = *state;
    exchange *x = new_exchange();
    actor actors[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        actors[i] = (actor){.f = f, .x = x, .seed = (uint64_t)i + 1, .owner = i < 2};
        assert_int_equal(pthread_create(&threads[i], NULL, act, &actors[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&x->broken), 0);
    munmap(x, sizeof(*x));
}

/* Goal and method as with threads, with the others as processes, one of which is killed. */
static void test_heap_is_shared_by_processes(void **state)
{
    fixture *f = *state;
    exchange *x = new_exchange();
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            actor other = {.f = f, .x = x, .seed = (uint64_t)i + 11};
            do
                act(&other);
            while (!atomic_load(&x->stop));
            _exit(0);
        }
    }
    actor owner = {.f = f, .x = x, .seed = 5, .owner = true};
    act(&owner);
    kill(children[0], SIGKILL);
    act(&owner);
    atomic_store(&x->stop, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    assert_int_equal(atomic_load(&x->broken), 0);
    munmap(x, sizeof(*x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_heap_gives_blocks_of_each_size, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_refuses_double_and_wild_free, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_answers_for_any_address, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_reaches_its_limit_and_recovers, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_returns_pages_that_stay_free, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_keeps_no_room_for_each_size, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_does_not_grow, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_of_the_dead_is_given_back, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_releases_what_was_kept, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_is_shared_by_threads, make, drop),
        cmocka_unit_test_setup_teardown(test_heap_is_shared_by_processes, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
