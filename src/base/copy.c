#include "base/copy.h"

#include <stdint.h>

void fy_copy_pieces(void *to, const void *from, size_t size_bytes)
{
    uintptr_t apart = (uintptr_t)to - (uintptr_t)from;
    if (apart < size_bytes || -apart < size_bytes) {
        memmove(to, from, size_bytes);
        return;
    }
    for (size_t at = 0; at < size_bytes; at += FY_COPY_PIECE_BYTES) {
        size_t left = size_bytes - at;
        memcpy((char *)to + at, (const char *)from + at,
               left < FY_COPY_PIECE_BYTES ? left : FY_COPY_PIECE_BYTES);
    }
}
