/* List: a circular list of links inside their owners.
 *
 * Invariant: a link is either in one list or alone, and then points to itself. Owners keep the link
 * as their first member, so a link's address is its owner's. No memory of its own; one thread at a
 * time. */
#ifndef FY_LIST_H
#define FY_LIST_H

#include <stdbool.h>

typedef struct fy_link {
    struct fy_link *prev, *next;
} fy_link;

/* Makes `link` a link alone, or an empty list. */
static inline void fy_list_init(fy_link *link)
{
    link->prev = link;
    link->next = link;
}

/* Whether a list is empty, or a link in no list. */
static inline bool fy_list_empty(const fy_link *link)
{
    return link->next == link;
}

/* Puts `link`, which is in no list, before `where`; last when that is the list itself. */
static inline void fy_list_insert(fy_link *where, fy_link *link)
{
    link->prev = where->prev;
    link->next = where;
    where->prev->next = link;
    where->prev = link;
}

/* Takes `link` out of the list it is in, if it is in one. */
static inline void fy_list_remove(fy_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    fy_list_init(link);
}

/* Takes the first link out of `list`; NULL when there is none. */
static inline fy_link *fy_list_pop(fy_link *list)
{
    fy_link *first = list->next;
    if (first == list)
        return (void *)0;
    fy_list_remove(first);
    return first;
}

/* Makes `list` what `other` is, and that empty. */
static inline void fy_list_move(fy_link *list, fy_link *other)
{
    fy_list_init(list);
    if (fy_list_empty(other))
        return;
    *list = *other;
    list->prev->next = list;
    list->next->prev = list;
    fy_list_init(other);
}

#endif
