#include "common/team.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PROBE_BATCHES = 8, PROBE_TRIPS = 150 };

/* 0 when this rank's benchmark is gone. */
static bool driver_lives(const bench_board *board)
{
    return kill(board->driver, 0) == 0 || errno == EPERM;
}

/* A spinning rank must not outlive its benchmark or its partner forever. */
static void await(bench_board *board, bench_line *line, uint64_t value)
{
    uint64_t spins = 0;
    while (atomic_load_explicit(&line->word, memory_order_acquire) != value)
        if (++spins % 100000000 == 0 && !driver_lives(board))
            _exit(1);
}

/* One way, the fastest of some batches: others' work on these cores does not count. */
static double probe(bench_board *board, int rank)
{
    double best = 0;
    uint64_t value = atomic_load_explicit(&board->pong.word, memory_order_relaxed);
    for (int batch = 0; batch < PROBE_BATCHES; batch++) {
        uint64_t start = bench_now();
        for (int i = 0; i < PROBE_TRIPS; i++) {
            value++;
            if (rank == 0)
                atomic_store_explicit(&board->ping.word, value, memory_order_release);
            else
                await(board, &board->ping, value);
            if (rank == 0)
                await(board, &board->pong, value);
            else
                atomic_store_explicit(&board->pong.word, value, memory_order_release);
        }
        double one_way = (double)(bench_now() - start) / (2.0 * PROBE_TRIPS);
        if (best == 0 || one_way < best)
            best = one_way;
    }
    return best;
}

/* Sleeps until `*word` has reached `turn`; leaves the process when the benchmark is gone. */
static void gate(bench_board *board, _Atomic uint32_t *word, uint32_t turn)
{
    for (;;) {
        uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (seen == turn)
            return;
        bench_sleep_on(word, seen, 500000000);
        if (!driver_lives(board))
            _exit(1);
    }
}

static void arrive(bench_board *board)
{
    atomic_fetch_add_explicit(&board->done, 1, memory_order_acq_rel);
    bench_wake_all(&board->done);
}

static void all_arrived(bench_board *board)
{
    gate(board, &board->done, (uint32_t)board->ranks - 1);
    atomic_store_explicit(&board->done, 0, memory_order_release);
}

/* Runs the job, and notes the processor time that this rank has spent in it. */
static double run(bench_team *team, const bench_job *job)
{
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    double value = team->kinds[job->kind](team->context, job);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    if (job->use)
        team->board->values[team->rank] =
            (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    return value;
}

static double use_of(const bench_board *board, uint64_t wall_ns)
{
    double used_ns = 0;
    for (int i = 0; i < board->ranks; i++)
        used_ns += board->values[i];
    return 100 * used_ns / (board->ranks * (double)wall_ns);
}

/* One job on rank 0, which answers. */
static void lead(bench_team *team, uint32_t turn)
{
    bench_board *board = team->board;
    bench_answer answer = {0};
    if (board->job.probe)
        answer.before_ns = probe(board, 0);
    atomic_store_explicit(&board->probed, turn, memory_order_release);
    bench_wake_all(&board->probed);
    uint64_t start = bench_now();
    answer.value = run(team, &board->job);
    uint64_t end = bench_now();
    all_arrived(board);
    if (board->job.use)
        answer.value = use_of(board, end - start);
    atomic_store_explicit(&board->over, turn, memory_order_release);
    bench_wake_all(&board->over);
    if (board->job.probe)
        answer.after_ns = probe(board, 0);
    board->answer = answer;
    atomic_store_explicit(&board->ended, turn, memory_order_release);
    bench_wake_all(&board->ended);
}

/* One job on any other rank. */
static void follow(bench_team *team, uint32_t turn)
{
    bench_board *board = team->board;
    if (board->job.probe && team->rank == 1)
        probe(board, 1);
    gate(board, &board->probed, turn);
    bench_job job = board->job;
    run(team, &job);
    arrive(board);
    if (job.probe && team->rank == 1) {
        /* asleep until then: ranks that share this core may still be needed by rank 0 */
        gate(board, &board->over, turn);
        probe(board, 1);
    }
}

/* A page that several ranks share counts for each of them in part. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double bytes = 0;
    unsigned long kib;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %lu", &kib) == 1)
            bytes = (double)kib * 1024;
    if (file)
        fclose(file);
    return bytes;
}

static bool is_libc(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "ld-linux", 8) == 0;
}

static double library_bytes(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[1024], last[512] = "";
    double sum = 0;
    while (file && fgets(line, sizeof line, file)) {
        char path[512];
        struct stat status;
        if (sscanf(line, "%*s %*s %*s %*s %*s %511s", path) != 1 || path[0] != '/' ||
            !strstr(path, ".so") || is_libc(path) || strcmp(path, last) == 0)
            continue;
        memcpy(last, path, sizeof last);
        if (stat(path, &status) == 0)
            sum += (double)status.st_size;
    }
    if (file)
        fclose(file);
    return sum;
}

static double measure_memory(void *context, const bench_job *job)
{
    bench_team *team = context;
    (void)job;
    team->board->values[team->rank] = resident_bytes();
    if (team->rank != 0) {
        return 0;
    }
    gate(team->board, &team->board->done, (uint32_t)team->board->ranks - 1);
    double sum = 0;
    for (int i = 0; i < team->board->ranks; i++)
        sum += team->board->values[i];
    return sum / team->board->ranks;
}

static double measure_library(void *context, const bench_job *job)
{
    bench_team *team = context;
    (void)job;
    return team->rank == 0 ? library_bytes() : 0;
}

int bench_team_fork(int ranks)
{
    for (int rank = 1; rank < ranks; rank++) {
        pid_t parent = getpid(), pid = fork();
        if (pid < 0)
            return -1;
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            return rank;
        }
    }
    return 0;
}

bool bench_team_empty(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--empty") == 0;
}

static void tell_kinds(const bench_team *team)
{
    for (int i = 0; i < BENCH_KINDS; i++)
        team->board->kinds[i] =
            team->kinds[i] || (team->sized && (i == BENCH_MEMORY || i == BENCH_LIBRARY));
    atomic_store_explicit(&team->board->ready, 1, memory_order_release);
    bench_wake_all(&team->board->ready);
}

static void serve_job(bench_team *team, uint32_t turn)
{
    bench_team common = *team;
    common.context = team;
    common.kinds[BENCH_MEMORY] = measure_memory;
    common.kinds[BENCH_LIBRARY] = measure_library;
    bench_team *served = team->kinds[team->board->job.kind] ? team : &common;
    if (team->rank == 0)
        lead(served, turn);
    else
        follow(served, turn);
}

void bench_team_serve(bench_team *team)
{
    bench_board *board = team->board;
    if (team->rank == 0) {
        all_arrived(board);
        tell_kinds(team);
    } else {
        arrive(board);
    }
    for (uint32_t turn = 1;; turn++) {
        gate(board, &board->turn, turn);
        if (board->job.kind == BENCH_KINDS)
            return;
        serve_job(team, turn);
    }
}
