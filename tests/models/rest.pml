/* Termination by the board (src/core/rest.c): if what all ranks have finished, read first, is what
 * all have created, read next from ranks that are all at rest, then there is no message and no
 * running handler anywhere.
 *
 * Three ranks exchange up to BUDGET messages; a handler may send before it returns. Messages travel
 * in any order. A rank writes its line field by field, and a reader reads field by field. Mutants:
 * NO_STIR sends while the line says that its rank is at rest; CREATED_FIRST reads the sums in the
 * other order; BLIND does not look whether ranks are at rest. */
#define RANKS 3
#ifndef BUDGET
#define BUDGET 2
#endif

byte budget = BUDGET;
byte flying[RANKS];
bool running[RANKS] = true; /* outside ferry_quiesce, or in a handler */
byte created[RANKS];
byte finished[RANKS];

/* The board */
bool rests[RANKS];
byte told_created[RANKS];
byte told_finished[RANKS];

inline send_any()
{
#ifndef NO_STIR
    rests[_pid] = false;
#endif
    atomic {
        if
        :: target = 0
        :: target = 1
        :: target = 2
        fi;
        created[_pid]++;
        flying[target]++
    }
}

inline write_line()
{
    told_created[_pid] = created[_pid];
    told_finished[_pid] = finished[_pid];
    rests[_pid] = true
}

/* A rank: its program sends first, then only handlers do. */
active [RANKS] proctype rank()
{
    byte target;

    do
    :: atomic { budget > 0 -> budget-- } send_any()
    :: break
    od;
    running[_pid] = false;
    write_line();
end:
    do
    :: atomic { flying[_pid] > 0 -> flying[_pid]--; running[_pid] = true }
       do
       :: atomic { budget > 0 -> budget-- } send_any()
       :: break
       od;
       atomic { finished[_pid]++; running[_pid] = false }
       write_line()
    od
}

inline add_finished()
{
    i = 0;
    do
    :: i < RANKS -> sum_finished = sum_finished + told_finished[i]; i++
    :: i == RANKS -> break
    od
}

inline add_created()
{
    i = 0;
    do
    :: i < RANKS ->
#ifndef BLIND
       all = all && rests[i];
#endif
       sum_created = sum_created + told_created[i]; i++
    :: i == RANKS -> break
    od
}

active proctype reader()
{
    byte i, sum_created, sum_finished;
    bool all;

again:
    sum_created = 0; sum_finished = 0; all = true;
#ifdef CREATED_FIRST
    add_created(); add_finished();
#else
    add_finished(); add_created();
#endif
    if
    :: all && sum_created == sum_finished -> skip
    :: else -> goto again
    fi;
    assert(flying[0] + flying[1] + flying[2] == 0);
    assert(!running[0] && !running[1] && !running[2])
}
