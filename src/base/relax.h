/* Relax: what a thread does between two looks at a word that another one will change soon. */
#ifndef FY_RELAX_H
#define FY_RELAX_H

#include "base/shared.h"

/* Tells the processor that the caller spins. */
static inline void fy_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Lets another thread have this processor. */
FY_SHARED void fy_yield(void);

#endif
