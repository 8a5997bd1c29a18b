/* Names: which of the objects created here exist. The table also has the tombstones of destroyed
 * ones; their number is bounded.
 *
 * A name is creator (20 bits), generation (12 bits) and number (32 bits, from 1). A number is used
 * again, by the next generation, after its object has been destroyed; the number that was freed
 * first is used first. After its last generation a number is retired, so no name is ever given
 * twice. Memory grows with the largest number of objects that lived at the same time. */
#ifndef FY_NAMES_H
#define FY_NAMES_H

#include <ferry/object.h>

enum { FY_CREATOR_BITS = 20, FY_GENERATION_BITS = 12 };

typedef struct fy_name {
    uint32_t generation; /* of the object that has the number, or had it last */
    uint32_t next_free;  /* 0: none */
    bool alive;
} fy_name;

typedef struct fy_names {
    uint32_t creator;
    fy_name *names; /* by number; [0] is not used */
    uint32_t count, capacity;
    uint32_t free_first, free_last;
} fy_names;

static inline int fy_object_creator(ferry_object object)
{
    return (int)(object.word >> (64 - FY_CREATOR_BITS));
}

void fy_names_init(fy_names *names, int creator);
void fy_names_fini(fy_names *names);

/* A new name. FERRY_ENOMEM. */
int fy_names_give(fy_names *names, ferry_object *out);

/* Whether `object`, which this rank created, exists. */
bool fy_names_alive(const fy_names *names, ferry_object object);

/* Ends the life of a name that is alive. */
void fy_names_end(fy_names *names, ferry_object object);

#endif
