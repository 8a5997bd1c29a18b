/* Why a job does not go on: what its ranks tell, printed. Few jobs are asked, so the shared library
 * finds this in a plug-in, ferry-why.so; programs that are linked to the static library have it in
 * them. */
#ifndef FY_SHM_WHY_H
#define FY_SHM_WHY_H

#include "port/shm/layout.h"

#define FY_WHY_SYMBOL "fy_why_table"

enum { FY_WHY_VERSION = 1 };

typedef struct fy_why_printer {
    uint32_t version; /* first: port/plugin.h */
    void (*print)(const fy_controls *controls, int fd);
} fy_why_printer;

FY_SHARED extern const fy_why_printer fy_why_table;

/* How far a rank has come with its place. One of another node is none that anybody here asks. */
static inline uint32_t fy_why_state(const shm_rank *rank)
{
    /* seq_cst, though any order would do */
    return atomic_load(&rank->state) & (SHM_STATE_MASK | SHM_FAR);
}

#endif
