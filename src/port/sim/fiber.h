/* Fiber: a stack of its own and the place where its execution stands; switched by hand.
 *
 * One thread runs all fibers of a world; a switch saves what the calling convention says a callee
 * saves. Invariant: the lowest bytes of a stack hold a pattern; fy_fiber_intact finds it gone after
 * an overrun. Stacks have no guard pages: thousands of them would exceed the kernel's limit of
 * mappings. */
#ifndef FY_FIBER_H
#define FY_FIBER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fy_fiber {
    void
        *context; /* where it stands: a stack pointer, or a ucontext_t where there is no assembly */
    unsigned char *stack; /* lowest byte; of the thread's own stack only known to sanitizers */
    size_t stack_bytes;
    void (*entry)(void *arg);
    void *arg;
    struct fy_fiber *came_from; /* who switched here last */
    void *sanitizer;            /* fake stack of AddressSanitizer, fiber of ThreadSanitizer */
} fy_fiber;

/* The least stack a fiber may have. */
#define FY_FIBER_STACK_MIN 16384

/* The calling thread itself, to switch away from and back to; undone by fini. FERRY_ENOMEM. */
int fy_fiber_thread(fy_fiber *fiber);

/* A fiber that will run `entry(arg)` on `stack`, which it borrows until fini and which is 16-byte
 * aligned. `entry` ends with fy_fiber_exit. FERRY_ENOMEM. */
int fy_fiber_init(fy_fiber *fiber, void *stack, size_t stack_bytes, void (*entry)(void *arg),
                  void *arg);

/* For a fiber that has ended or will never run again. */
void fy_fiber_fini(fy_fiber *fiber);

/* Goes on with `to`; returns when someone switches back to `from`. */
void fy_fiber_switch(fy_fiber *from, fy_fiber *to);

/* The last switch of `from`. */
_Noreturn void fy_fiber_exit(fy_fiber *from, fy_fiber *to);

/* Whether the stack was never overrun, as far as the pattern tells. */
bool fy_fiber_intact(const fy_fiber *fiber);

#endif
