/* Cells and parcels whose users die (src/cell/change.h, recover.c): a queue of parcels with counted
 * references, copied before they are written to, where any rank may die between any two steps.
 *
 * Two ranks work on one cell of two slots and two parcels; one of them, or none, dies at any step,
 * and the other recovers it, goes on, and releases what it holds; who comes last empties the cell.
 * What is given to the cell or taken out of it changes own holds under the cell's lock alone.
 * Checked: the counts of a parcel equal its holds and places in the cell whenever nobody has its
 * lock or the cell's; nobody writes to a parcel that another holds or the cell has; a parcel is freed once, by its
 * last reference, and at the end none is left; no lock is left, which would show as a deadlock.
 * Mutants: NO_REDO forgets a committed change; UNLOCK_FIRST frees the locks before the change is
 * marked as done; LATE_NOTE takes a lock before noting it; NO_HOLDS leaves the dead rank's holds;
 * WRITE_SHARED writes to what others have; REFS_TOO stores the sum of references without the lock. */
#define RANKS 2
#define PARCELS 2
#define SLOTS 2
#define NONE 255
#ifndef STEPS
#define STEPS 2                 /* 3 holds too, in 11 million states */
#endif

byte cell_lock = 0;             /* 1 + owner */
byte slot[SLOTS];
byte head = 0, tail = 0;        /* running counts */
byte parcel_lock[PARCELS];
byte refs[PARCELS];
byte holds[4];                  /* by parcel * RANKS + rank */
bool free_[PARCELS];
bool writing[PARCELS];

/* Intents. */
bool committed[RANKS];
bool may_cell[RANKS];
byte may_parcel[RANKS] = NONE;
byte new_head[RANKS], new_tail[RANKS], new_slot[RANKS], new_refs[RANKS], new_hold[RANKS];
byte freeing[RANKS] = NONE;
bool changes_cell[RANKS], changes_refs[RANKS];

bool dead[RANKS];
bool may_die = true;
byte ended = 0;                 /* ranks that are dead or done */

#define HOLD(p, r) holds[(p) * RANKS + (r)]
#define IN_CELL(p) ((tail - head >= 1 && slot[head % SLOTS] == (p)) + \
                    (tail - head >= 2 && slot[(head + 1) % SLOTS] == (p)))

/* Death comes before any step of a rank that has not been told to live. */
#define STEP(s) \
    if \
    :: atomic { may_die -> may_die = false; dead[me] = true; ended++; goto over } \
    :: atomic { s } \
    fi

inline check(p)
{
    assert(cell_lock != 0 || parcel_lock[p] != 0 || refs[p] == HOLD(p, 0) + HOLD(p, 1) + IN_CELL(p))
}

inline apply(r)
{
    if
    :: changes_cell[r] -> slot[(new_tail[r] + SLOTS - 1) % SLOTS] = new_slot[r]
    :: else
    fi;
    if
    :: changes_cell[r] -> head = new_head[r]; tail = new_tail[r]
    :: else
    fi
}

/* What a survivor does about a dead rank. */
inline recover(d)
{
    if
    :: dead[d] ->
#ifndef NO_REDO
       if
       :: committed[d] ->
          apply(d);
          if
          :: may_parcel[d] != NONE ->
             HOLD(may_parcel[d], d) = new_hold[d];
             if
             :: changes_refs[d] -> refs[may_parcel[d]] = new_refs[d]
             :: else
             fi
          :: else
          fi
       :: else
       fi;
#endif
       committed[d] = false;
       if
       :: may_parcel[d] != NONE && parcel_lock[may_parcel[d]] == d + 1 ->
          parcel_lock[may_parcel[d]] = 0
       :: else
       fi;
       if
       :: may_cell[d] && cell_lock == d + 1 -> cell_lock = 0
       :: else
       fi;
       may_parcel[d] = NONE; may_cell[d] = false;
       /* What it was about to free. */
       if
       :: freeing[d] != NONE && refs[freeing[d]] == 0 && !free_[freeing[d]] ->
          free_[freeing[d]] = true
       :: else
       fi;
       freeing[d] = NONE
    :: else
    fi
}

/* The dead rank's holds end; the parcels are locked one by one, as by any release. */
inline bury(d)
{
#ifndef NO_HOLDS
    i = 0;
    do
    :: i < PARCELS && dead[d] ->
       atomic {
        parcel_lock[i] == 0 ->
        if
        :: HOLD(i, d) > 0 ->
           refs[i] = refs[i] - HOLD(i, d);
           HOLD(i, d) = 0;
              if
           :: refs[i] == 0 -> assert(!free_[i]); free_[i] = true
           :: else
           fi
        :: else
        fi;
        check(i);
        i++
       }
    :: i == PARCELS || !dead[d] -> break
    od
#else
    skip
#endif
}

inline lock_cell()
{
#ifdef LATE_NOTE
    STEP(cell_lock == 0 -> cell_lock = me + 1);
    STEP(may_cell[me] = true)
#else
    STEP(may_cell[me] = true);
    if
    :: atomic { may_die -> may_die = false; dead[me] = true; ended++; goto over }
    :: atomic { cell_lock == 0 -> cell_lock = me + 1 }
    :: atomic { dead[other] && cell_lock == other + 1 -> recover(other); cell_lock = me + 1 }
    fi
#endif
}

inline lock_parcel(p)
{
    STEP(may_parcel[me] = p);
    if
    :: atomic { may_die -> may_die = false; dead[me] = true; ended++; goto over }
    :: atomic { parcel_lock[p] == 0 -> parcel_lock[p] = me + 1 }
    :: atomic { dead[other] && parcel_lock[p] == other + 1 -> recover(other);
                parcel_lock[p] = me + 1 }
    fi
}

/* The lock is for changes of the sum of references. */
inline touch_parcel(p, sum)
{
    if
    :: sum -> lock_parcel(p)
    :: else -> STEP(may_parcel[me] = p)
    fi;
#ifdef REFS_TOO
    STEP(changes_refs[me] = true)
#else
    STEP(changes_refs[me] = sum)
#endif
}

/* Stores what the intent says, in its order, and frees the locks. */
inline commit(p)
{
    STEP(committed[me] = true);
    STEP(if :: changes_cell[me] -> slot[(new_tail[me] + SLOTS - 1) % SLOTS] = new_slot[me]
         :: else fi);
    STEP(if :: changes_cell[me] -> head = new_head[me]; tail = new_tail[me] :: else fi);
    STEP(HOLD(p, me) = new_hold[me]);
    STEP(if :: changes_refs[me] -> refs[p] = new_refs[me] :: else fi);
#ifdef UNLOCK_FIRST
    STEP(if :: parcel_lock[p] == me + 1 -> parcel_lock[p] = 0 :: else fi);
    if
    :: changes_cell[me] -> STEP(cell_lock = 0)
    :: else
    fi;
    STEP(committed[me] = false)
#else
    STEP(committed[me] = false);
    STEP(if :: parcel_lock[p] == me + 1 -> parcel_lock[p] = 0 :: else fi; check(p));
    if
    :: may_cell[me] -> STEP(cell_lock = 0)
    :: else
    fi;
#endif
    STEP(may_cell[me] = false; may_parcel[me] = NONE)
}

inline finish_free()
{
    if
    :: freeing[me] != NONE && refs[freeing[me]] == 0 ->
       STEP(assert(!free_[freeing[me]]); free_[freeing[me]] = true)
    :: else
    fi;
    STEP(freeing[me] = NONE)
}

/* Adds the parcel, giving or keeping. */
inline enq(p, keep)
{
    lock_cell();
    if
    :: tail - head < SLOTS ->
       touch_parcel(p, keep);
       STEP(changes_cell[me] = true; new_slot[me] = p; new_head[me] = head;
            new_tail[me] = tail + 1;
            new_hold[me] = HOLD(p, me) - (keep -> 0 : 1);
            new_refs[me] = refs[p] + (keep -> 1 : 0));
       commit(p)
    :: else -> STEP(cell_lock = 0); STEP(may_cell[me] = false)
    fi
}

/* Takes the first one, or reads it, or drops it: what zap does with each. */
inline take(remove, hold)
{
    lock_cell();
    if
    :: tail - head > 0 ->
       p = slot[head % SLOTS];
       assert(!free_[p]);
       touch_parcel(p, !remove || hold == 0);
       STEP(changes_cell[me] = remove; new_slot[me] = slot[(tail + SLOTS - 1) % SLOTS];
            new_head[me] = head + 1; new_tail[me] = tail;
            new_hold[me] = HOLD(p, me) + hold;
            new_refs[me] = refs[p] + hold - (remove -> 1 : 0);
            freeing[me] = (refs[p] + hold - (remove -> 1 : 0) == 0 -> p : NONE));
       commit(p);
       /* What it holds now, it reads: nobody may be writing to it. */
       assert(hold == 0 || !writing[p]);
       finish_free()
    :: else -> STEP(cell_lock = 0); STEP(may_cell[me] = false)
    fi
}

inline release(p)
{
    touch_parcel(p, true);
    STEP(changes_cell[me] = false; new_hold[me] = HOLD(p, me) - 1; new_refs[me] = refs[p] - 1;
         freeing[me] = (refs[p] == 1 -> p : NONE));
    commit(p);
    finish_free()
}

/* Writes in place when nobody else has it; else it would copy. */
inline mod(p)
{
    if
#ifdef WRITE_SHARED
    :: true ->
       STEP(writing[p] = true);
#else
    :: refs[p] == HOLD(p, me) ->
       STEP(writing[p] = true);
#endif
       assert(refs[p] == HOLD(p, me) && HOLD(p, other) == 0 && IN_CELL(p) == 0);
       STEP(writing[p] = false)
    :: else
    fi
}

proctype rank(byte me)
{
    byte steps = 0, p, i;
    byte other = 1 - me;

    do
    :: steps < STEPS ->
       steps++;
       /* At some time it hears of the death. */
       if
       :: dead[other] -> atomic { recover(other) }; bury(other)
       :: skip
       fi;
       p = NONE;
       if
       :: HOLD(0, me) > 0 -> p = 0
       :: HOLD(1, me) > 0 -> p = 1
       :: skip
       fi;
       if
       :: p != NONE -> enq(p, false)
       :: p != NONE -> enq(p, true)
       :: p != NONE -> release(p)
       :: p != NONE -> mod(p)
       :: p == NONE -> take(true, 1)
       :: p == NONE -> take(false, 1)
       :: p == NONE -> take(true, 0)
       fi;
       p = NONE
    :: steps == STEPS -> break
    od;

    do
    :: HOLD(0, me) > 0 -> release(0)
    :: HOLD(1, me) > 0 -> release(1)
    :: else -> break
    od;
    ended++;
over:
    skip
}

/* Whoever comes last: recovers the dead, empties the cell, counts. */
active proctype audit()
{
    byte i, p;

    atomic {
        ended == RANKS;
        recover(0);
        recover(1);
        bury(0);
        bury(1);
        assert(cell_lock == 0 && parcel_lock[0] == 0 && parcel_lock[1] == 0);
        do
        :: tail - head > 0 ->
           p = slot[head % SLOTS];
           assert(!free_[p]);
           head++;
           refs[p]--;
           if
           :: refs[p] == 0 -> free_[p] = true
           :: else
           fi
        :: tail == head -> break
        od;
        assert(refs[0] == 0 && refs[1] == 0);
        assert(free_[0] && free_[1])
    }
}

init
{
    atomic {
        refs[0] = 1; HOLD(0, 0) = 1;
        refs[1] = 1; HOLD(1, 1) = 1;
        run rank(0);
        run rank(1)
    }
}
