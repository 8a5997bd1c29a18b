#include "object/names.h"

#include <stdlib.h>

#include "base/alloc.h"

#define GENERATION_MAX ((1u << FY_GENERATION_BITS) - 1)

void fy_names_init(fy_names *names, int creator)
{
    *names = (fy_names){.creator = (uint32_t)creator, .count = 1};
}

void fy_names_fini(fy_names *names)
{
    free(names->names);
    names->names = NULL;
}

static uint32_t number_of(ferry_object object)
{
    return (uint32_t)object.word;
}

static uint32_t generation_of(ferry_object object)
{
    return (uint32_t)(object.word >> 32) & GENERATION_MAX;
}

static int names_grow(fy_names *names)
{
    fy_name *larger = fy_double(names->names, &names->capacity, 64, sizeof *larger);
    if (larger == NULL)
        return FERRY_ENOMEM;
    names->names = larger;
    return 0;
}

int fy_names_give(fy_names *names, ferry_object *out)
{
    uint32_t number = names->free_first;
    if (number != 0) {
        fy_name *name = &names->names[number];
        names->free_first = name->next_free;
        name->generation++;
        name->alive = true;
    } else {
        if (names->count >= names->capacity) {
            int error = names_grow(names);
            if (error != 0)
                return error;
        }
        number = names->count++;
        names->names[number] = (fy_name){.alive = true};
    }
    uint64_t high = (uint64_t)names->creator << FY_GENERATION_BITS;
    out->word = (high | names->names[number].generation) << 32 | number;
    return 0;
}

bool fy_names_alive(const fy_names *names, ferry_object object)
{
    uint32_t number = number_of(object);
    if (number == 0 || number >= names->count)
        return false;
    const fy_name *name = &names->names[number];
    return name->alive && name->generation == generation_of(object);
}

void fy_names_end(fy_names *names, ferry_object object)
{
    uint32_t number = number_of(object);
    fy_name *name = &names->names[number];
    name->alive = false;
    name->next_free = 0;
    if (name->generation == GENERATION_MAX)
        return;
    if (names->free_first == 0)
        names->free_first = number;
    else
        names->names[names->free_last].next_free = number;
    names->free_last = number;
}
