/* Making and mapping segments.
 *
 * The creator chooses the address: the first of a short list that is free for it. The list has only
 * addresses that lie outside the shadow memory of every sanitizer and of valgrind, and outside what
 * the kernel gives to programs. So an address that is free in one process is free in all, in
 * practice. */
#include "port/shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"

#define PAGE_BYTES 4096u
#define HEAP_BYTES_DEFAULT (UINT64_C(16) << 30)
#define HEAP_BYTES_MIN (UINT64_C(1) << 20)
#define RING_SLOTS_DEFAULT 256
#define RING_BYTES_DEFAULT (64u << 10)
#define GIB (UINT64_C(1) << 30)

/* ThreadSanitizer knows addresses in ranges of its own, and aborts instead of refusing others: with
 * it, a segment must end within `room`. */
#if defined(__SANITIZE_THREAD__)
#define ROOM_BINDS true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROOM_BINDS true
#endif
#endif
#ifndef ROOM_BINDS
#define ROOM_BINDS false
#endif

#define TOTAL_BYTES_MAX (ROOM_BINDS ? 384 * GIB : 1344 * GIB)

typedef struct shm_address {
    uint64_t address, room;
} shm_address;

static const shm_address addresses[] = {
    {0x566000000000, 128 * GIB}, {0x567000000000, 64 * GIB}, {0x7e9000000000, 384 * GIB}};

enum { ADDRESSES = sizeof(addresses) / sizeof(addresses[0]) };

static size_t round_up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

/* Fills the geometry from ranks, ring_slots, ring_bytes, arenas and heap_bytes. */
static void segment_layout(fy_segment *s)
{
    size_t ring = sizeof(shm_ring) + (size_t)s->ring_slots * sizeof(fy_ring_slot) + s->ring_bytes;
    s->ring_stride = round_up(ring, PAGE_BYTES);
    s->rings_offset = round_up(controls_bytes(s->ranks), PAGE_BYTES);
    size_t rings = (size_t)s->ranks * s->ranks * SHM_CHANNELS * s->ring_stride;
    s->boards_offset = round_up(s->rings_offset + rings, PAGE_BYTES);
    size_t boards = (size_t)s->ranks * FY_BOARD_BYTES;
    s->heaps_offset = round_up(s->boards_offset + boards, FY_HEAP_SPAN_BYTES);
    s->heap_stride = round_up(fy_arena_bytes(s->heap_bytes), FY_HEAP_SPAN_BYTES);
    s->total_bytes = s->heaps_offset + s->arenas * s->heap_stride;
}

/* Sets the number of arenas and their size: one for each number, or as many of the size asked for
 * as there is room for. Ranks that are there at the same time share those (arenas.c). */
static int choose_heaps(const fy_shm_options *options, fy_segment *s)
{
    s->heap_bytes = 0;
    s->arenas = options->arenas != 0 ? options->arenas : s->ranks;
    segment_layout(s);
    uint64_t room =
        s->total_bytes < TOTAL_BYTES_MAX ? (TOTAL_BYTES_MAX - s->total_bytes) * 63 / 64 : 0;
    uint64_t wanted = options->heap_bytes;
    if (options->arenas == 0 && wanted > room / s->ranks && wanted <= room / s->starting)
        s->arenas = (uint32_t)(room / wanted);
    /* The default, said or not, yields to the number of ranks that begin. */
    if (wanted == 0 || wanted == HEAP_BYTES_DEFAULT)
        wanted = room / s->arenas < HEAP_BYTES_DEFAULT ? room / s->arenas : HEAP_BYTES_DEFAULT;
    if (wanted < HEAP_BYTES_MIN || wanted > room / s->arenas)
        return fy_error_set(FERRY_EINVAL,
                            "a heap of %llu bytes for each of %u ranks: must be 1 MiB to %llu MiB",
                            (unsigned long long)wanted, s->starting,
                            (unsigned long long)(room / s->starting >> 20));
    s->heap_bytes = wanted / FY_HEAP_SPAN_BYTES * FY_HEAP_SPAN_BYTES;
    segment_layout(s);
    return 0;
}

/* Fills defaults into `s`, checks, and computes the geometry. */
static int choose_sizes(const fy_shm_options *options, fy_segment *s)
{
    if (options->ranks < 1 || options->ranks > FY_RANKS_MAX)
        return fy_error_set(FERRY_EINVAL, "%d ranks: must be 1 to %d", options->ranks,
                            FY_RANKS_MAX);
    if (options->ranks_max != 0 &&
        (options->ranks_max < options->ranks || options->ranks_max > FY_RANKS_MAX))
        return fy_error_set(FERRY_EINVAL, "at most %d ranks (FERRY_RANKS_MAX): must be %d to %d",
                            options->ranks_max, options->ranks, FY_RANKS_MAX);
    s->starting = (uint32_t)options->ranks;
    s->ranks = options->ranks_max != 0 ? (uint32_t)options->ranks_max : s->starting;
    s->ring_slots = options->ring_slots != 0 ? options->ring_slots : RING_SLOTS_DEFAULT;
    s->ring_bytes = options->ring_bytes != 0 ? options->ring_bytes : RING_BYTES_DEFAULT;
    int error = fy_env_check_rings(s->ring_slots, s->ring_bytes);
    if (error != 0)
        return error;
    if (options->arenas != 0 && (options->arenas < s->starting || options->arenas > s->ranks))
        return fy_error_set(FERRY_EINVAL, "%u arenas: must be %u to %u", options->arenas,
                            s->starting, s->ranks);
    return choose_heaps(options, s);
}

uint64_t fy_segment_free_address(size_t total_bytes)
{
    for (int i = 0; i < ADDRESSES; i++) {
        if (ROOM_BINDS && total_bytes > addresses[i].room)
            continue;
        void *wanted = (void *)(uintptr_t)addresses[i].address;
        void *got = mmap(wanted, total_bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == MAP_FAILED)
            continue;
        munmap(got, total_bytes);
        if (got == wanted)
            return addresses[i].address;
    }
    return 0;
}

static int write_header(int fd, const fy_segment *s)
{
    shm_header header = {
        .magic = SHM_MAGIC,
        .version = SHM_VERSION,
        .ranks = s->ranks,
        .address = (uint64_t)(uintptr_t)s->base,
        .total_bytes = s->total_bytes,
        .heap_bytes = s->heap_bytes,
        .ring_slots = s->ring_slots,
        .ring_bytes = s->ring_bytes,
        .starting = s->starting,
        .arenas = s->arenas,
    };
    if (getrandom(header.nonce, sizeof(header.nonce), 0) != (ssize_t)sizeof(header.nonce))
        return fy_error_set(FERRY_ESYSTEM, "getrandom: %s", strerror(errno));
    if (pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return fy_error_set(FERRY_ESYSTEM, "writing the job's segment: %s", strerror(errno));
    return 0;
}

static int make_file(const fy_segment *s, int *out)
{
    int fd = memfd_create("ferry", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return fy_error_set(FERRY_ESYSTEM, "memfd_create: %s", strerror(errno));
    int error = 0;
    struct rlimit limit; /* a file beyond it is not refused: the process is killed */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < s->total_bytes)
        error = fy_error_set(FERRY_ESYSTEM,
                             "a sparse segment of %zu MiB is more than the limit on files' sizes "
                             "(ulimit -f); expected unlimited, or try a smaller FERRY_HEAP_BYTES",
                             s->total_bytes >> 20);
    else if (ftruncate(fd, (off_t)s->total_bytes) != 0)
        error = fy_error_set(FERRY_ESYSTEM,
                             "a sparse segment of %zu MiB: %s; try a smaller FERRY_HEAP_BYTES",
                             s->total_bytes >> 20, strerror(errno));
    else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        error = fy_error_set(FERRY_ESYSTEM, "sealing the job's segment: %s", strerror(errno));
    else
        error = write_header(fd, s);
    if (error != 0) {
        close(fd);
        return error;
    }
    *out = fd;
    return 0;
}

int fy_segment_create(const fy_shm_options *options, int *fd)
{
    fy_segment s = {0};
    int error = choose_sizes(options, &s);
    if (error != 0)
        return error;
    s.base = (char *)(uintptr_t)fy_segment_free_address(s.total_bytes);
    if (s.base == NULL)
        return fy_error_set(FERRY_ESYSTEM,
                            "%zu MiB are not free at any of %d addresses (each job here has one): "
                            "%s; with fewer jobs try a smaller FERRY_HEAP_BYTES",
                            s.total_bytes >> 20, ADDRESSES, strerror(errno));
    return make_file(&s, fd);
}

int fy_segment_read(int fd, fy_segment *s)
{
    shm_header header;
    struct stat file;
    if (fstat(fd, &file) != 0 || pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return fy_error_set(FERRY_ESYSTEM, "descriptor %d is no segment of a job: %s", fd,
                            errno != 0 ? strerror(errno) : "too short");
    if (header.magic != SHM_MAGIC)
        return fy_error_set(FERRY_EINVAL, "descriptor %d is no segment of a job", fd);
    if (header.version != SHM_VERSION)
        return fy_error_set(FERRY_ELAUNCH,
                            "the job's launcher is another version of Ferry (segment version %u, "
                            "this program's is %d)",
                            header.version, SHM_VERSION);
    fy_shm_options options = {
        .ranks = header.starting <= FY_RANKS_MAX ? (int)header.starting : 0,
        .ranks_max = header.ranks <= FY_RANKS_MAX ? (int)header.ranks : -1,
        .heap_bytes = header.heap_bytes,
        .ring_slots = header.ring_slots,
        .ring_bytes = header.ring_bytes,
        .arenas = header.arenas != 0 ? header.arenas : UINT32_MAX,
    };
    int seals = fcntl(fd, F_GET_SEALS);
    if (choose_sizes(&options, s) != 0 || s->total_bytes != header.total_bytes ||
        (uint64_t)file.st_size != header.total_bytes || seals < 0 || !(seals & F_SEAL_SHRINK))
        return fy_error_set(FERRY_EINVAL, "the job's segment has a damaged header");
    s->base = (char *)(uintptr_t)header.address;
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
        if (addresses[i].address == header.address)
            return 0;
    return fy_error_set(FERRY_EINVAL, "the job's segment asks for address %p", (void *)s->base);
}

int fy_segment_map(int fd, fy_segment **out)
{
    fy_segment *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory");
    int error = fy_segment_read(fd, s);
    if (error != 0)
        goto free_segment;
    void *got = mmap(s->base, s->total_bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);
    if (got != (void *)s->base) {
        error = fy_error_set(
            FERRY_ESYSTEM, "the job's shared memory (%zu MiB) cannot be mapped at %p here: %s",
            s->total_bytes >> 20, (void *)s->base, got == MAP_FAILED ? strerror(errno) : "taken");
        if (got != MAP_FAILED)
            munmap(got, s->total_bytes);
        goto free_segment;
    }
    /* A core dump would walk the whole reservation and delay the notices of a death by seconds. */
    (void)madvise(got, s->total_bytes, MADV_DONTDUMP);
    s->pipe = -1;
    s->link = -1;
    s->opened = -1;
    s->kept = -1;
    *out = s;
    return 0;
free_segment:
    free(s);
    return error;
}

/* Closes the pipe of a joined process: it then no longer dies with the launcher. */
static void pipe_drop(int pipe)
{
    /* A child of this process may have the pipe still: closing it here is not enough. */
    fcntl(pipe, F_SETFL, O_RDONLY | O_NONBLOCK);
    close(pipe);
}

void fy_segment_unmap(fy_segment *segment)
{
    munmap(segment->base, segment->total_bytes);
    if (segment->pipe >= 0)
        pipe_drop(segment->pipe);
    if (segment->kept >= 0)
        close(segment->kept);
    if (segment->link >= 0)
        close(segment->link);
    free(segment);
}

void fy_segment_keep(fy_segment *segment, int fd)
{
    segment->kept = fd;
}

int fy_segment_ranks(const fy_segment *segment)
{
    return (int)segment->ranks;
}

bool fy_segment_is_relayed(const fy_segment *segment)
{
    return common_at(segment->base)->relay != 0;
}

void fy_segment_spawner_set(fy_segment *segment, fy_spawner *spawner, void *arg)
{
    segment->spawner = spawner;
    segment->spawner_arg = arg;
}

bool fy_numbers_take(void *base, uint32_t ranks, uint32_t starting, uint32_t count, uint32_t *first)
{
    shm_common *common = common_at(base);
    _Atomic uint32_t *spawned = &common->spawned;
    uint32_t most = common->relay != 0 ? common->spawned_max : ranks - starting;
    /* relaxed: a number is nobody's before, and says nothing of other memory */
    uint32_t taken = atomic_load_explicit(spawned, memory_order_relaxed);
    do {
        if (taken > most || count > most - taken)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(spawned, &taken, taken + count,
                                                    memory_order_relaxed, memory_order_relaxed));
    *first = starting + taken;
    return true;
}
