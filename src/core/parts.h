/* Parts: operations that together are one operation of the caller.
 *
 * A record begins with the count of its parts. While the call that starts them runs, the record
 * counts one part more, so it does not end before all are started. The application thread alone
 * uses it. */
#ifndef FY_PARTS_H
#define FY_PARTS_H

#include "core/operation.h"

typedef struct fy_parts {
    size_t count;                                    /* that have not ended; begins with 1 */
    int error;                                       /* the first of a part */
    void (*ended)(ferry *f, struct fy_parts *parts); /* after the last one; frees the record */
} fy_parts;

/* Starts an operation that is a part. Errors as fy_op_start. */
int fy_part_start(ferry *f, fy_parts *parts, int rank, int tag, size_t size_bytes, uint32_t *op);

/* Takes it back: nothing of it was sent. */
void fy_part_drop(ferry *f, fy_parts *parts, uint32_t op);

/* Ends the part that the call counts for itself. `parts` may be free on return. */
void fy_part_end(ferry *f, fy_parts *parts, int error);

#endif
