/* The one place that names the layers above core. */
#include "core/rank.h"

const fy_layer_ops *const fy_layer_list[FY_LAYERS] = {
    [FY_LAYER_MEMORY] = &fy_memory_layer,
    [FY_LAYER_OBJECT] = &fy_object_layer,
    [FY_LAYER_BALANCE] = &fy_balance_layer,
    [FY_LAYER_MOVER] = &fy_mover_layer,
    [FY_LAYER_CELL] = &fy_cell_layer,
};
