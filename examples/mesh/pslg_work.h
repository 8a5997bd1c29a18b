/* What pslg.c and pslg_cross.c share while an input is being cleaned. Internal. */
#ifndef MESH_PSLG_WORK_H
#define MESH_PSLG_WORK_H

#include "pslg.h"

#include <stdbool.h>

/* `fine` holds each point rounded to the grid itself, `point` to multiples of MESH_GRAIN: what
 * crosses in the first did so in the input, what crosses in the second alone was made by snapping.
 */
typedef struct pslg_work {
    mesh_pslg *out;
    mesh_point *fine;
    int32_t point_room, segment_room;
    mesh_log *log;
} pslg_work;

/* Splits segments at points on them and repairs crossings made by snapping; -1 with an error for
 * crossings of the input. With `strict` nothing may be left to do: returns -1 without an error. */
int pslg_uncross(pslg_work *w, bool strict);

/* Drops segments without length and second copies, with a note for each. */
int pslg_drop_copies(pslg_work *w);

/* Makes segments that meet at small angles equally long near their common end. */
int pslg_make_shells(pslg_work *w);

int32_t pslg_add_point(pslg_work *w, mesh_point p);
int pslg_add_segment(pslg_work *w, mesh_segment s);

#endif
