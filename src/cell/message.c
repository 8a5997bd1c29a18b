/* Send and receive with a copy. Send makes a parcel, fills it and adds it to a cell. Receive takes
 * a parcel, reads it and releases it. */
#include <string.h>

#include <ferry/convert.h>

#include "cell/state.h"
#include "core/fail.h"

/* Copies by `layout`. If the parcel is smaller than its fields, that is an error of the caller.
 * Without a descriptor `room` is as large as the source. */
static int cell_message_fill(ferry *f, void *target, size_t room, const void *source,
                             size_t size_bytes, const ferry_layout *layout)
{
    if (layout == NULL || layout->descriptor == NULL) {
        if (size_bytes > 0)
            memcpy(target, source, size_bytes);
        return 0;
    }
    /* The source is only read: extents have one type for both sides. */
    const ferry_extent from = {.data = (void *)(uintptr_t)source, .size_bytes = size_bytes};
    const ferry_extent to = {.data = target, .size_bytes = room};
    return ferry_fields_copy(f, to, from, layout->descriptor, layout->length, layout->conversion);
}

int ferry_cell_send(ferry *f, ferry_cell cell, const void *source, size_t size_bytes,
                    const ferry_layout *layout, uint64_t timeout_ns)
{
    if (source == NULL && size_bytes > 0)
        return fy_fail(f, FERRY_EINVAL, "cell_send: %zu bytes at NULL", size_bytes);
    size_t room = layout != NULL && layout->parcel_bytes != 0 ? layout->parcel_bytes : size_bytes;
    if (room < size_bytes && layout->descriptor == NULL)
        return fy_fail(
            f, FERRY_EINVAL,
            "cell_send: the parcel has %zu bytes, and the source %zu, with no descriptor", room,
            size_bytes);
    ferry_parcel parcel;
    void *data;
    int error = ferry_parcel_create(f, room, &parcel, &data);
    if (error != 0)
        return error;
    error = cell_message_fill(f, data, room, source, size_bytes, layout);
    if (error == 0)
        error = ferry_cell_enqueue(f, cell, parcel, FERRY_GIVE, timeout_ns);
    if (error != 0)
        (void)ferry_parcel_release(f, parcel);
    return error;
}

int ferry_cell_receive(ferry *f, ferry_cell cell, void *target, size_t *size_bytes,
                       const ferry_layout *layout, uint64_t timeout_ns)
{
    if (size_bytes == NULL || (target == NULL && *size_bytes > 0))
        return fy_fail(f, FERRY_EINVAL,
                       "cell_receive: size_bytes is NULL, or target is NULL and the size is not 0");
    ferry_parcel parcel;
    int error = ferry_cell_dequeue(f, cell, &parcel, timeout_ns);
    if (error != 0)
        return error;
    size_t room = *size_bytes, size;
    const void *data = ferry_parcel_data(f, parcel, &size);
    bool plain = layout == NULL || layout->descriptor == NULL;
    if (plain && size > room)
        error = fy_fail(f, FERRY_ETOOLONG, "cell_receive: the parcel has %zu bytes, the buffer %zu",
                        size, room);
    else
        error = cell_message_fill(f, target, plain ? size : room, data, size, layout);
    (void)ferry_parcel_release(f, parcel);
    *size_bytes = size;
    return error;
}
