/* Puts, gets and puts with a signal. A range that is mapped is copied by this PE. Other puts go by
 * ferry_put and count as outstanding until they complete; shmem_quiet waits for them. */
#include "state.h"

#include <string.h>

static void when_submitted(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)receipt;
    *(bool *)arg = true;
}

static void when_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)arg;
    (void)receipt;
    fy_shmem_pe.outstanding--;
}

static void when_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)f;
    (void)arg;
    fy_compat_fail("a put to PE %d failed: %s", receipt->rank, receipt->reason);
}

/* Copies. A value of 4 or 8 bytes is stored at once, since another PE may wait for it. */
static inline void copy(void *dest, const void *source, size_t size_bytes)
{
    uintptr_t both = (uintptr_t)dest | (uintptr_t)source;
    if (size_bytes == 8 && both % 8 == 0)
        __atomic_store_n((uint64_t *)dest, *(const uint64_t *)source, __ATOMIC_RELAXED);
    else if (size_bytes == 4 && both % 4 == 0)
        __atomic_store_n((uint32_t *)dest, *(const uint32_t *)source, __ATOMIC_RELAXED);
    else
        memmove(dest, source, size_bytes);
}

/* The track of a put by messages that begins now; `submitted` (NULL: none) becomes true when the
 * source may change. */
static ferry_track begin_put(bool *submitted)
{
    ferry_track track = FERRY_TRACK_DEFAULTS;
    if (submitted != NULL) {
        track.submitted = when_submitted;
        track.submitted_arg = submitted;
    }
    track.completed = when_completed;
    track.failed = when_failed;
    fy_shmem_pe.outstanding++;
    return track;
}

/* Begins a put by messages. */
static void send(char *remote, const void *source, size_t size_bytes, int pe, bool *submitted)
{
    const ferry_track track = begin_put(submitted);
    fy_compat_check(fy_compat.call, ferry_put(fy_compat.f, pe, remote, source, size_bytes, &track));
}

/* Ends the job if the local side of a copy is missing. */
static inline void check_local(const void *address, const char *side)
{
    if (address == NULL)
        fy_compat_fail("%s: the %s is NULL", fy_compat.call, side);
}

void fy_shmem_put_later(void *dest, const void *source, size_t size_bytes, int pe)
{
    char *remote;
    if (size_bytes == 0)
        return;
    check_local(source, "source of a put");
    if (fy_shmem_locate(dest, size_bytes, pe, &remote))
        copy(remote, source, size_bytes);
    else
        send(remote, source, size_bytes, pe, NULL);
}

/* As `send`, and waits until `source` may change. */
static __attribute__((noinline)) void send_and_wait(char *remote, const void *source,
                                                    size_t size_bytes, int pe)
{
    bool submitted = false;
    unsigned turns = 0;
    send(remote, source, size_bytes, pe, &submitted);
    while (!submitted && fy_shmem_pe.outstanding > 0)
        fy_compat_turn(&turns);
}

static inline void put(void *dest, const void *source, size_t size_bytes, int pe)
{
    char *remote;
    if (size_bytes == 0)
        return;
    check_local(source, "source of a put");
    if (fy_shmem_locate(dest, size_bytes, pe, &remote))
        copy(remote, source, size_bytes);
    else
        send_and_wait(remote, source, size_bytes, pe);
}

void fy_shmem_put(void *dest, const void *source, size_t size_bytes, int pe)
{
    put(dest, source, size_bytes, pe);
}

void fy_shmem_get(void *dest, const void *source, size_t size_bytes, int pe)
{
    char *remote;
    if (size_bytes == 0)
        return;
    check_local(dest, "target of a get");
    if (fy_shmem_locate(source, size_bytes, pe, &remote)) {
        fy_shmem_poll_for(source, pe);
        copy(dest, remote, size_bytes);
    } else
        fy_compat_check(fy_compat.call, ferry_get(fy_compat.f, pe, dest, remote, size_bytes, NULL));
}

void fy_shmem_signal(uint64_t *word, uint64_t signal, int operation, int pe)
{
    shmem_fence();
    if (operation == SHMEM_SIGNAL_SET)
        fy_shmem_update(FERRY_SWAP, word, sizeof(*word), signal, 0, pe);
    else if (operation == SHMEM_SIGNAL_ADD)
        fy_shmem_update(FERRY_FETCH_ADD, word, sizeof(*word), signal, 0, pe);
    else
        fy_compat_fail("%s: signal operation %d; expected SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD",
                       fy_compat.call, operation);
}

typedef struct elements {
    size_t count, bytes;
} elements;

/* Elements that lie `apart` bytes apart on `pe`, the first at `at` here. Sets `*remote` to the
 * first one there. Returns whether they are mapped in this process. Ends the job if one is not
 * symmetric. */
static bool locate_strided(const char *at, ptrdiff_t apart, elements what, int pe, char **remote)
{
    bool mapped = true;
    for (size_t i = what.count; i-- > 0;)
        mapped = fy_shmem_locate(at + (ptrdiff_t)i * apart, what.bytes, pe, remote) && mapped;
    return mapped;
}

/* Puts elements that lie `dst` elements apart in `dest` and `sst` in `source`. Those that go by
 * messages are one operation. */
static void put_strided(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, elements what,
                        int pe)
{
    ptrdiff_t size = (ptrdiff_t)what.bytes;
    char *remote;
    if (what.count == 0)
        return;
    check_local(source, "source of a put");
    if (locate_strided(dest, dst * size, what, pe, &remote)) {
        for (ptrdiff_t i = 0; (size_t)i < what.count; i++)
            fy_shmem_put((char *)dest + i * dst * size, (const char *)source + i * sst * size,
                         (size_t)size, pe);
        return;
    }
    const ferry_stride stride = {what.count, dst * size, sst * size};
    const ferry_strided all = {remote, source, what.bytes, 1, &stride};
    bool submitted = false;
    unsigned turns = 0;
    const ferry_track track = begin_put(&submitted);
    fy_compat_check(fy_compat.call, ferry_put_strided(fy_compat.f, pe, &all, &track));
    while (!submitted && fy_shmem_pe.outstanding > 0)
        fy_compat_turn(&turns);
}

static void get_strided(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, elements what,
                        int pe)
{
    ptrdiff_t size = (ptrdiff_t)what.bytes;
    char *remote;
    if (what.count == 0)
        return;
    check_local(dest, "target of a get");
    if (locate_strided(source, sst * size, what, pe, &remote)) {
        for (ptrdiff_t i = 0; (size_t)i < what.count; i++)
            fy_shmem_get((char *)dest + i * dst * size, (const char *)source + i * sst * size,
                         (size_t)size, pe);
        return;
    }
    const ferry_stride stride = {what.count, dst * size, sst * size};
    const ferry_strided all = {dest, remote, what.bytes, 1, &stride};
    fy_compat_check(fy_compat.call, ferry_get_strided(fy_compat.f, pe, &all, NULL));
}

/* Defines a put and a get of elements of one size, by the names of the functions. */
#define COPIES(PUT, GET, TYPE, BYTES)                                                              \
    void PUT(TYPE *dest, const TYPE *source, size_t nelems, int pe)                                \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        fy_shmem_put(dest, source, fy_shmem_size(#PUT, nelems, BYTES), pe);                        \
    }                                                                                              \
    void GET(TYPE *dest, const TYPE *source, size_t nelems, int pe)                                \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        fy_shmem_get(dest, source, fy_shmem_size(#GET, nelems, BYTES), pe);                        \
    }                                                                                              \
    void PUT##_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe)                          \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        fy_shmem_put_later(dest, source, fy_shmem_size(#PUT, nelems, BYTES), pe);                  \
    }                                                                                              \
    void GET##_nbi(TYPE *dest, const TYPE *source, size_t nelems, int pe)                          \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        fy_shmem_get(dest, source, fy_shmem_size(#GET, nelems, BYTES), pe);                        \
    }                                                                                              \
    void PUT##_signal(TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr,           \
                      uint64_t signal, int sig_op, int pe)                                         \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        fy_shmem_put(dest, source, fy_shmem_size(#PUT, nelems, BYTES), pe);                        \
        fy_shmem_signal(sig_addr, signal, sig_op, pe);                                             \
    }                                                                                              \
    void PUT##_signal_nbi(TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr,       \
                          uint64_t signal, int sig_op, int pe)                                     \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        fy_shmem_put(dest, source, fy_shmem_size(#PUT, nelems, BYTES), pe);                        \
        fy_shmem_signal(sig_addr, signal, sig_op, pe);                                             \
    }

#define STRIDED(PUT, GET, TYPE, BYTES)                                                             \
    void PUT(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)  \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        put_strided(dest, source, dst, sst, (elements){nelems, BYTES}, pe);                        \
    }                                                                                              \
    void GET(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)  \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        get_strided(dest, source, dst, sst, (elements){nelems, BYTES}, pe);                        \
    }

#define TYPED(NAME, TYPE)                                                                          \
    COPIES(shmem_##NAME##_put, shmem_##NAME##_get, TYPE, sizeof(TYPE))                             \
    STRIDED(shmem_##NAME##_iput, shmem_##NAME##_iget, TYPE, sizeof(TYPE))                          \
    void shmem_##NAME##_p(TYPE *dest, TYPE value, int pe)                                          \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        put(dest, &value, sizeof(value), pe);                                                      \
    }                                                                                              \
    TYPE shmem_##NAME##_g(const TYPE *source, int pe)                                              \
    {                                                                                              \
        FY_SHMEM_CALL();                                                                           \
        TYPE value;                                                                                \
        fy_shmem_get(&value, source, sizeof(value), pe);                                           \
        return value;                                                                              \
    }
SHMEM_TYPES(TYPED)

#define SIZED(NAME, BYTES)                                                                         \
    COPIES(shmem_put##NAME, shmem_get##NAME, void, BYTES)                                          \
    STRIDED(shmem_iput##NAME, shmem_iget##NAME, void, BYTES)
SHMEM_SIZES(SIZED)
COPIES(shmem_putmem, shmem_getmem, void, 1)
