/* Termination when ranks may die (src/core/quiesce.c): counts per peer, the dead's share added to
 * the other side, waves that hold only among ranks that know the same to be dead.
 *
 * Three ranks, of which one may die at any moment; what it holds dies with it. Each rank learns of
 * the death at its own time, after it has taken what the dead had sent it (here: at once, or it is
 * dropped). Mutants: NO_SHARE does not count the dead out; NO_MARK lets a wave mix ranks that know
 * of the death and ranks that do not. */
#define RANKS 3
#define BUDGET 3
#define MORTAL 2

#ifdef NO_MARK
#define SAME_MARK(i) true
#else
#define SAME_MARK(i) (knows[i] == mark)
#endif

byte budget = BUDGET;
byte flying[9]; /* source * RANKS + target */
bool running[RANKS] = true;
bool dead = false;
bool knows[RANKS];
byte sent[9];     /* rank * RANKS + to */
byte received[9]; /* rank * RANKS + from; handled */
bool announced = false;

inline send_any()
{
    if
    :: target = 0
    :: target = 1
    :: target = 2
    fi;
    if
    :: target == MORTAL && knows[_pid] -> skip
    :: else -> budget--; sent[_pid * RANKS + target]++; flying[_pid * RANKS + target]++
    fi
}

active [RANKS] proctype rank()
{
    byte target, source;
    do
    :: atomic { budget > 0 && !(_pid == MORTAL && dead) -> send_any() }
    :: break
    od;
    running[_pid] = false;
end:
    do
    :: atomic {
        !(_pid == MORTAL && dead) && (flying[_pid] > 0 || flying[RANKS + _pid] > 0 ||
          (flying[2 * RANKS + _pid] > 0 && !knows[_pid])) ->
        if
        :: flying[0 * RANKS + _pid] > 0 -> source = 0
        :: flying[1 * RANKS + _pid] > 0 -> source = 1
        :: flying[2 * RANKS + _pid] > 0 && !knows[_pid] -> source = 2
        fi;
        flying[source * RANKS + _pid]--;
        running[_pid] = true
       };
       do
       :: atomic { budget > 0 && !(_pid == MORTAL && dead) -> send_any() }
       :: break
       od;
       atomic {
        received[_pid * RANKS + source]++;
        running[_pid] = false
       }
    od
}

active proctype death()
{
    if
    :: dead = true
    :: skip
    fi;
end:
    do
    :: atomic { dead && !knows[0] && !running[0] -> knows[0] = true }
    :: atomic { dead && !knows[1] && !running[1] -> knows[1] = true }
    od
}

inline visit(i)
{
    created = created + sent[i * RANKS] + sent[i * RANKS + 1] + sent[i * RANKS + 2];
    finished = finished + received[i * RANKS] + received[i * RANKS + 1] + received[i * RANKS + 2];
#ifndef NO_SHARE
    if
    :: knows[i] ->
        created = created + received[i * RANKS + MORTAL];
        finished = finished + sent[i * RANKS + MORTAL]
    :: else
    fi
#endif
}

/* The root, rank 0, starts a wave with what it knows; a rank answers when it knows the same. */
active proctype waves()
{
    byte created, finished, last;
    bool mark, balanced = false;
end:
    do
    :: atomic {
        !running[0] -> created = 0; finished = 0;
        if
        :: mark != knows[0] -> mark = knows[0]; balanced = false
        :: else
        fi;
        visit(0)
       };
       if
       :: atomic { !running[1] && SAME_MARK(1) -> visit(1) };
          if
          :: atomic { !mark && !dead && !running[2] -> visit(2) }
          :: atomic { mark || knows[0] != mark -> skip }
          fi;
          atomic {
            if
            :: knows[0] != mark -> balanced = false
            :: knows[0] == mark && created == finished && balanced && created == last -> break
            :: else -> balanced = (created == finished); last = created
            fi
          }
       :: atomic { knows[0] != mark -> balanced = false }
       fi
    od;
    announced = true;
    /* Nothing is left among the living. */
    assert(!running[0] && !running[1]);
    assert(flying[0] + flying[1] + flying[3] + flying[4] == 0);
    assert(mark || dead || flying[2] + flying[5] + flying[6] + flying[7] + flying[8] == 0)
}
