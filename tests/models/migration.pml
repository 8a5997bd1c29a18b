/* Forwarding, migration and order (src/object/deliver.c): each message reaches its object once, in
 * the order of its sender, after a bounded number of hops.
 *
 * One object, created on rank 0, moves up to MOVES times, while the other two ranks send it SENDS numbered
 * messages. Messages and locations travel in order between two ranks; the object travels with them
 * (src/object/piggyback.c) or in another lane, so anything may overtake anything else. A rank knows (guess, movement); a message carries
 * the best movement number of its route; who knows more forwards, who knows less waits for the
 * object. What the object itself takes along (expected, early) is global: only its rank uses it.
 * Mutants: ANY_ORDER handles messages as they come; STALE_LOCATION believes old news; NO_WAIT sends
 * on what should wait for the object; NO_MOVEMENT forwards without telling what it knew. */
#define RANKS 3
#define SENDS 2
#define MOVES 3
#define ROOM 5

mtype = { MESSAGE, LOCATION, OBJECT };

/* From rank s to rank t: [s * RANKS + t]. */
chan data[RANKS * RANKS] = [ROOM] of { mtype, byte, byte, byte, byte };
chan arrival[RANKS * RANKS] = [2] of { byte };
chan late[RANKS] = [ROOM] of { byte, byte };

bool here[RANKS];
byte guess[RANKS]; /* rank 0, the creator, at first */
byte movement[RANKS];
byte sent[RANKS];
byte moves;
byte expected[RANKS];
byte early[RANKS]; /* a bit per number */

inline handle(origin, number)
{
#ifdef ANY_ORDER
    assert(number == expected[origin]);
    expected[origin]++;
#else
    assert(number >= expected[origin] && !(early[origin] & (1 << number)));
    early[origin] = early[origin] | (1 << number);
    do
    :: early[origin] & (1 << expected[origin]) -> expected[origin]++
    :: else -> break
    od
#endif
}

inline take_message(origin, number, known, hops)
{
    if
    :: here[_pid] ->
       handle(origin, number);
       if
       :: hops > 0 && origin != _pid ->
          data[_pid * RANKS + origin]!LOCATION, _pid, movement[_pid], 0, 0
       :: else
       fi;
       if
       :: hops > 1 && origin != 0 && _pid != 0 ->
          data[_pid * RANKS]!LOCATION, _pid, movement[_pid], 0, 0
       :: else
       fi
    :: !here[_pid] && movement[_pid] > known ->
       assert(hops < MOVES + 1);
#ifdef NO_MOVEMENT
       data[_pid * RANKS + guess[_pid]]!MESSAGE, origin, number, known, hops + 1
#else
       data[_pid * RANKS + guess[_pid]]!MESSAGE, origin, number, movement[_pid], hops + 1
#endif
    :: !here[_pid] && movement[_pid] <= known ->
#ifdef NO_WAIT
       assert(hops < MOVES + 1);
       data[_pid * RANKS + guess[_pid]]!MESSAGE, origin, number, known, hops + 1
#else
       assert(movement[_pid] < known);
       late[_pid]!origin, number
#endif
    fi
}

inline settle(known)
{
    assert(!here[_pid] && known > movement[_pid]);
    here[_pid] = true;
    guess[_pid] = _pid;
    movement[_pid] = known;
    do
    :: late[_pid]?origin, number -> handle(origin, number)
    :: empty(late[_pid]) -> break
    od
}

active [RANKS] proctype rank()
{
    byte source, origin, number, known, hops, target;

    here[_pid] = _pid == 0;
end:
    do
    :: atomic { _pid > 0 && sent[_pid] < SENDS ->
          number = sent[_pid];
          sent[_pid]++;
          if
          :: here[_pid] -> handle(_pid, number)
          :: else -> data[_pid * RANKS + guess[_pid]]!MESSAGE, _pid, number, movement[_pid], 0
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
          if
          :: arrival[_pid * RANKS + target]!movement[_pid]
          :: data[_pid * RANKS + target]!OBJECT, movement[_pid], 0, 0, 0
          fi
       }
    :: atomic { here[_pid] && moves < MOVES -> moves = MOVES } /* it stays for good */
    :: atomic {
          if
          :: arrival[_pid]?known
          :: arrival[RANKS + _pid]?known
          :: arrival[2 * RANKS + _pid]?known
          fi;
          settle(known)
       }
    :: atomic {
          if
          :: data[_pid]?OBJECT, known, 0, 0, 0
          :: data[RANKS + _pid]?OBJECT, known, 0, 0, 0
          :: data[2 * RANKS + _pid]?OBJECT, known, 0, 0, 0
          fi;
          settle(known)
       }
    :: atomic {
          if
          :: data[_pid]?MESSAGE, origin, number, known, hops -> take_message(origin, number, known, hops)
          :: data[RANKS + _pid]?MESSAGE, origin, number, known, hops -> take_message(origin, number, known, hops)
          :: data[2 * RANKS + _pid]?MESSAGE, origin, number, known, hops -> take_message(origin, number, known, hops)
          :: data[_pid]?LOCATION, target, known, 0, 0 -> goto hear
          :: data[RANKS + _pid]?LOCATION, target, known, 0, 0 -> goto hear
          :: data[2 * RANKS + _pid]?LOCATION, target, known, 0, 0 -> goto hear
          fi;
          goto done;
hear:
          if
#ifdef STALE_LOCATION
          :: !here[_pid] -> guess[_pid] = target; movement[_pid] = known
#else
          :: !here[_pid] && known > movement[_pid] -> guess[_pid] = target; movement[_pid] = known
#endif
          :: else
          fi;
done:     hops = 0
       }
    od
}

/* When nothing can happen any more, everything has been handled. */
active proctype judge()
{
end:
    timeout ->
    assert(here[0] + here[1] + here[2] == 1);
    assert(expected[1] == SENDS && expected[2] == SENDS)
}
