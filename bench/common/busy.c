#include "common/busy.h"

#include "common/board.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void compute(int core)
{
    volatile uint64_t x = 1;
    bench_pin(core);
    for (;;)
        x = x * 6364136223846793005u + 1442695040888963407u;
}

void bench_busy_start(bench_busy *busy)
{
    pid_t parent = getpid();
    int cores = bench_cores();
    for (int i = 0; i < cores && i < BENCH_BUSY_MAX; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent)
                compute(i);
            _exit(1);
        }
        if (pid > 0)
            busy->pids[busy->count++] = pid;
    }
}

void bench_busy_stop(bench_busy *busy)
{
    for (int i = 0; i < busy->count; i++)
        kill(busy->pids[i], SIGKILL);
    for (int i = 0; i < busy->count; i++)
        waitpid(busy->pids[i], NULL, 0);
    busy->count = 0;
}
