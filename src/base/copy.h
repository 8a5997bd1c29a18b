/* Copy: of data into memory that other processors may have in their caches. */
#ifndef FY_COPY_H
#define FY_COPY_H

#include <stddef.h>
#include <string.h>

enum { FY_COPY_PIECE_BYTES = 256 * 1024 };

/* As memmove, of more than a piece. */
void fy_copy_pieces(void *to, const void *from, size_t size_bytes);

/* As memmove. A libc chooses its stores by the size of one call. For what fits into a cache it
 * writes whole lines without fetching them first; for more it may store in the ordinary way, and
 * then waits for each line that another processor has read before. So no call is large. */
static inline void fy_copy(void *to, const void *from, size_t size_bytes)
{
    if (size_bytes <= FY_COPY_PIECE_BYTES)
        memmove(to, from, size_bytes);
    else
        fy_copy_pieces(to, from, size_bytes);
}

#endif
