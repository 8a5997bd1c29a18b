/* The one place that names the layers above core. Those of the data library are absent from
 * programs that are not linked to it. */
#include "core/rank.h"

#pragma weak fy_mover_layer
#pragma weak fy_cell_layer

const fy_layer_ops fy_layer_absent = {0};

const fy_layer_ops *const fy_layer_list[FY_LAYERS] = {
    [FY_LAYER_MEMORY] = &fy_memory_layer,   [FY_LAYER_OBJECT] = &fy_object_layer,
    [FY_LAYER_BALANCE] = &fy_balance_layer, [FY_LAYER_MOVER] = &fy_mover_layer,
    [FY_LAYER_CELL] = &fy_cell_layer,
};
