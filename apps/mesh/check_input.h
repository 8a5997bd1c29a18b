/* Compares the result with the file's own coordinates: did snapping and repairs
 * keep what the input says? Internal to the checker. */
#ifndef MESH_CHECK_INPUT_H
#define MESH_CHECK_INPUT_H

#include "check_domain.h"
#include "check_table.h"
#include "poly.h"
#include "pslg.h"

/* Segments move by less than this (decision 0005): four rounds of snapping and
 * one cut. */
#define MESH_MOVE_GRAINS 4.0

typedef struct mesh_input_faults {
    int32_t strayed; /* segments further than MESH_MOVE_GRAINS from their segment
                        of the file */
    int32_t places;  /* tested: further than MESH_MOVE_GRAINS from all segments of
                        the file */
    int32_t wrong;   /* land in the file and not in the mesh, or the other way round */
    bool walls;      /* the file has walls: neither places nor area were tested */
    bool measured;   /* each ring has land on one and the same side of it: area2 is
                        known */
    double area2;    /* twice the land's area in the file, in steps of the grid */
    double allowed2; /* by how much the mesh's may differ: twice the rings' length
                        by the move */
} mesh_input_faults;

/* -1 out of memory. */
int mesh_check_against(const mesh_poly *poly, const mesh_pslg *pslg, const mesh_domain *domain,
                       const mesh_table *table, mesh_input_faults *out);

#endif
