/* Flat: callbacks for objects whose data are one block. */
#ifndef FY_OBJECT_FLAT_H
#define FY_OBJECT_FLAT_H

#include "base/shared.h"
#include "object/record.h"

/* Sets default callbacks where the program gave NULL. False: too many are NULL. */
FY_SHARED bool fy_flat_fill(ferry_object_ops *ops);

/* `pack` of data that are one block: copies them. */
void fy_flat_pack(ferry *f, const void *data, void *buffer, size_t size_bytes);

static inline size_t fy_packed_bytes(ferry *f, const fy_type *type, const void *data)
{
    const ferry_object_ops *ops = &type->ops;
    return ops->packed_size != NULL ? ops->packed_size(f, data) : ops->flat_bytes;
}

#endif
