/* The layers above core, and the kinds of frames: those of core, and where to find the others.
 *
 * This list names the layers above, not what they do. Those of the data library are absent from
 * programs that are not linked to it. Kinds are constant: a frame names its layer and the place in
 * that layer's table by its number (docs/decisions/0019). */
#include "core/kinds.h"
#include "core/rank.h"
#include "core/why.h"

#pragma weak fy_mover_layer
#pragma weak fy_cell_layer
#pragma weak fy_collection_layer
#pragma weak fy_window_layer
#pragma weak fy_store_layer

const fy_layer_ops fy_layer_absent = {0};

const fy_layer_ops *const fy_layer_list[FY_LAYERS] = {
    [FY_LAYER_MEMORY] = &fy_memory_layer,   [FY_LAYER_OBJECT] = &fy_object_layer,
    [FY_LAYER_BALANCE] = &fy_balance_layer, [FY_LAYER_MOVER] = &fy_mover_layer,
    [FY_LAYER_CELL] = &fy_cell_layer,       [FY_LAYER_COLLECTION] = &fy_collection_layer,
    [FY_LAYER_WINDOW] = &fy_window_layer,   [FY_LAYER_STORE] = &fy_store_layer,
};

static const fy_kind_info kinds[] = {
    [FY_KIND_REQUEST] = {fy_request_deliver, fy_request_hold, "request",
                         FY_FRAME_ASKS | FY_FRAME_TAGGED | FY_FRAME_LENDABLE},
    [FY_KIND_LENT] = {fy_lent_deliver, NULL, "lent", FY_FRAME_ASKS},
    [FY_KIND_REQUEST_BROADCAST] = {fy_request_broadcast_deliver, NULL, "broadcast", FY_FRAME_ASKS},
    [FY_KIND_END] = {fy_op_deliver, NULL, "end", 0},
    [FY_KIND_COLLECTIVE] = {fy_collective_deliver, NULL, "collective", 0},
    [FY_KIND_WAVE] = {fy_wave_deliver, NULL, "quiesce", 0},
    [FY_KIND_MAIL] = {fy_mail_deliver, NULL, "mail", 0},
    [FY_KIND_LEAVE] = {fy_leave_deliver, NULL, "leave", 0},
    [FY_KIND_READY] = {fy_ready_deliver, NULL, "ready", 0},
    [FY_KIND_REFUSAL] = {fy_refusal_deliver, NULL, "refusal", 0},
    [FY_KIND_WHY] = {fy_why_deliver, NULL, "why", 0},
    [FY_KIND_LOSS] = {fy_loss_deliver, NULL, "loss", 0},
};

_Static_assert(sizeof(kinds) / sizeof(kinds[0]) <= FY_KINDS_OF_CORE, "core numbers its kinds");

const fy_kind_info *fy_kind_find(uint8_t kind)
{
    if (kind < FY_KINDS_OF_CORE)
        return kind < sizeof(kinds) / sizeof(kinds[0]) ? &kinds[kind] : NULL;
    if (kind >= FY_KINDS)
        return NULL;
    const fy_layer_ops *layer = fy_layer_at((kind - FY_KINDS_OF_CORE) / FY_KINDS_OF_LAYER);
    unsigned index = (unsigned)(kind - FY_KINDS_OF_CORE) % FY_KINDS_OF_LAYER;
    return index < layer->kind_count ? &layer->kinds[index] : NULL;
}

void fy_kinds_set(ferry *f, int first, int count)
{
    for (int kind = first; kind < first + count; kind++) {
        const fy_kind_info *info = fy_kind_find((uint8_t)kind);
        if (info != NULL)
            fy_kind_set(f, (uint8_t)kind, info->deliver);
    }
}
