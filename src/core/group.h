/* Group: the ranks that make a collective call together.
 *
 * A job's ranks come and go at any time, and each rank learns of it at a different time (peer.c).
 * All ranks agree upon the group of the members: the ranks among which the last ferry_quiesce has
 * ended, in the order of their numbers. It is the same on each of them. Its id is 0. The other
 * groups are those of the program (groups.c), in its order. Plans of collectives know places in a
 * group, from 0, and never ranks. A call keeps the group with which it began. Application thread
 * only. */
#ifndef FY_GROUP_H
#define FY_GROUP_H

#include <ferry/group.h>

/* The identity of a call: ranks that make the same call with fitting arguments have equal ones. */
typedef struct fy_collective_call {
    uint64_t what;       /* FY_CALL_...: kind, type, reduction, way and root */
    uint64_t size_bytes; /* 0 if ranks may differ; each frame then carries the size of its piece */
    uint64_t signature;  /* of the handlers registered so far, when all members call */
} fy_collective_call;

/* A group's id grows by this when its ranks begin to number its calls anew. */
#define FY_GROUP_ERA (UINT64_C(1) << 52)

typedef struct ferry_group fy_group;
struct ferry_group {
    fy_group *next;   /* of the program's */
    fy_group **link;  /* the pointer to it in their list; NULL: it is in none */
    fy_group *parent; /* while the group is made: the group from which it is made */
    uint64_t id;      /* FY_GROUP_ERA times; the first rank, its serial number; 0: the members */
    uint32_t number;  /* of the last call that was begun */
    uint32_t done;    /* of the last call that succeeded; it was call `done_call` */
    uint32_t failed;  /* calls up to this number may have left frames behind */
    fy_collective_call done_call;
    uint32_t users;
    int size;
    int self;      /* this rank's place; -1: it is no member yet */
    int dead;      /* a member that has died, and is gone; -1: none */
    int left;      /* 1 + a member that has left, and is gone; 0: none */
    uint32_t last; /* with `left`: later calls do not have the part of all members */
    int quitter;   /* 1 + a rank that has given the group up while it was made; 0: none */
    bool all;      /* every rank of the job is a member: places are ranks */
    int ranks[];   /* by place, with id 0 ascending; none with `all` */
};

static inline int fy_group_rank(const fy_group *group, int place)
{
    return group->all ? place : group->ranks[place];
}

static inline size_t fy_set_words(int ranks)
{
    return ((size_t)ranks + 63) / 64;
}

static inline bool fy_set_has(const uint64_t *set, int rank)
{
    return set[rank / 64] >> rank % 64 & 1;
}

static inline void fy_set_add(uint64_t *set, int rank)
{
    set[rank / 64] |= UINT64_C(1) << rank % 64;
}

static inline void fy_set_remove(uint64_t *set, int rank)
{
    set[rank / 64] &= ~(UINT64_C(1) << rank % 64);
}

/* A group of the members in `set`, a bit for each of `ranks`; for rank `self`. NULL without memory.
 */
fy_group *fy_group_create(const uint64_t *set, int ranks, int self);
fy_group *fy_group_use(fy_group *group);
void fy_group_drop(fy_group *group);

/* The place of `rank`; -1: it is no member. */
int fy_group_place(const fy_group *group, int rank);

/* Notes that `rank`, if it is a member, has gone. If it died, no call of the group finishes any
 * more. If it left, no call after number `last` begins; in the calls up to that one it has done its
 * part. */
void fy_group_lose(fy_group *group, int rank, bool died, uint32_t last);

/* A member that has gone; -1: there is none. */
static inline int fy_group_lost(const fy_group *group)
{
    return group->dead >= 0 ? group->dead : group->left - 1;
}

bool fy_group_is(const fy_group *group, const uint64_t *set, int ranks);

#endif
