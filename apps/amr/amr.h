/* Amr: the two levels of the program (main.c), and how they change (levels.c). An error ends the
 * program. */
#ifndef AMR_H
#define AMR_H

#include <ferry/ferry.h>
#include <ferry/mover.h>
#include <ferry/mover_blocks.h>

#include "common/check.h"

enum { TILE = 8, RATIO = 2, REGRID_STEPS = 4, DIMS = 2 };

typedef struct solver {
    ferry *f;
    int64_t tiles;         /* along an edge */
    double courant[DIMS];  /* of a coarse cell: speed * step / cell */
    ferry_xarray *u;       /* coarse */
    ferry_xarray *edge[2]; /* coarse: sums of fine values that flow into a tile from below in d */
    ferry_mover *halo;     /* of u */
    int32_t *fine_of;      /* per tile: number of its fine block, or -1 */
    ferry_xarray *fine;
    ferry_mover *down, *up, *fine_halo, *edges[2];
    ferry_blocks *tile_set, *fine_set; /* the blocks as objects; tiles have u and the edges */
    ferry_handler advance[2];          /* by level */
    int64_t appeared, vanished, moved;
} solver;

/* One movement. */
void amr_move(const solver *s, ferry_mover *m);

/* The region of the block behind grid `i` of `x`. */
ferry_region amr_own_region(const ferry_xarray *x, size_t i);

/* The tile below `tile` in dimension d, round the edge. */
int64_t amr_below(const solver *s, int64_t tile, int d);

/* The mover of the ghost cells of `x`, on a level of `cells` along an edge. */
ferry_mover *amr_bind_halo(const solver *s, ferry_xarray *x, int64_t cells);

/* Binds what moves between the levels: means down, ghost cells up, values at edges where flow
 * leaves. */
void amr_bind_levels(solver *s);
void amr_free_levels(solver *s);

/* Coarse cells below fine ones get their mean. */
void amr_restrict_fine(const solver *s);

/* Makes objects of a level's blocks, which the scheduler may move from then on. */
ferry_blocks *amr_make_mobile(const solver *s, ferry_xarray *const *arrays, size_t count,
                              double load);

/* Fine blocks appear and vanish. */
void amr_regrid(solver *s);

#endif
