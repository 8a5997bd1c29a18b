/* Shared by the steps of mesh_pslg_create. Internal.
 *
 * Each input vertex has two places: its `fine` place on the grid itself, and its `hot` point, the
 * multiple of MESH_GRAIN that the fine place rounds to. Links are pieces of input segments. */
#ifndef MESH_PSLG_WORK_H
#define MESH_PSLG_WORK_H

#include "box_tree.h"
#include "pslg.h"

typedef struct pslg_link {
    int32_t a, b; /* fine places before snapping, points of the result after it */
    int32_t ring; /* or -1: a wall */
    int32_t line;
} pslg_link;

typedef struct pslg_links {
    pslg_link *at;
    int32_t count, room;
} pslg_links;

typedef struct pslg_work {
    mesh_pslg *out; /* its points are the hot points */
    mesh_log *log;
    mesh_point *fine;
    int32_t *hot; /* of each fine place */
    int32_t fine_count;
    pslg_links input;   /* segments of the input between fine places */
    mesh_box_tree tree; /* of their boxes */
    pslg_links snapped; /* between hot points */
    int32_t point_room, segment_room, cover_room;
} pslg_work;

/* Rounds a place of the grid to the nearest multiple of MESH_GRAIN, ties up. */
static inline int32_t pslg_to_grain(int32_t at)
{
    return (at + MESH_GRAIN / 2) / MESH_GRAIN * MESH_GRAIN;
}

/* The distance of p from segment a b, which has a length. */
double pslg_distance(mesh_point a, mesh_point b, mesh_point p);

int32_t pslg_add_point(pslg_work *w, mesh_point p);
int pslg_add_segment(pslg_work *w, mesh_segment s);
int pslg_add_cover(pslg_work *w, mesh_cover c);
int pslg_add_link(pslg_links *links, pslg_link link, mesh_log *log);

int pslg_place_grid(const mesh_poly *poly, mesh_frame *frame, mesh_log *log);

/* Fills the input's fine places, hot points and links from the vertices and segments of `poly`.
 * Refuses rings of fewer than three distinct points. */
int pslg_take_input(pslg_work *w, const mesh_poly *poly);

/* Numbers the rings of w->input by area. */
int pslg_rank_rings(pslg_work *w, int32_t rings);

/* Makes a hot point where segments of the input cross by less than a grain; refuses those that
 * cross by more. */
int pslg_find_crossings(pslg_work *w);

/* Leads every segment of the input through the hot points near it: fills w->snapped. */
int pslg_snap(pslg_work *w);

/* Makes the segments of the result from w->snapped: merges those that fall together. Where a ring
 * became walls, its links' `ring` is changed to -2 - ring. */
int pslg_merge(pslg_work *w);

/* Takes the hole points, and finds the ring around each. */
int pslg_take_holes(pslg_work *w, const mesh_poly *poly);

/* Makes segments that meet at small angles equally long near their common end. */
int pslg_make_shells(pslg_work *w);

#endif
