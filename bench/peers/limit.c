/* Limit: what the machine itself allows, measured with bare processes over one shared mapping.
 *
 *      request up to 32 B   hand-off of one cache line
 *      request of 64 B      one slot of a ring, with an indirect call of a handler
 *      larger requests      write to shared memory, hand a flag over, copy out
 *      rate-8B              the ring, streaming
 *      rate-1KiB, buffers   two copies, pipelined through a shared ring of chunks
 *      put, get             memcpy to and from shared memory
 *      barrier, allreduce   hand-off, for two ranks
 *      ring                 flags, waiting by sched_yield; beside computing processes by futex
 *      wake                 futex
 *
 * With BENCH_WAY set it is another peer, for buffers alone, whose target reads what it got. "pipe"
 * is the two copies. "attach" is one copy by the target out of the source's memory, as MPI
 * libraries do. */
#include "common/team.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SLOTS = 256,
    CHUNKS = 8,
    CHUNK_BYTES = 16 << 10,
    SHARED_BYTES = 8 << 20,
};

/* A ring's slot: its number + 1 is stored last, by release, and says that it is full. */
typedef struct slot {
    _Alignas(64) _Atomic uint64_t full;
    uint64_t words[7];
} slot;

typedef struct shared {
    bench_line lines[2];
    bench_line hops[BENCH_RANKS_MAX];
    bench_line taken; /* slots or chunks that the consumer has done with */
    bench_line filled;
    pid_t source; /* rank 0's process, and its memory there */
    unsigned char *source_own;
    slot slots[2][SLOTS];
    _Alignas(4096) unsigned char chunks[CHUNKS][CHUNK_BYTES];
    _Alignas(4096) unsigned char bytes[2][SHARED_BYTES];
} shared;

typedef struct state {
    int rank, ranks;
    shared *shared;
    unsigned char *own; /* SHARED_BYTES, private */
    uint64_t handled, sum;
    bool reads;    /* the target reads each block that it has whole */
    uint64_t flag; /* last value of the flags, ascending through all jobs */
} state;

static uint64_t load(bench_line *line)
{
    return atomic_load_explicit(&line->word, memory_order_acquire);
}

static void store(bench_line *line, uint64_t value)
{
    atomic_store_explicit(&line->word, value, memory_order_release);
}

static void until(bench_line *line, uint64_t value)
{
    while (load(line) < value) {
    }
}

/* Ping-pong over two lines; `pass` does what goes with each message on the side that receives. */
typedef void pass_fn(state *s, size_t size_bytes, int from);

static double ping_pong(state *s, const bench_job *job, pass_fn *fill, pass_fn *drain)
{
    bench_line *mine = &s->shared->lines[s->rank], *other = &s->shared->lines[!s->rank];
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        s->flag++;
        for (int turn = 0; turn < 2; turn++) {
            if (turn == s->rank) {
                fill(s, job->size_bytes, s->rank);
                store(mine, s->flag);
            } else {
                until(other, s->flag);
                drain(s, job->size_bytes, !s->rank);
            }
        }
    }
    return (double)(bench_now() - start);
}

static void nothing(state *s, size_t size_bytes, int from)
{
    (void)s;
    (void)size_bytes;
    (void)from;
}

static void write_out(state *s, size_t size_bytes, int from)
{
    memcpy(s->shared->bytes[from], s->own, size_bytes);
}

static void copy_in(state *s, size_t size_bytes, int from)
{
    memcpy(s->own, s->shared->bytes[from], size_bytes);
}

typedef void handler_fn(state *s, const uint64_t *words);

static void count_one(state *s, const uint64_t *words)
{
    s->handled++;
    for (int i = 1; i < 7; i++)
        s->sum += words[i];
}

/* The only handler; a table that the compiler cannot see through. */
static handler_fn *volatile handlers[2] = {count_one, count_one};

static void slot_send(state *s, uint64_t number)
{
    slot *to = &s->shared->slots[s->rank][number % SLOTS];
    to->words[0] = number & 1;
    for (int i = 1; i < 7; i++)
        to->words[i] = number;
    atomic_store_explicit(&to->full, number + 1, memory_order_release);
}

static void slot_take(state *s, uint64_t number)
{
    slot *from = &s->shared->slots[!s->rank][number % SLOTS];
    while (atomic_load_explicit(&from->full, memory_order_acquire) != number + 1) {
    }
    handlers[from->words[0]](s, from->words);
}

static double slot_ping_pong(state *s, const bench_job *job)
{
    uint64_t warm = bench_warmup(job), start = 0;
    for (uint64_t i = 0; i < warm + job->count; i++, s->flag++) {
        if (i == warm)
            start = bench_now();
        if (s->rank == 0)
            slot_send(s, s->flag);
        slot_take(s, s->flag);
        if (s->rank == 1)
            slot_send(s, s->flag);
    }
    return (double)(bench_now() - start);
}

static double request(void *context, const bench_job *job)
{
    state *s = context;
    if (s->rank > 1)
        return 0;
    if (job->size_bytes <= 32)
        return ping_pong(s, job, nothing, nothing);
    if (job->size_bytes <= 64)
        return slot_ping_pong(s, job);
    return ping_pong(s, job, write_out, copy_in);
}

/* Both ends know that nothing is in flight; returns the time that `stream` takes. */
typedef void stream_fn(state *s, uint64_t first, const bench_job *job, uint64_t count);

static double streamed(state *s, const bench_job *job, uint64_t per_item, stream_fn *stream)
{
    uint64_t warm = bench_warmup(job) * per_item, count = job->count * per_item;
    store(&s->shared->taken, s->flag);
    ping_pong(s, &(bench_job){.count = 1}, nothing, nothing);
    uint64_t first = s->flag;
    stream(s, first, job, warm);
    uint64_t start = bench_now();
    stream(s, first + warm, job, count);
    if (s->rank == 0)
        until(&s->shared->taken, first + warm + count);
    s->flag = first + warm + count;
    return (double)(bench_now() - start);
}

/* The consumer says every quarter how far it is, so that lines move one way only. */
static void slots_stream(state *s, uint64_t first, const bench_job *job, uint64_t count)
{
    (void)job;
    uint64_t room = 0;
    for (uint64_t i = first; i < first + count; i++) {
        if (s->rank == 0) {
            while (i >= room)
                room = load(&s->shared->taken) + SLOTS;
            slot_send(s, i);
        } else {
            slot_take(s, i);
            if ((i + 1) % (SLOTS / 4) == 0 || i + 1 == first + count)
                store(&s->shared->taken, i + 1);
        }
    }
}

static size_t chunk_of(const bench_job *job)
{
    return job->size_bytes < CHUNK_BYTES ? job->size_bytes : CHUNK_BYTES;
}

/* Two copies: own memory -> ring -> own memory. */
static void chunks_stream(state *s, uint64_t first, const bench_job *job, uint64_t count)
{
    size_t chunk = chunk_of(job), at = 0;
    for (uint64_t i = first; i < first + count; i++) {
        unsigned char *place = s->shared->chunks[i % CHUNKS];
        if (s->rank == 0) {
            until(&s->shared->taken, i >= CHUNKS - 1 ? i - (CHUNKS - 1) : 0);
            memcpy(place, s->own + at, chunk);
            store(&s->shared->filled, i + 1);
        } else {
            until(&s->shared->filled, i + 1);
            memcpy(s->own + at, place, chunk);
            store(&s->shared->taken, i + 1);
        }
        at = at + chunk >= job->size_bytes ? 0 : at + chunk;
        if (s->reads && s->rank == 1 && at == 0)
            s->sum += bench_read(s->own, job->size_bytes);
    }
}

static double rate(void *context, const bench_job *job)
{
    state *s = context;
    if (s->rank > 1)
        return 0;
    return job->size_bytes <= 32 ? streamed(s, job, 1, slots_stream)
                                 : streamed(s, job, 1, chunks_stream);
}

static double buffer(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t chunks = (job->size_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    return s->rank > 1 ? 0 : streamed(s, job, chunks, chunks_stream);
}

/* The source may write to a block again when it was taken: two are in flight. */
static void attach_stream(state *s, uint64_t first, const bench_job *job, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        size_t at = i % 2 * (SHARED_BYTES / 2);
        if (s->rank == 0) {
            until(&s->shared->taken, i >= first + 2 ? i - 1 : 0);
            store(&s->shared->filled, i + 1);
            continue;
        }
        struct iovec to = {s->own + at, job->size_bytes};
        struct iovec from = {s->shared->source_own + at, job->size_bytes};
        until(&s->shared->filled, i + 1);
        if (process_vm_readv(s->shared->source, &to, 1, &from, 1, 0) != (ssize_t)job->size_bytes) {
            perror("bench: process_vm_readv");
            _exit(1);
        }
        store(&s->shared->taken, i + 1);
        s->sum += bench_read(to.iov_base, job->size_bytes);
    }
}

static double attached_buffer(void *context, const bench_job *job)
{
    return ((state *)context)->rank > 1 ? 0 : streamed(context, job, 1, attach_stream);
}

/* Keeps the compiler from merging copies whose results nobody reads. */
static void use(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static double copies(unsigned char *to, const unsigned char *from, const bench_job *job)
{
    uint64_t warm = bench_warmup(job), start = 0;
    volatile size_t size_bytes = job->size_bytes;
    for (uint64_t i = 0; i < warm + job->count; i++) {
        if (i == warm)
            start = bench_now();
        memcpy(to, from, size_bytes);
        use(to);
    }
    return (double)(bench_now() - start);
}

static double put(void *context, const bench_job *job)
{
    state *s = context;
    return s->rank ? 0 : copies(s->shared->bytes[1], s->own, job);
}

static double get(void *context, const bench_job *job)
{
    state *s = context;
    return s->rank ? 0 : copies(s->own, s->shared->bytes[1], job);
}

/* One hand-off: half of a round trip. */
static double hand_off(void *context, const bench_job *job)
{
    state *s = context;
    return s->rank > 1 ? 0 : ping_pong(s, job, nothing, nothing) / 2;
}

/* A futex in the low half of a line's word; the flags stay below 2^32. */
static _Atomic uint32_t *futex_of(bench_line *line)
{
    return (_Atomic uint32_t *)(void *)&line->word;
}

static void until_yielding(bench_line *line, uint64_t value)
{
    while (load(line) < value)
        sched_yield();
}

static void until_sleeping(bench_line *line, uint64_t value)
{
    uint64_t seen;
    while ((seen = load(line)) < value)
        bench_sleep_on(futex_of(line), (uint32_t)seen, 1000000000);
}

static void store_waking(bench_line *line, uint64_t value)
{
    store(line, value);
    bench_wake_all(futex_of(line));
}

static double token_ring(state *s, const bench_job *job, void (*wait)(bench_line *, uint64_t),
                         void (*hand)(bench_line *, uint64_t))
{
    uint64_t warm = bench_warmup(job), start = 0;
    bench_line *mine = &s->shared->hops[s->rank];
    bench_line *next = &s->shared->hops[(s->rank + 1) % s->ranks];
    uint64_t base = load(&s->shared->hops[BENCH_RANKS_MAX - 1]);
    for (uint64_t i = 1; i <= warm + job->count; i++) {
        if (i == warm + 1)
            start = bench_now();
        if (s->rank == 0)
            hand(next, base + i);
        wait(mine, base + i);
        if (s->rank != 0)
            hand(next, base + i);
    }
    uint64_t end = bench_now();
    if (s->rank == 0)
        store(&s->shared->hops[BENCH_RANKS_MAX - 1], base + warm + job->count);
    return (double)(end - start);
}

static double ring(void *context, const bench_job *job)
{
    return token_ring(context, job, until_yielding, store);
}

static double ring_busy(void *context, const bench_job *job)
{
    return token_ring(context, job, until_sleeping, store_waking);
}

static void pause_ns(uint64_t ns)
{
    for (uint64_t end = bench_now() + ns; bench_now() < end;) {
    }
}

/* Rank 1 sleeps; rank 0 sets its word and wakes it; rank 1 tells when it saw that. */
static double wake(void *context, const bench_job *job)
{
    state *s = context;
    uint64_t sum = 0, warm = bench_warmup(job);
    bench_line *call = &s->shared->lines[0], *reply = &s->shared->lines[1];
    for (uint64_t i = 0; i < warm + job->count && s->rank < 2; i++) {
        s->flag++;
        if (s->rank == 1) {
            until_sleeping(call, s->flag);
            s->shared->slots[0][0].words[0] = bench_now();
            store(reply, s->flag);
            continue;
        }
        pause_ns(200000);
        uint64_t start = bench_now();
        store_waking(call, s->flag);
        until(reply, s->flag);
        if (i >= warm)
            sum += s->shared->slots[0][0].words[0] - start;
    }
    return (double)sum;
}

static void serve_all(bench_team *team, int ranks)
{
    team->kinds[BENCH_REQUEST] = request;
    team->kinds[BENCH_RATE] = rate;
    team->kinds[BENCH_BUFFER] = buffer;
    team->kinds[BENCH_PUT] = put;
    team->kinds[BENCH_GET] = get;
    team->kinds[BENCH_BARRIER] = team->kinds[BENCH_ALLREDUCE] = ranks == 2 ? hand_off : NULL;
    team->kinds[BENCH_RING] = ring;
    team->kinds[BENCH_RING_BUSY] = ring_busy;
    team->kinds[BENCH_WAKE] = wake;
}

int main(int argc, char **argv)
{
    const char *text = getenv("BENCH_RANKS");
    state s = {.ranks = text ? atoi(text) : 1};
    s.rank = s.ranks > 0 && s.ranks <= BENCH_RANKS_MAX ? -1 : 0;
    s.shared =
        mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.shared == MAP_FAILED || s.rank == 0)
        return 1;
    s.rank = bench_team_fork(s.ranks);
    s.own = aligned_alloc(4096, SHARED_BYTES);
    if (s.rank == 0) {
        s.shared->source = getpid();
        s.shared->source_own = s.own;
    }
    bench_board *board = bench_board_open();
    if (s.rank >= 0 && s.own && board) {
        memset(s.own, 1, SHARED_BYTES);
        memset(s.shared->bytes[s.rank & 1], 1, SHARED_BYTES);
        bench_pin(s.rank);
        bench_team team = {.board = board, .rank = s.rank, .context = &s};
        const char *way = getenv("BENCH_WAY");
        s.reads = way != NULL;
        if (way != NULL)
            team.kinds[BENCH_BUFFER] = strcmp(way, "pipe") == 0 ? buffer : attached_buffer;
        else
            serve_all(&team, s.ranks);
        bench_team_serve(&team);
    }
    while (s.rank == 0 && (wait(NULL) > 0 || errno == EINTR)) {
    }
    return bench_team_empty(argc, argv) || board ? 0 : 1;
}
