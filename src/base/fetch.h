/* Fetch: of cache lines before they are needed. */
#ifndef FY_FETCH_H
#define FY_FETCH_H

/* Brings the line at `line` here to be written: other processors lose it. A hint. Without a name
 * for the instruction compilers fetch lines to be read, as not every processor of a family has it;
 * those of x86-64 that do not take it for nothing. */
static inline void fy_fetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

#endif
