#include "base/crash.h"

#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum { STACK_BYTES = 128 * 1024, FRAMES_MAX = 48, PATIENCE_S = 2 };
static const uint64_t magic = UINT64_C(0x6372617368657321);
static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

struct fy_crash {
    fy_crash_fn *describe;
    void *arg;
    pid_t process; /* a crash of a child that it forks is told, an exit is not */
    bool watches;
};

/* At the start of the signal stack. */
typedef struct mark {
    uint64_t magic;
    const fy_crash *crash;
} mark;

stack_t fy_crash_stack(void)
{
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0 || stack.ss_size != STACK_BYTES ||
        (stack.ss_flags & SS_DISABLE) != 0 || ((const mark *)stack.ss_sp)->magic != magic)
        stack.ss_flags = SS_DISABLE;
    return stack;
}

static const fy_crash *watcher(void)
{
    stack_t stack = fy_crash_stack();
    return stack.ss_flags & SS_DISABLE ? NULL : ((const mark *)stack.ss_sp)->crash;
}

/* The dynamic linker may load libgcc for the backtrace, which never returns if this thread crashed
 * with its lock or that of malloc. So a timer sends the signal again, which then ends the process.
 */
static void limit_time(int number)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    const struct itimerspec when = {.it_value = {.tv_sec = PATIENCE_S}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        (void)timer_settime(timer, 0, &when, NULL);
}

/* The signal's action is the default again, and it is not blocked. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    char text[160] = "";
    void *frames[FRAMES_MAX];
    const fy_crash *crash = watcher();
    (void)context;
    if (crash != NULL && crash->process != getpid()) {
        fy_log_line(-1,
                    "process %d was forked by a rank (process %d): SIG%s; such a process may not "
                    "call Ferry, nor touch memory of ferry_alloc",
                    (int)getpid(), (int)crash->process, sigabbrev_np(number));
    } else if (crash != NULL) {
        crash->describe(crash->arg, info->si_addr, text, sizeof(text));
        fy_log_line(-1, "%s: SIG%s at address %p; backtrace:", text, sigabbrev_np(number),
                    info->si_code > 0 ? info->si_addr : NULL);
        limit_time(number);
        backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    }
    raise(number);
}

/* Success must not be told of a job that has not ended. */
static void on_end(int status, void *arg)
{
    char text[160];
    fy_crash *crash = arg;
    const fy_crash *here = watcher();
    if (!crash->watches) {
        free(crash); /* nobody else looks at it any more */
        return;
    }
    if (status != 0 || crash->process != getpid())
        return;
    here = here != NULL ? here : crash; /* the program may have a signal stack of its own */
    here->describe(here->arg, NULL, text, sizeof(text));
    fy_log_line(-1, "%s: exit(0) was called before the job had ended; the status is 1", text);
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

fy_crash *fy_crash_watch(fy_crash_fn *describe, void *arg)
{
    void *memory =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fy_crash *crash = memory == MAP_FAILED ? NULL : malloc(sizeof(*crash));
    if (crash == NULL)
        return NULL;
    *crash = (fy_crash){describe, arg, getpid(), true};
    *(mark *)memory = (mark){magic, crash};
    const stack_t stack = {.ss_sp = memory, .ss_size = STACK_BYTES};
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags =
                                   (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER)};
    stack_t old;
    if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE) != 0)
        (void)sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &action, NULL);
    }
    (void)on_exit(on_end, crash);
    return crash;
}

void fy_crash_unwatch(fy_crash *crash)
{
    stack_t stack;
    if (crash == NULL)
        return;
    crash->watches = false; /* it stays, since on_end looks at it */
    if (watcher() != crash || sigaltstack(NULL, &stack) != 0)
        return;
    void *memory = stack.ss_sp;
    stack.ss_flags = SS_DISABLE;
    if (sigaltstack(&stack, NULL) == 0)
        (void)munmap(memory, STACK_BYTES);
}
