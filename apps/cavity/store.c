/* The triangles of a rank. Removing one moves the last into its slot; in the table, those that
 * follow it and could stand nearer to their place move up. */
#include "cavity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *cavity_room(void *array, size_t *room, size_t need, size_t element_bytes)
{
    if (need <= *room)
        return array;
    size_t more = 2 * *room > need ? 2 * *room : need + 8;
    void *grown = realloc(array, more * element_bytes);
    if (grown == NULL) {
        fprintf(stderr, "cavity: no memory for %zu bytes\n", more * element_bytes);
        exit(1);
    }
    *room = more;
    return grown;
}

void ids_add(ids *list, triangle_id id)
{
    list->at = cavity_room(list->at, &list->room, list->count + 1, sizeof *list->at);
    list->at[list->count++] = id;
}

void records_add(records *list, const triangle *t, record_kind kind)
{
    list->at = cavity_room(list->at, &list->room, list->count + 1, sizeof *list->at);
    list->at[list->count++] = (record){.t = *t, .kind = kind};
}

static size_t place_of(const store *s, triangle_id id)
{
    return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (s->table_room - 1);
}

/* Where the table has `id`, or the free entry where it would be. */
static size_t entry_of(const store *s, triangle_id id)
{
    size_t i = place_of(s, id);
    while (s->table[i] != 0 && s->slots[s->table[i] - 1].t.id != id)
        i = (i + 1) & (s->table_room - 1);
    return i;
}

slot *store_find(const store *s, triangle_id id)
{
    if (s->count == 0)
        return NULL;
    size_t i = entry_of(s, id);
    return s->table[i] == 0 ? NULL : &s->slots[s->table[i] - 1];
}

static void grow_table(store *s)
{
    s->table_room = s->table_room == 0 ? 64 : 2 * s->table_room;
    free(s->table);
    s->table = calloc(s->table_room, sizeof *s->table);
    if (s->table == NULL) {
        fprintf(stderr, "cavity: no memory for a table of %zu triangles\n", s->table_room);
        exit(1);
    }
    for (size_t i = 0; i < s->count; i++)
        s->table[entry_of(s, s->slots[i].t.id)] = (uint32_t)i + 1;
}

void store_add(store *s, const triangle *t)
{
    if (2 * (s->count + 1) > s->table_room)
        grow_table(s);
    s->slots = cavity_room(s->slots, &s->room, s->count + 1, sizeof *s->slots);
    size_t i = entry_of(s, t->id);
    s->slots[s->count] = (slot){.t = *t};
    s->table[i] = (uint32_t)++s->count;
}

void store_remove(store *s, triangle_id id)
{
    const size_t mask = s->table_room - 1;
    size_t hole = entry_of(s, id), last = entry_of(s, s->slots[s->count - 1].t.id);
    uint32_t index = s->table[hole];
    s->slots[index - 1] = s->slots[s->count - 1];
    s->table[last] = index;
    s->count--;
    s->table[hole] = 0;
    for (size_t i = (hole + 1) & mask; s->table[i] != 0; i = (i + 1) & mask) {
        size_t wanted = place_of(s, s->slots[s->table[i] - 1].t.id);
        if (((i - wanted) & mask) < ((i - hole) & mask))
            continue;
        s->table[hole] = s->table[i];
        s->table[i] = 0;
        hole = i;
    }
}

void store_fini(store *s)
{
    free(s->slots);
    free(s->table);
}
