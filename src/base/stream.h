/* Stream: stores of whole cache lines that pass by the caches.
 *
 * An ordinary store fetches its line first. Where lines lie far from one another, and more of them
 * are written than caches hold, a copy does little else than wait for lines that it overwrites
 * whole. Streamed lines are not fetched; in exchange they are in no cache afterwards. */
#ifndef FY_STREAM_H
#define FY_STREAM_H

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { FY_STREAM_BYTES = 64 };

/* Copies a line; `to` is aligned to FY_STREAM_BYTES. */
static inline void fy_stream_line(void *to, const void *from)
{
#if defined(__SSE2__)
    __m128i *line = to;
    for (int i = 0; i < 4; i++)
        _mm_stream_si128(line + i, _mm_loadu_si128((const __m128i *)from + i));
#else
    memcpy(to, from, FY_STREAM_BYTES);
#endif
}

/* Puts the streamed lines before every later store of the caller. A release does not: it orders
 * ordinary stores alone. */
static inline void fy_stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
