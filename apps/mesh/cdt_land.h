/* Decides which triangles between the segments are land; pslg.h has the rule. Internal to cdt.c. */
#ifndef MESH_CDT_LAND_H
#define MESH_CDT_LAND_H

#include "pslg.h"
#include "sub.h"

/* Sets gone[t] for each triangle t that is no land. Edge i of `sub` is a segment of `pslg`, piece
 * i + 1 its only piece, and the sides of the box around everything are piece 0. Returns 0, or -1
 * with log->error: nothing is land, or memory ran out. */
int mesh_cdt_find_land(mesh_sub *sub, const mesh_pslg *pslg, uint8_t *gone, mesh_log *log);

#endif
