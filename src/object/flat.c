/* Flat objects: what stands for the callbacks of a kind whose data are one block of memory. */
#include "object/object.h"

#include <stdlib.h>
#include <string.h>

#include <ferry/memory.h>

#include "base/alloc.h"
#include "base/copy.h"
#include "object/flat.h"

void fy_flat_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    (void)f;
    fy_copy(buffer, data, size_bytes);
}

static void *flat_unpack(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)f;
    (void)object;
    void *data = fy_malloc(size_bytes);
    if (data != NULL)
        fy_copy(data, buffer, size_bytes);
    return data;
}

static void *unpack_shared(ferry *f, ferry_object object, const void *buffer, size_t size_bytes)
{
    (void)object;
    void *data;
    return ferry_alloc(f, size_bytes, &data) != 0 ? NULL : memcpy(data, buffer, size_bytes);
}

static void flat_destroy(ferry *f, void *data)
{
    (void)f;
    free(data);
}

static void destroy_shared(ferry *f, void *data)
{
    (void)ferry_free(f, data);
}

bool fy_flat_fill(ferry_object_ops *ops)
{
    bool shared = (ops->flags & FERRY_OBJECT_SHARED) != 0;
    if ((ops->packed_size == NULL && ops->flat_bytes == 0) ||
        (ops->pack != NULL && ops->unpack == NULL))
        return false;
    if (ops->unpack == NULL)
        ops->unpack = shared ? unpack_shared : flat_unpack;
    if (ops->pack == NULL)
        ops->pack = fy_flat_pack;
    if (ops->destroy == NULL)
        ops->destroy = shared ? destroy_shared : flat_destroy;
    return true;
}
