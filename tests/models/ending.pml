/* The end of an object (src/object/ends.c): each message to it has one end, and nobody keeps
 * anything of it.
 *
 * One object, created on rank 0, moves up to MOVES times and is destroyed somewhere, while ranks 1
 * and 2 send it SENDS messages each. `met` goes with the object: who has sent to it or has had it.
 * Where it ends a tombstone stays, the creator gets `met` and passes the word on: so a rank that has
 * had the object and gets a message after it has forgotten can ask the creator. Order is
 * migration.pml's matter. Mutants: NO_ASK waits for an object without asking; TELL_FIRST tells all
 * in `met` at once, before the creator knows; NO_WORD keeps the end from those in it. */
#define RANKS 3
#define SENDS 2
#define MOVES 3
#define ROOM 8

mtype = { MESSAGE, NONE, ASK };

/* From rank s to rank t: [s * RANKS + t]. MESSAGE origin movement; NONE met 0; ASK 0 0. */
chan data[RANKS * RANKS] = [ROOM] of { mtype, byte, byte };
chan arrival[RANKS * RANKS] = [2] of { byte, byte };

bool here[RANKS];
bool entry[RANKS], hosted[RANKS], dead[RANKS];
byte guess[RANKS], movement[RANKS];
byte held[RANKS * RANKS]; /* [rank * RANKS + origin] */
bool waits[RANKS];
byte sent[RANKS];
byte unended;
byte moves;
byte met; /* the object's, wherever it is */
bool alive = true; /* the name: the creator's alone */

inline forget(r)
{
    entry[r] = false; hosted[r] = false; dead[r] = false; guess[r] = 0; movement[r] = 0
}

/* A message has failed: its sender hears of it. */
inline bounce(origin)
{
    unended--;
    if
    :: origin != _pid -> data[_pid * RANKS + origin]!NONE, 0, 0
    :: else
    fi
}

/* The queued messages of rank _pid fail. */
inline give_up()
{
    waits[_pid] = false;
    origin = 0;
    do
    :: origin < RANKS && held[_pid * RANKS + origin] > 0 ->
       held[_pid * RANKS + origin]--;
       bounce(origin)
    :: origin < RANKS && held[_pid * RANKS + origin] == 0 -> origin++
    :: origin == RANKS -> break
    od
}

/* On the creator: the end, and whom to tell. */
inline end_name(list)
{
    if
    :: alive -> alive = false; forget(0)
    :: else
    fi;
#ifndef NO_WORD
    if
    :: list & 2 -> data[1]!NONE, 0, 0
    :: else
    fi;
    if
    :: list & 4 -> data[2]!NONE, 0, 0
    :: else
    fi
#endif
}

inline hear_end(source, list)
{
    if
    :: _pid == 0 && !here[0] && !waits[0] -> end_name(list)
    :: _pid == 0 && (here[0] || waits[0]) -> assert(false)
    :: _pid != 0 && entry[_pid] && !here[_pid] && (!waits[_pid] || source == 0) ->
       if
       :: waits[_pid] -> give_up()
       :: else
       fi;
       if
#ifdef TELL_FIRST
       :: true -> forget(_pid)
#else
       :: source == 0 || !hosted[_pid] -> forget(_pid)
       :: else -> dead[_pid] = true
#endif
       fi
    :: else
    fi
}

inline take(origin, known)
{
    if
    :: here[_pid] -> unended--; met = met | (1 << origin)
    :: !here[_pid] && waits[_pid] -> held[_pid * RANKS + origin]++
    :: !here[_pid] && !waits[_pid] && ((_pid == 0 && !entry[0]) || dead[_pid]) -> bounce(origin)
    :: !here[_pid] && !waits[_pid] && !(_pid == 0 && !entry[0]) && !dead[_pid] ->
       if
       :: entry[_pid] && movement[_pid] > known ->
          data[_pid * RANKS + guess[_pid]]!MESSAGE, origin, movement[_pid]
       :: else ->
          assert(!entry[_pid] || movement[_pid] < known);
          entry[_pid] = true;
          waits[_pid] = true;
          held[_pid * RANKS + origin]++;
#ifndef NO_ASK
          if
          :: _pid != 0 -> data[_pid * RANKS]!ASK, 0, 0
          :: else
          fi
#endif
       fi
    fi
}

active [RANKS] proctype rank()
{
    byte source, origin, known, target;
    mtype what;

    atomic {
        here[_pid] = _pid == 0;
        entry[_pid] = _pid == 0;
        hosted[_pid] = _pid == 0
    }
end:
    do
    :: atomic { _pid > 0 && sent[_pid] < SENDS ->
          sent[_pid]++;
          if
          :: here[_pid] -> met = met | (1 << _pid)
          :: !here[_pid] && dead[_pid] -> skip /* refused */
          :: !here[_pid] && !dead[_pid] && waits[_pid] ->
             unended++;
             held[_pid * RANKS + _pid]++
          :: !here[_pid] && !dead[_pid] && !waits[_pid] ->
             entry[_pid] = true; /* a new one points at rank 0, movement 0 */
             unended++;
             data[_pid * RANKS + guess[_pid]]!MESSAGE, _pid, movement[_pid]
          fi
       }
    :: atomic { here[_pid] && moves < MOVES ->
          if
          :: target = (_pid + 1) % RANKS
          :: target = (_pid + 2) % RANKS
          fi;
          moves++;
          movement[_pid]++;
          guess[_pid] = target;
          here[_pid] = false;
          arrival[_pid * RANKS + target]!movement[_pid], 0
       }
    :: atomic { here[_pid] ->
          here[_pid] = false;
          if
          :: _pid == 0 -> end_name(met)
#ifdef TELL_FIRST
          :: else ->
             dead[_pid] = true;
             if
             :: _pid == 1 && (met & 4) -> data[RANKS + 2]!NONE, 0, 0
             :: _pid == 2 && (met & 2) -> data[2 * RANKS + 1]!NONE, 0, 0
             :: else
             fi;
             data[_pid * RANKS]!NONE, 1 << _pid, 0
#else
          :: else -> dead[_pid] = true; data[_pid * RANKS]!NONE, met, 0
#endif
          fi
       }
    :: atomic {
          if
          :: arrival[_pid]?known, _
          :: arrival[RANKS + _pid]?known, _
          :: arrival[2 * RANKS + _pid]?known, _
          fi;
          assert(!here[_pid] && !dead[_pid] && known > movement[_pid]);
          here[_pid] = true;
          entry[_pid] = true;
          hosted[_pid] = true;
          guess[_pid] = _pid;
          movement[_pid] = known;
          met = met | (1 << _pid);
          waits[_pid] = false;
          for (origin : 0 .. RANKS - 1) {
              if
              :: held[_pid * RANKS + origin] > 0 ->
                 met = met | (1 << origin);
                 unended = unended - held[_pid * RANKS + origin];
                 held[_pid * RANKS + origin] = 0
              :: else
              fi
          }
       }
    :: atomic {
          if
          :: data[_pid]?what, origin, known -> source = 0
          :: data[RANKS + _pid]?what, origin, known -> source = 1
          :: data[2 * RANKS + _pid]?what, origin, known -> source = 2
          fi;
          if
          :: what == MESSAGE -> take(origin, known)
          :: what == NONE -> target = origin; hear_end(source, target)
          :: what == ASK ->
             if
             :: !alive -> data[source]!NONE, 0, 0
             :: else
             fi
          fi;
          source = 0; origin = 0; known = 0; target = 0
       }
    od
}

/* When nothing can happen any more, each message has ended, and nobody remembers. */
active proctype judge()
{
end:
    timeout ->
    assert(unended == 0 && !alive);
    assert(!waits[0] && !waits[1] && !waits[2]);
    assert(!entry[0] && !entry[1] && !entry[2])
}
