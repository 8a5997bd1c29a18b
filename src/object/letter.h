/* Letter: a message to an object that is kept: waiting for its turn, for its object, or to run.
 *
 * Invariant: a letter is in one list or in none. Letters are made and freed by the application
 * thread; the helper only reads those of an object it migrates. The bytes of all letters that are
 * not tasks are counted, by who sent them; those of all, tasks included, in one number. */
#ifndef FY_LETTER_H
#define FY_LETTER_H

#include <ferry/object.h>

#include "base/pool.h"
#include "base/table.h"

/* What the way of a message needs beside its contents. */
typedef struct fy_envelope {
    ferry_object object;
    uint32_t movement; /* best movement number the route knew */
    uint32_t sequence; /* its number among the messages from origin to object */
    int origin;        /* rank that sent it */
    uint32_t hops;     /* forwards so far, saturating */
    uint32_t op;       /* origin's operation, 0 for none */
} fy_envelope;

typedef struct fy_letter {
    struct fy_letter *next;
    fy_envelope envelope;
    double load;       /* as a task */
    uint64_t since_ns; /* when it came here, as far as the clock was read */
    bool pooled;
    bool counted;          /* in the holding of its origin */
    bool token;            /* a token of the origin goes with it, on its way to another rank */
    uint16_t token_epoch;  /* which tokens count there */
    bool overdue;          /* gaps.c has seen it wait before its turn */
    int16_t error;         /* what its sender is still to be told (fy_letters_fail) */
    ferry_message message; /* data points behind the letter */
} fy_letter;

typedef struct fy_letters {
    fy_letter *head, *tail;
    uint32_t count;
} fy_letters;

/* What is held of one origin: a slot of a table. */
typedef struct fy_holding {
    uint64_t origin_plus_1;
    size_t bytes;           /* of letters */
    uint32_t onward_plus_1; /* a rank to which too much of it is on its way from here; 0: none */
    uint32_t tokens;        /* that keep the origin from sending */
    uint32_t round;         /* in which one of them was marked to leave */
} fy_holding;

typedef struct fy_letterbox {
    fy_pool pool; /* letters whose data is small */
    fy_table holdings;
    fy_holding *last[2]; /* of the origins asked for last, even and odd ones; NULL: none */
    size_t limit_bytes;
    size_t *kept_bytes; /* of all letters, tasks included; the rank's */
    size_t full_bytes;  /* above it all origins get tokens, until half of it has gone */
    bool full;
    uint32_t epoch; /* of all tokens */
    uint32_t tokens;
    uint32_t round; /* the last object's that was to leave */
    bool unsettled; /* some holding has passed its limit, or fallen below half of it */
} fy_letterbox;

/* `limit_bytes` is for what is held of one origin, `full_bytes` for all letters, which are counted
 * in `*kept_bytes`. FERRY_ENOMEM. */
int fy_letterbox_init(fy_letterbox *box, size_t limit_bytes, size_t full_bytes, size_t *kept_bytes);

/* Frees all letters that fit into the pool. */
void fy_letterbox_fini(fy_letterbox *box);

/* As fy_holding_of, for a rank that was not asked for last. */
fy_holding *fy_holding_find(fy_letterbox *box, int origin);

/* The holding of a rank, until the next call; NULL without memory. */
static inline fy_holding *fy_holding_of(fy_letterbox *box, int origin)
{
    fy_holding *last = box->last[origin & 1];
    return last != NULL && last->origin_plus_1 == (uint64_t)origin + 1
               ? last
               : fy_holding_find(box, origin);
}

/* As fy_letter_create, but for the envelope, of which only the origin is known. */
fy_letter *fy_letter_make(fy_letterbox *box, int origin, const ferry_message *message,
                          uint64_t since_ns, bool task);

/* A letter with copies of `message` and its data; NULL when there is no memory. `task`: it is for a
 * scheduled object: work that has arrived, and is the program's to bound. In line, so that what
 * makes an envelope writes it where it stays, and field by field, as copy_message does. */
static inline fy_letter *fy_letter_create(fy_letterbox *box, const fy_envelope *envelope,
                                          const ferry_message *message, uint64_t since_ns,
                                          bool task)
{
    fy_letter *letter = fy_letter_make(box, envelope->origin, message, since_ns, task);
    if (letter == NULL)
        return NULL;
    letter->envelope.object = envelope->object;
    letter->envelope.movement = envelope->movement;
    letter->envelope.sequence = envelope->sequence;
    letter->envelope.origin = envelope->origin;
    letter->envelope.hops = envelope->hops;
    letter->envelope.op = envelope->op;
    return letter;
}

void fy_letter_destroy(fy_letterbox *box, fy_letter *letter);

/* As fy_letter_uncount, for one that is counted. */
void fy_letter_discount(fy_letterbox *box, fy_letter *letter);

/* The letter is a task from now on. */
static inline void fy_letter_uncount(fy_letterbox *box, fy_letter *letter)
{
    if (letter->counted)
        fy_letter_discount(box, letter);
}

static inline void fy_letters_push(fy_letters *letters, fy_letter *letter)
{
    letter->next = NULL;
    if (letters->head == NULL)
        letters->head = letter;
    else
        letters->tail->next = letter;
    letters->tail = letter;
    letters->count++;
}

static inline fy_letter *fy_letters_pop(fy_letters *letters)
{
    fy_letter *letter = letters->head;
    if (letter == NULL)
        return NULL;
    letters->head = letter->next;
    letter->next = NULL;
    letters->count--;
    return letter;
}

/* Keeps `letters` sorted by origin and then sequence. False when one like it is there already: the
 * letter is the caller's. */
bool fy_letters_insert(fy_letters *letters, fy_letter *letter);

/* Takes out the letter of `origin` with `sequence`; NULL when there is none. `letters` is sorted as
 * by fy_letters_insert. */
fy_letter *fy_letters_take(fy_letters *letters, int origin, uint32_t sequence);

#endif
