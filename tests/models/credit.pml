/* Credit for messages to objects that move (docs/decisions/0017): nothing that progress needs waits
 * for credit, so every message is handled and every token is taken back.
 *
 * A sender has SENDS numbered messages for one object, which moves up to MOVES times between two
 * hosts. Rings have room for one message. A message that finds its object gone is forwarded; one that
 * comes before the object, or before an earlier message, is held. A host that holds more than LIMIT
 * messages sends the sender a token, and takes it back when half of that has gone; while the sender has
 * tokens no message leaves it. Held messages travel with the object, and so does a token. In half of
 * the runs the program of the sender itself carries the object at first, and hands it over after its
 * last sending.
 * Mutants: NO_ROUTE lets a message leave by another queue than those before it (the old rule);
 * FORWARD_WAITS makes forwards wait for credit; MAIN_WAITS makes the program that carries the object
 * wait for credit; TOKEN_LOST forgets the token that came with the object. */
#define SENDS 3
#define MOVES 2
#define LIMIT 1
#define HOSTS 2

/* From the sender to host h: [h]; from host h to the other: [HOSTS + h]. */
chan ring[4] = [1] of { byte };
chan backlog[HOSTS] = [SENDS] of { byte }; /* forwards without room */
chan queue[HOSTS] = [SENDS] of { byte };   /* of the sender, for each host */
chan object[HOSTS] = [1] of { byte };      /* in flight, with a token or without */
chan control = [4] of { bool, byte };      /* tokens given (true) or taken back */

bool here[HOSTS], carried;
byte place; /* where the object is, or will be */
byte guess; /* of the sender */
byte moves, sent, expected;
byte early, late[HOSTS]; /* a bit per number */
byte held[HOSTS], given[HOSTS];
byte tokens; /* of the sender */

#define DONE (expected == SENDS && tokens == 0 && len(control) == 0 && given[0] + given[1] == 0)
#ifndef NOLTL
ltl progress { <> [] DONE }
#endif

inline accept(h, n)
{
    assert(n >= expected && !(early & (1 << n)));
    early = early | (1 << n);
    held[h]++;
    do
    :: early & (1 << expected) ->
       early = early & ~(1 << expected);
       held[h]--;
       expected++
    :: else -> break
    od
}

inline receive(h, n)
{
    if
    :: here[h] -> accept(h, n)
    :: !here[h] && place != h -> backlog[h]!n
    :: !here[h] && place == h -> late[h] = late[h] | (1 << n); held[h]++
    fi
}

active [HOSTS] proctype host()
{
    byte n, token, count;

end:
    do
    :: atomic { ring[_pid]?n -> receive(_pid, n) }
    :: atomic { ring[3 - _pid]?n -> receive(_pid, n) }
    :: atomic {
#ifdef FORWARD_WAITS
          tokens == 0 &&
#endif
          nempty(backlog[_pid]) && nfull(ring[HOSTS + _pid]) ->
          backlog[_pid]?n;
          ring[HOSTS + _pid]!n
       }
    :: atomic { here[_pid] && moves < MOVES ->
          moves++;
          here[_pid] = false;
          place = 1 - _pid;
          token = (early != 0 && given[_pid] != 0 -> 1 : 0);
          given[_pid] = given[_pid] - token;
          held[_pid] = 0;
          object[place]!token
       }
    :: atomic { here[_pid] && moves < MOVES -> moves = MOVES }
    :: atomic { object[_pid]?token ->
          here[_pid] = true;
#ifndef TOKEN_LOST
          given[_pid] = given[_pid] + token;
#endif
          count = 0;
          n = 0;
          do
          :: n < SENDS -> count = count + ((early >> n) & 1); n++
          :: else -> break
          od;
          held[_pid] = count;
          n = 0;
          do
          :: n < SENDS && (late[_pid] & (1 << n)) -> accept(_pid, n); n++
          :: n < SENDS && !(late[_pid] & (1 << n)) -> n++
          :: n == SENDS -> break
          od;
          late[_pid] = 0
       }
    :: atomic { held[_pid] > LIMIT && given[_pid] == 0 -> given[_pid] = 1; control!true, 1 }
    :: atomic { given[_pid] != 0 && held[_pid] <= LIMIT / 2 ->
          control!false, given[_pid];
          given[_pid] = 0
       }
    od
}

/* Handlers never wait for credit. The main program that carries the object does not either. */
#ifdef MAIN_WAITS
#define MAY_SEND (!carried || (tokens == 0 && len(queue[0]) + len(queue[1]) == 0))
#else
#define MAY_SEND true
#endif

active proctype sender()
{
    byte n, h, count;
    bool give;

    if
    :: carried = true
    :: here[0] = true
    fi;
end:
    do
    :: atomic { sent < SENDS && MAY_SEND ->
          h = guess;
#ifndef NO_ROUTE
          if
          :: len(queue[0]) != 0 -> h = 0
          :: len(queue[1]) != 0 -> h = 1
          :: else
          fi;
#endif
          queue[h]!sent;
          sent++
       }
    :: atomic { carried && sent == SENDS -> carried = false; object[0]!0 }
    :: atomic { !carried && guess != place -> guess = place }
    :: atomic { tokens == 0 && nempty(queue[0]) && nfull(ring[0]) -> queue[0]?n; ring[0]!n }
    :: atomic { tokens == 0 && nempty(queue[1]) && nfull(ring[1]) -> queue[1]?n; ring[1]!n }
    :: atomic { control?give, count ->
          if
          :: give -> tokens = tokens + count
          :: else -> tokens = tokens - count
          fi
       }
    od
}

/* When nothing can happen any more, everything has been handled and no token is left. */
active proctype judge()
{
end:
    timeout ->
    assert(DONE)
}
