/* The watchdog of the conformance suite. The ranks of a process run the same case. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cases.h"

enum { RANKS_MAX = 64, CASE_SECONDS = 100 };

/* Written by the ranks, and read by the handler of the signal. */
static _Atomic(const char *) waits[RANKS_MAX];
static _Atomic(const char *) running;
static _Atomic int ranks_inside;

const char *fy_waits_for(fy_port *port, const char *what)
{
    return atomic_exchange(&waits[fy_info_of(port).rank % RANKS_MAX], what);
}

static void tell(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    (void)!write(STDERR_FILENO, text, length);
}

static void when_late(int number)
{
    (void)number;
    for (int rank = 0; rank < RANKS_MAX; rank++) {
        const char digits[] = {(char)('0' + rank / 10), (char)('0' + rank % 10), '\0'};
        if (waits[rank] == NULL)
            continue;
        tell(running);
        tell(" does not end: rank ");
        tell(rank < 10 ? digits + 1 : digits);
        tell(" waits for ");
        tell(waits[rank]);
        tell("\n");
    }
    _exit(EXIT_FAILURE);
}

void fy_case_run(const char *name, fy_case *run, fy_port *port)
{
    const char *text = getenv("CONFORMANCE_SECONDS");
    if (fy_port_check(port) != 0) {
        fprintf(stderr, "%s: %s\n", name, fy_error_text());
        exit(EXIT_FAILURE);
    }
    running = name;
    (void)fy_waits_for(port, "nothing: it computes, or a call of the port does not return");
    if (ranks_inside++ == 0) {
        (void)signal(SIGALRM, when_late);
        (void)alarm(text != NULL ? (unsigned)atoi(text) : CASE_SECONDS);
    }
    run(port);
    (void)fy_waits_for(port, NULL);
    if (--ranks_inside == 0)
        (void)alarm(0);
}
