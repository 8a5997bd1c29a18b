/* Shadows: the type that an object has while it is out. It has no unpack, since the rank to which
 * the image or its place migrates unpacks it by the object's own type. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fail.h"
#include "store/places.h"

static size_t shadow_packed_size(ferry *f, const void *data)
{
    fy_stored *item = (fy_stored *)(uintptr_t)data;
    char why[FY_STORE_WHY_BYTES];
    item->record->placed = fy_place_lend(item);
    if (item->record->placed)
        return sizeof(fy_image_place);
    if (fy_stored_read(item, why))
        return item->size_bytes;
    if (item->untold)
        fy_log(f, "store: object %016llx stays on disk, it cannot be read: %s",
               fy_stored_name(item), why);
    item->untold = false;
    return SIZE_MAX; /* no migration has room for that, so the object stays here */
}

static void shadow_pack(ferry *f, const void *data, void *buffer, size_t size_bytes)
{
    const fy_stored *item = data;
    (void)f;
    if (item->record->placed)
        fy_place_write(item, buffer);
    else
        memcpy(buffer, item->image, size_bytes);
}

/* Frees nothing: `data` is the fy_stored, which is freed with the object's record. */
static void shadow_destroy(ferry *f, void *data)
{
    (void)f;
    (void)data;
}

static double shadow_load(ferry *f, const void *data, const ferry_message *message)
{
    (void)f;
    (void)message;
    return ((const fy_stored *)data)->load;
}

static double shadow_granularity(ferry *f, const void *data)
{
    (void)f;
    return ((const fy_stored *)data)->granularity;
}

fy_type *fy_store_shadow_create(const fy_type *type)
{
    fy_type *shadow = fy_malloc(sizeof *shadow);
    if (shadow == NULL)
        return NULL;
    *shadow = *type;
    shadow->ops = (ferry_object_ops){.size = sizeof shadow->ops,
                                     .name = shadow->name,
                                     .packed_size = shadow_packed_size,
                                     .pack = shadow_pack,
                                     .destroy = shadow_destroy,
                                     .load = type->ops.load != NULL ? shadow_load : NULL,
                                     .granularity =
                                         type->ops.granularity != NULL ? shadow_granularity : NULL};
    return shadow;
}
