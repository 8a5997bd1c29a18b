/* Termination (docs/decisions/0004): two equal waves of sums of created and finished work, created
 * equal to finished, mean that there is no message and no running handler anywhere.
 *
 * An object in flight is such a message, whose handler installs it.
 *
 * Three ranks exchange up to BUDGET messages; a handler may send before it returns. Messages travel
 * in any order. A wave visits the ranks one after the other, each only when no handler runs there.
 * Mutants: ONE_WAVE announces after a single balanced wave; COUNT_ARRIVALS counts a message as
 * finished when its handler starts, and visits busy ranks too. */
#define RANKS 3
#define BUDGET 4

byte budget = BUDGET;
byte flying[RANKS];
bool running[RANKS] = true; /* outside ferry_quiesce, or in a handler */
byte created[RANKS];
byte finished[RANKS];
bool announced = false;

inline send_any()
{
    if
    :: target = 0
    :: target = 1
    :: target = 2
    fi;
    budget--;
    created[_pid]++;
    flying[target]++
}

/* A rank: its program sends first, then only handlers do. */
active [RANKS] proctype rank()
{
    byte target;

    do
    :: atomic { budget > 0 -> send_any() }
    :: break
    od;
    running[_pid] = false;
end:
    do
    :: atomic {
        flying[_pid] > 0 -> flying[_pid]--; running[_pid] = true;
#ifdef COUNT_ARRIVALS
        finished[_pid]++
#endif
       };
       do
       :: atomic { budget > 0 -> send_any() }
       :: break
       od;
       atomic {
#ifndef COUNT_ARRIVALS
        finished[_pid]++;
#endif
        running[_pid] = false
       }
    od
}

active proctype waves()
{
    byte i, sum_created, sum_finished, last_created, last_finished;
    bool first = true;

    do
    :: i = 0; sum_created = 0; sum_finished = 0;
       do
       :: i < RANKS ->
          atomic {
#ifndef COUNT_ARRIVALS
            !running[i];
#endif
            sum_created = sum_created + created[i];
            sum_finished = sum_finished + finished[i];
            i++
          }
       :: i == RANKS -> break
       od;
       atomic {
        if
#ifdef ONE_WAVE
        :: sum_created == sum_finished -> break
#else
        :: !first && sum_created == sum_finished && sum_created == last_created &&
           sum_finished == last_finished -> break
#endif
        :: else -> first = false; last_created = sum_created; last_finished = sum_finished
        fi
       }
    od;
    announced = true;
    assert(flying[0] + flying[1] + flying[2] == 0);
    assert(!running[0] && !running[1] && !running[2])
}
