#include "core/parts.h"

void fy_part_end(ferry *f, fy_parts *parts, int error)
{
    parts->error = parts->error == 0 ? error : parts->error;
    if (--parts->count == 0)
        parts->ended(f, parts);
}

static void on_part(ferry *f, void *arg, const ferry_receipt *receipt)
{
    fy_part_end(f, arg, receipt->error);
}

int fy_part_start(ferry *f, fy_parts *parts, int rank, int tag, size_t size_bytes, uint32_t *op)
{
    const ferry_track track = {.size = sizeof(track),
                               .completed = on_part,
                               .completed_arg = parts,
                               .failed = on_part,
                               .failed_arg = parts};
    int error = fy_op_start(f, &track, rank, tag, size_bytes, op);
    parts->count += error == 0;
    return error;
}

void fy_part_drop(ferry *f, fy_parts *parts, uint32_t op)
{
    parts->count--;
    fy_op_drop(f, op);
}
