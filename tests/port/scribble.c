/* Goal: a rank that writes into shared memory where it should not hangs nobody, crashes nobody else
 * and makes nothing vanish without a message. Method: jobs of three ranks send, allocate, free,
 * put, get and work on cells. Rank 1 writes a few wrong words into control blocks, boards, heap
 * tables, rings, the headers of parcels or what ranks say to each other in collectives. A job may
 * end well, with all that it has done checked, or with an error that says what was wrong. It may
 * not stop, lose messages silently, or have another rank die of a signal. Wrong words in data, or
 * in a frame in a ring, would not be noticed: none is written there.
 *
 *      scribble JOBS [SEED [AREA]]   runs so many jobs
 *      scribble job SEED AREA        is one rank of one
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/random.h"
#include "base/heap_arena.h"
#include "cell/state.h"
#include "core/board.h"
#include "port/shm/port_state.h"

enum {
    RANKS = 3,
    ROUNDS = 400,
    HELD = 16,
    PATIENCE_S = 20,
    LOG_BYTES = 16384,
    CELL = 3,
    WORDS = 4,
    MEETING_WORDS = 25
};
enum { LOST = 3, WRONG = 4 }; /* how a rank ends that notices the damage itself */

typedef enum area { CONTROLS, BOARDS, TABLES, RINGS, PARCELS, STATES, MEETINGS, AREAS } area;
static const char *const area_names[AREAS] = {"controls", "boards", "tables",  "rings",
                                              "parcels",  "states", "meetings"};

typedef struct work {
    ferry *f;
    fy_segment *segment;
    uint64_t random;
    area where;
    bool told;
    ferry_handler handler;
    int64_t sent, handled, wrong;
    void *blocks[HELD];
    uint64_t *window[RANKS];
} work;

/* An error that an operation has reported is a clear end. */
static void stop(const work *w, const char *call, int error)
{
    fprintf(stderr, "scribble: rank %d: %s: %s (%s)\n", ferry_rank(w->f), call,
            ferry_strerror(error), ferry_error_message(w->f));
    _exit(1);
}

static void must(const work *w, const char *call, int error)
{
    if (error != 0)
        stop(w, call, error);
}

/* Where a wrong word goes. */
static uint64_t *place_of(work *w, area where)
{
    const fy_segment *s = w->segment;
    uint32_t rank = (uint32_t)draw(&w->random, RANKS);
    const fy_arena arena = arena_at(s, rank);
    const fy_board *board = board_at(s, rank);
    size_t spans = 8, span = draw(&w->random, spans);
    _Atomic uint64_t *registry = (_Atomic uint64_t *)(uintptr_t)board->registry;
    switch (where) {
    case CONTROLS: /* not the names and the answer, which are text */
        return (uint64_t *)rank_at(s->base, rank) +
               draw(&w->random, offsetof(shm_rank, name) / sizeof(uint64_t));
    case BOARDS: /* the cells in use, and what is before them */
        return (uint64_t *)board_at(s, rank) +
               draw(&w->random, (offsetof(fy_board, cells) + (CELL + 1) * sizeof(fy_cell)) / 8);
    case MEETINGS: /* lines of calls, what is called by frames, and who waits */
        return (uint64_t *)(void *)((char *)board_at(s, rank) + FY_BOARD_CORE_OFFSET) +
               draw(&w->random, MEETING_WORDS);
    case RINGS: {
        shm_ring *ring =
            ring_at(s, rank, (uint32_t)draw(&w->random, RANKS), (uint32_t)draw(&w->random, 2));
        if (draw(&w->random, 3) == 0)
            return (uint64_t *)ring + draw(&w->random, sizeof(*ring) / 8);
        return (uint64_t *)&ring_slots(ring)[draw(&w->random, s->ring_slots / 4)];
    }
    case TABLES: {
        if (draw(&w->random, 3) == 0)
            return (uint64_t *)(void *)arena.base +
                   draw(&w->random, sizeof(arena_head) / 8 + spans);
        if (draw(&w->random, 2) == 0)
            return (uint64_t *)info_of(&arena, span) + draw(&w->random, sizeof(span_info) / 8);
        /* The records of a run of small blocks. */
        uint64_t tag = *tag_of(&arena, span);
        uint32_t size_class = (uint32_t)(tag >> 8) & 0xff;
        bool beside = (tag & 0xff) == RUN_SMALL && tag >> 16 == 0 && size_class < CLASS_COUNT &&
                      fy_class_bytes(size_class) < RUN_BLOCK_BYTES;
        return beside ? (uint64_t *)(void *)data_of(&arena, span) +
                            draw(&w->random,
                                 fy_run_blocks(size_class) < 16 ? fy_run_blocks(size_class) : 16)
                      : (uint64_t *)info_of(&arena, span) + draw(&w->random, sizeof(span_info) / 8);
    }
    default:
        for (uint32_t i = 0; registry != NULL && i < 64; i++) {
            uint64_t at = registry[draw(&w->random, 8)];
            if (at != 0 && at - (uintptr_t)s->base < s->total_bytes)
                return (uint64_t *)(uintptr_t)at + draw(&w->random, offsetof(fy_parcel, holds) / 8);
        }
        return NULL;
    }
}

static void scribble(work *w)
{
    for (uint64_t count = 1 + draw(&w->random, WORDS); count > 0; count--) {
        uint64_t *at = place_of(w, w->where);
        if (at == NULL)
            continue;
        uint64_t old = *at, value = 0;
        switch (draw(&w->random, 6)) {
        case 0:
            value = w->random;
            break;
        case 1:
            break;
        case 2:
            value = UINT64_MAX;
            break;
        case 3:
            value = draw(&w->random, 16);
            break;
        case 4:
            value = old ^ UINT64_C(1) << draw(&w->random, 64);
            break;
        default:
            value = at[1];
        }
        fprintf(stderr, "scribble: %s: 0x%zx: 0x%llx instead of 0x%llx\n", area_names[w->where],
                (size_t)((char *)at - w->segment->base), (unsigned long long)value,
                (unsigned long long)old);
        /* In a slot it writes the turn alone, since the rest is the frame. It writes no turn that
         * the slot could have: that would make a frame of the bytes there. In a parcel it writes
         * the lock, but not the references. */
        if (w->where == RINGS)
            *(volatile uint32_t *)at = (uint32_t)value | 0x10000;
        else if (w->where == PARCELS)
            *(volatile uint32_t *)at = (uint32_t)value;
        else
            *(volatile uint64_t *)at = value;
    }
}

/* Writes what ranks say of themselves in the control blocks, when nothing else ends the job: at the
 * begin that they have opened rings, before the end that they are there. */
static void scribble_states(work *w, bool begin)
{
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        shm_rank *control = rank_at(w->segment->base, rank);
        for (uint32_t i = 0; begin && i < SHM_CHANNELS; i++)
            control->open[i][0] = 0;
        if (begin || draw(&w->random, 2) == 0)
            continue;
        uint32_t value = SHM_DEAD + 1 + (uint32_t)draw(&w->random, 8);
        fprintf(stderr, "scribble: states: %u instead of %u of rank %u\n", value, control->state,
                rank);
        control->state = value;
    }
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    work *w = ferry_user_data(f);
    const unsigned char *bytes = message->data;
    (void)source;
    for (size_t i = 0; i < message->size_bytes; i++)
        if (bytes[i] != (unsigned char)message->words[0]) {
            w->wrong++;
            break;
        }
    w->handled++;
}

static void send_some(work *w)
{
    static const size_t sizes[] = {0, 8, 100, 3000, 40000};
    static _Thread_local unsigned char bytes[40000];
    int rank = (int)draw(&w->random, RANKS);
    unsigned char value = (unsigned char)draw(&w->random, 256);
    const ferry_message message = {.handler = w->handler,
                                   .word_count = 1,
                                   .words = {value},
                                   .data = bytes,
                                   .size_bytes = sizes[draw(&w->random, 5)]};
    memset(bytes, value, message.size_bytes);
    must(w, "request", ferry_request_send(w->f, rank, &message, NULL));
    w->sent++;
}

static void use_heap(work *w)
{
    void **held = &w->blocks[draw(&w->random, HELD)];
    if (*held != NULL)
        must(w, "free", ferry_free(w->f, *held));
    *held = NULL;
    must(w, "alloc",
         ferry_alloc(w->f, 1 + draw(&w->random, UINT64_C(1) << draw(&w->random, 19)), held));
}

static void use_memory(work *w)
{
    int rank = (int)draw(&w->random, RANKS);
    uint64_t mine[4], own = (uint64_t)ferry_rank(w->f);
    uint64_t *at = w->window[rank] + own * 4;
    for (int i = 0; i < 4; i++)
        mine[i] = w->random + (uint64_t)i;
    uint64_t before = mine[0];
    must(w, "put", ferry_put(w->f, rank, at, mine, sizeof(mine), NULL));
    must(w, "get", ferry_get(w->f, rank, mine, at, sizeof(mine), NULL));
    w->wrong += mine[0] != before;
}

static void use_cells(work *w)
{
    const ferry_cell cell = {(int)draw(&w->random, RANKS), CELL};
    ferry_parcel parcel;
    uint64_t *data;
    size_t size;
    int error;
    if (draw(&w->random, 2) == 0) {
        must(w, "create", ferry_parcel_create(w->f, 64, &parcel, (void **)&data));
        for (int i = 0; i < 8; i++)
            data[i] = w->random;
        error = ferry_cell_enqueue(w->f, cell, parcel, FERRY_GIVE, 0);
    } else {
        error = draw(&w->random, 2) == 0 ? ferry_cell_dequeue(w->f, cell, &parcel, 0)
                                         : ferry_cell_read(w->f, cell, &parcel, 0);
        if (error == FERRY_EAGAIN)
            return;
        const uint64_t *read = error == 0 ? ferry_parcel_data(w->f, parcel, &size) : NULL;
        w->wrong += read != NULL && size >= 64 && read[0] != read[7];
        if (error == 0 && (read == NULL || size != 64))
            stop(w, "parcel_data", FERRY_EINVAL);
        if (error == 0)
            error = ferry_parcel_release(w->f, parcel);
    }
    must(w, "cell", error);
}

static void finish(work *w)
{
    int64_t sums[3] = {w->sent, w->handled, w->wrong};
    must(w, "quiesce", ferry_quiesce(w->f));
    sums[1] = w->handled;
    sums[2] = w->wrong;
    must(w, "allreduce", ferry_allreduce(w->f, FERRY_INT64, FERRY_SUM, sums, sums, 3));
    if (sums[0] != sums[1] || sums[2] != 0) {
        fprintf(stderr, "scribble: rank %d: sent %lld, handled %lld, wrong %lld\n",
                ferry_rank(w->f), (long long)sums[0], (long long)sums[1], (long long)sums[2]);
        _exit(sums[2] != 0 ? WRONG : LOST);
    }
    for (int i = 0; i < HELD; i++)
        must(w, "free", ferry_free(w->f, w->blocks[i]));
}

static int rank_main(ferry *f, int argc, char **argv)
{
    work *w = calloc(1, sizeof(*w));
    if (w == NULL || argc < 4)
        return 1;
    uint64_t seed = strtoull(argv[2], NULL, 10), rank = (uint64_t)ferry_rank(f);
    w->f = f;
    w->where = (area)atoi(argv[3]);
    w->random = (seed * 10 + rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
    w->segment = state_of(fy_port_of(f))->segment;
    ferry_user_data_set(f, w);
    must(w, "register", ferry_handler_register(f, "request", on_request, &w->handler));
    void *window;
    must(w, "alloc", ferry_alloc(f, RANKS * 32, &window));
    int64_t mine[RANKS] = {0}, all[RANKS];
    mine[rank] = (int64_t)(uintptr_t)window;
    must(w, "allreduce", ferry_allreduce(f, FERRY_INT64, FERRY_SUM, mine, all, RANKS));
    for (int i = 0; i < RANKS; i++)
        w->window[i] = (uint64_t *)(uintptr_t)all[i];
    uint64_t when = draw(&w->random, ROUNDS);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        send_some(w);
        for (int j = 0; j < 4; j++)
            use_heap(w);
        use_memory(w);
        use_cells(w);
        if (i % 50 == 0)
            must(w, "barrier", ferry_barrier(f));
        if (w->where == STATES && rank == 1 && (i == 0 || i == ROUNDS - 1))
            scribble_states(w, i == 0);
        else if (w->where != STATES && i % (ROUNDS / 4) == when % (ROUNDS / 4) && rank == 1)
            scribble(w);
        (void)ferry_poll(f);
    }
    finish(w);
    free(w);
    return 0;
}

/* The driver. */

/* Reads until the end of the job, or until it has taken too long. Whether it ended. */
static bool read_log(int fd, pid_t pid, char *log, int *status)
{
    size_t used = 0;
    time_t end = time(NULL) + PATIENCE_S;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (bool over = false;; usleep(2000)) {
        ssize_t got = read(fd, log + used, LOG_BYTES - 1 - used);
        if (got > 0)
            used += (size_t)got;
        log[used] = '\0';
        if (over && got <= 0)
            return true;
        over = over || waitpid(pid, status, WNOHANG) == pid;
        if (!over && time(NULL) > end)
            return false;
    }
}

/* The error of a job; NULL: it has none. */
static const char *judge(bool ended, int status, const char *log)
{
    if (!ended)
        return "it hangs";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    /* "rank 2 (process 4711) was killed by signal 11 (Segmentation fault), ..." */
    const char *signal_line = strstr(log, "killed by signal");
    if (signal_line != NULL && strstr(log, "rank 1 (process") == NULL)
        return "another rank died of a signal";
    /* A rank that has ended with an error leaves others with less than was sent. */
    bool told = strstr(log, "overwritten") != NULL || strstr(log, "damaged") != NULL ||
                strstr(log, "FERRY_E") != NULL || strstr(log, "dropped") != NULL;
    if (strstr(log, "handled ") != NULL && !told)
        return strstr(log, "wrong 0") != NULL ? "messages are lost" : "data are wrong";
    return told ? NULL : "no error was told";
}

static const char *run_job(const char *program, uint64_t seed, int where, char *log)
{
    int ends[2], status = 0;
    char text[2][32];
    snprintf(text[0], sizeof(text[0]), "%llu", (unsigned long long)seed);
    snprintf(text[1], sizeof(text[1]), "%d", where);
    if (pipe(ends) != 0)
        return "no pipe";
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        setenv("FERRY_RANKS", "3", 1);
        setenv("FERRY_HEAP_BYTES", "64M", 1);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        execl(program, program, "job", text[0], text[1], (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    bool ended = read_log(ends[0], pid, log, &status);
    if (!ended) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    close(ends[0]);
    return judge(ended, status, log);
}

int main(int argc, char **argv)
{
    static char log[LOG_BYTES];
    if (argc > 1 && strcmp(argv[1], "job") == 0)
        return ferry_main(argc, argv, rank_main, NULL);
    long jobs = argc > 1 ? atol(argv[1]) : 50, failed = 0, counts[AREAS] = {0};
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (long i = 0; i < jobs; i++, seed++) {
        int where = argc > 3 ? atoi(argv[3]) : (int)(i % AREAS);
        const char *wrong = run_job(argv[0], seed, where, log);
        if (wrong == NULL)
            continue;
        failed++;
        counts[where]++;
        printf("FAILED: %s; to repeat it: %s 1 %llu %d\n%s\n", wrong, argv[0],
               (unsigned long long)seed, where, log);
        fflush(stdout);
    }
    printf("%ld jobs, %ld failed:", jobs, failed);
    for (int i = 0; i < AREAS; i++)
        printf(" %s %ld", area_names[i], counts[i]);
    printf("\n");
    return failed != 0;
}
