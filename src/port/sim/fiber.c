/* Switching: push what the callee saves, exchange stack pointers, pop, return. A new fiber's stack
 * is made up so that the first switch to it returns into fy_fiber_start, which finds the fiber in a
 * saved register. Each sanitizer is told of every switch, else it takes one stack for the other.
 *
 * The thread sanitizer also counts calls and returns for the fiber that it believes to run. So the
 * functions that switch are inline even without optimisation: none begins on one fiber and returns
 * on another. */
#include "port/sim/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/error.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FY_FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FY_FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FY_FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FY_FIBER_TSAN 1
#endif

#if defined(FY_FIBER_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(FY_FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(FY_FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define FY_FIBER_UCONTEXT 1
#endif
#if defined(FY_FIBER_UCONTEXT)
#include <ucontext.h>
#endif

enum { CANARY_BYTES = 512, CANARY_STRIDE = 64, CANARY_NEAREST = CANARY_BYTES - CANARY_STRIDE };

/* A rank that goes on and waits again mostly uses so much of its stack. */
enum { FETCH_BYTES = 768, FETCH_STRIDE = 64 };
#define CANARY 0x5afe57ac0000c0deu

static void canary_set(fy_fiber *fiber)
{
    for (size_t i = 0; i < CANARY_BYTES; i += sizeof(uint64_t)) {
        uint64_t word = CANARY + i;
        memcpy(fiber->stack + i, &word, sizeof(word));
    }
}

bool fy_fiber_intact(const fy_fiber *fiber, bool whole)
{
    for (size_t i = whole ? 0 : CANARY_NEAREST; i < CANARY_BYTES; i += CANARY_STRIDE) {
        uint64_t word;
        memcpy(&word, fiber->stack + i, sizeof(word));
        if (word != CANARY + i)
            return false;
    }
    return true;
}

static inline __attribute__((always_inline)) void fiber_announce(fy_fiber *from, fy_fiber *to,
                                                                 bool last)
{
#if defined(FY_FIBER_ASAN)
    __sanitizer_start_switch_fiber(last ? NULL : &from->sanitizer, to->stack, to->stack_bytes);
#endif
#if defined(FY_FIBER_TSAN)
    __tsan_switch_to_fiber(to->sanitizer, 0);
#endif
    (void)from;
    (void)to;
    (void)last;
}

/* On the new stack. The extent of the thread's own stack is learnt when it is left first. */
static inline __attribute__((always_inline)) void fiber_arrived(fy_fiber *self)
{
#if defined(FY_FIBER_ASAN)
    const void *bottom = NULL;
    size_t size_bytes = 0;
    __sanitizer_finish_switch_fiber(self->sanitizer, &bottom, &size_bytes);
    if (self->came_from->stack == NULL) {
        self->came_from->stack = (unsigned char *)(uintptr_t)bottom;
        self->came_from->stack_bytes = size_bytes;
    }
#endif
    (void)self;
}

static _Noreturn void fiber_run(fy_fiber *fiber)
{
    fiber_arrived(fiber);
    fiber->entry(fiber->arg);
    abort(); /* entry ends with fy_fiber_exit */
}

#if defined(FY_FIBER_UCONTEXT)

static int context_init(fy_fiber *fiber)
{
    fiber->context = calloc(1, sizeof(ucontext_t));
    return fiber->context == NULL ? FERRY_ENOMEM : 0;
}

/* makecontext passes ints alone. */
static void ucontext_entry(unsigned high, unsigned low)
{
    fiber_run((fy_fiber *)((uintptr_t)high << 16 << 16 | (uintptr_t)low));
}

static void context_fill(fy_fiber *fiber)
{
    ucontext_t *context = fiber->context;
    getcontext(context);
    context->uc_stack.ss_sp = fiber->stack;
    context->uc_stack.ss_size = fiber->stack_bytes;
    context->uc_link = NULL;
    uintptr_t address = (uintptr_t)fiber;
    makecontext(context, (void (*)(void))ucontext_entry, 2, (unsigned)(address >> 16 >> 16),
                (unsigned)address);
}

static void context_fini(fy_fiber *fiber)
{
    free(fiber->context);
}

static inline __attribute__((always_inline)) void context_swap(fy_fiber *from, fy_fiber *to)
{
    swapcontext(from->context, to->context);
}

#else

/* Saves the callee's registers on the stack, its end in `*save`, and goes on from `load`. */
void fy_fiber_swap(void **save, void *load);
/* Where a new fiber starts; finds the fiber and `run` in registers. */
void fy_fiber_start(void);

#if defined(__x86_64__)

/* r12: the fiber; r13: what to call. The control words of both floating point units are part of the
 * calling convention. */
__asm__(".text\n"
        ".globl fy_fiber_swap\n"
        ".hidden fy_fiber_swap\n"
        ".type fy_fiber_swap, @function\n"
        ".balign 16\n"
        "fy_fiber_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fy_fiber_swap, .-fy_fiber_swap\n"
        ".globl fy_fiber_start\n"
        ".hidden fy_fiber_start\n"
        ".type fy_fiber_start, @function\n"
        ".balign 16\n"
        "fy_fiber_start:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    movq %r12, %rdi\n"
        "    callq *%r13\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size fy_fiber_start, .-fy_fiber_start\n");

enum { FRAME_WORDS = 8, SLOT_RUN = 3, SLOT_FIBER = 4, SLOT_RETURN = 7 };

static void frame_control_words(uint64_t *frame)
{
    uint32_t mxcsr;
    uint16_t control;
    __asm__("stmxcsr %0" : "=m"(mxcsr));
    __asm__("fnstcw %0" : "=m"(control));
    frame[0] = (uint64_t)control << 32 | mxcsr;
}

#else /* __aarch64__ */

/* x19: the fiber; x20: what to call. */
__asm__(".text\n"
        ".globl fy_fiber_swap\n"
        ".hidden fy_fiber_swap\n"
        ".type fy_fiber_swap, %function\n"
        ".balign 16\n"
        "fy_fiber_swap:\n"
        "    stp x19, x20, [sp, #-160]!\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    ldp x19, x20, [sp], #160\n"
        "    ret\n"
        ".size fy_fiber_swap, .-fy_fiber_swap\n"
        ".globl fy_fiber_start\n"
        ".hidden fy_fiber_start\n"
        ".type fy_fiber_start, %function\n"
        ".balign 16\n"
        "fy_fiber_start:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    mov x0, x19\n"
        "    blr x20\n"
        "    brk #1\n"
        "    .cfi_endproc\n"
        ".size fy_fiber_start, .-fy_fiber_start\n");

enum { FRAME_WORDS = 20, SLOT_FIBER = 0, SLOT_RUN = 1, SLOT_RETURN = 11 };

static void frame_control_words(uint64_t *frame)
{
    (void)frame;
}

#endif

static int context_init(fy_fiber *fiber)
{
    fiber->context = NULL;
    return 0;
}

/* The frame that fy_fiber_swap will pop; the stack is 16-byte aligned when it is gone. */
static void context_fill(fy_fiber *fiber)
{
    uint64_t *frame = (uint64_t *)(void *)(fiber->stack + fiber->stack_bytes) - 2 - FRAME_WORDS;
    memset(frame, 0, (FRAME_WORDS + 2) * sizeof(*frame));
    frame_control_words(frame);
    frame[SLOT_FIBER] = (uintptr_t)fiber;
    frame[SLOT_RUN] = (uintptr_t)fiber_run;
    frame[SLOT_RETURN] = (uintptr_t)fy_fiber_start;
    fiber->context = frame;
}

static void context_fini(fy_fiber *fiber)
{
    (void)fiber;
}

static inline __attribute__((always_inline)) void context_swap(fy_fiber *from, fy_fiber *to)
{
    fy_fiber_swap(&from->context, to->context);
}

#endif

int fy_fiber_thread(fy_fiber *fiber)
{
    *fiber = (fy_fiber){0};
#if defined(FY_FIBER_TSAN)
    fiber->sanitizer = __tsan_get_current_fiber();
#endif
    return context_init(fiber);
}

int fy_fiber_init(fy_fiber *fiber, void *stack, size_t stack_bytes, void (*entry)(void *arg),
                  void *arg)
{
    *fiber = (fy_fiber){
        .stack = stack, .stack_bytes = stack_bytes & ~(size_t)15, .entry = entry, .arg = arg};
    if (context_init(fiber) != 0)
        return FERRY_ENOMEM;
    context_fill(fiber);
    canary_set(fiber);
#if defined(FY_FIBER_TSAN)
    fiber->sanitizer = __tsan_create_fiber(0);
#endif
    return 0;
}

void fy_fiber_fini(fy_fiber *fiber)
{
#if defined(FY_FIBER_TSAN)
    if (fiber->entry != NULL)
        __tsan_destroy_fiber(fiber->sanitizer);
#endif
    context_fini(fiber);
}

void fy_fiber_fetch(const fy_fiber *fiber)
{
    __builtin_prefetch(fiber->stack + CANARY_NEAREST);
#if !defined(FY_FIBER_UCONTEXT)
    const unsigned char *used = fiber->context;
    for (size_t i = 0; i < FETCH_BYTES; i += FETCH_STRIDE)
        __builtin_prefetch(used + i);
#endif
}

void fy_fiber_switch(fy_fiber *from, fy_fiber *to)
{
    to->came_from = from;
    fiber_announce(from, to, false);
    context_swap(from, to);
    fiber_arrived(from);
}

void fy_fiber_exit(fy_fiber *from, fy_fiber *to)
{
    to->came_from = from;
    fiber_announce(from, to, true);
    context_swap(from, to);
    abort(); /* nobody switches to a fiber that has ended */
}
