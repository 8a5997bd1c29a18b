/* Fiber: a stack, and the point at which its execution goes on. Fibers are switched by explicit
 * calls.
 *
 * One thread runs all fibers of a world. A switch saves what a callee must save by the calling
 * convention. Invariant: the lowest bytes of a stack have a pattern. After an overrun
 * fy_fiber_intact finds that it is gone. Stacks have no guard pages: with thousands of them, these
 * would exceed the kernel's limit of mappings. */
#ifndef FY_FIBER_H
#define FY_FIBER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fy_fiber {
    /* Where it goes on: a stack pointer, or a ucontext_t where there is no assembly. */
    void *context;
    struct fy_fiber *came_from; /* the fiber that switched to it last */
    unsigned char *stack; /* its lowest byte; of the thread's own stack known to sanitizers alone */
    size_t stack_bytes;
    void (*entry)(void *arg);
    void *arg;
    void *sanitizer; /* fake stack of AddressSanitizer, fiber of ThreadSanitizer */
} fy_fiber;

/* The least stack a fiber may have. */
#define FY_FIBER_STACK_MIN 16384

/* Makes a fiber of the calling thread itself, to switch away from and back to; undone by fini. */
int fy_fiber_thread(fy_fiber *fiber);

/* A fiber that will run `entry(arg)` on `stack`, which it borrows until fini and which is 16-byte
 * aligned. `entry` ends with fy_fiber_exit. FERRY_ENOMEM. */
int fy_fiber_init(fy_fiber *fiber, void *stack, size_t stack_bytes, void (*entry)(void *arg),
                  void *arg);

/* Ends a fiber that has returned or will never run again. */
void fy_fiber_fini(fy_fiber *fiber);

/* Goes on with `to`. Returns when a fiber switches back to `from`. */
void fy_fiber_switch(fy_fiber *from, fy_fiber *to);

/* Switches to `to` for the last time: `from` has ended. */
_Noreturn void fy_fiber_exit(fy_fiber *from, fy_fiber *to);

/* Whether the pattern is intact, so the stack was not overrun, as far as it tells. `whole`: all of
 * it, else the part nearest to what is used. */
bool fy_fiber_intact(const fy_fiber *fiber, bool whole);

/* Has what the next switch to the fiber reads fetched into the cache. */
void fy_fiber_fetch(const fy_fiber *fiber);

#endif
