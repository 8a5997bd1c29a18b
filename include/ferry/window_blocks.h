/* Blocks in windows: block arrays whose cells are elements of a window.
 *
 * Movers fill the ghost cells, and every rank of the window puts, gets and accumulates single cells
 * by index. The cells of a rank are consecutive elements of its array: block after block, by
 * number, each with its ghost cells, the last dimension fastest. Between the two uses the program
 * synchronises: with a fence, for example. kelp-data-mover.txt 2 (Storage Model),
 * progressive-messages.txt A.1. */
#ifndef FERRY_WINDOW_BLOCKS_H
#define FERRY_WINDOW_BLOCKS_H

#include <ferry/mover.h>
#include <ferry/window.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As ferry_xarray_create, with the cells in a view (ferry_window_view) of elements `first` and up
 * of this rank. Gives `*out`, freed with ferry_xarray_destroy; the window must stay for as long.
 * Its blocks keep their owners: ferry_xarray_remap refuses it. Errors as those of both calls. [app
 * thread | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_xarray_create(ferry_window *window, int64_t first,
                                                        const ferry_floorplan *blocks,
                                                        size_t element_bytes, ferry_point ghosts,
                                                        ferry_xarray **out);

/* Finds where a cell is in the window: on `*rank`, element `*index`. `x` was created with `first`
 * on all ranks; `block` is the number of any block, and `point` lies in it or its ghost cells. The
 * call goes through all blocks with lower numbers. FERRY_EINVAL: no such block or cell, or the
 * floor plan is a share. [app thread, handlers | never blocks] */
FERRY_API FERRY_MUST_USE int ferry_window_xarray_find(const ferry_xarray *x, int64_t first,
                                                      int32_t block, ferry_point point, int *rank,
                                                      int64_t *index);

#ifdef __cplusplus
}
#endif
#endif
