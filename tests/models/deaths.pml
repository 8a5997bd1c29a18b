/* Termination when ranks may die (src/core/quiesce.c and wave.c): counts per peer, the share of the
 * dead added to the other side, waves that hold only among ranks that know the same to be dead.
 *
 * Four ranks, of which the last two may die, each at any moment; what they hold dies with them. Each
 * rank learns of each death at its own time, after it has taken what the dead had sent it (here: at
 * once, or it is dropped), and so two ranks may know of one death each, and not of the same.
 * Mutants: NO_SHARE does not count the dead out; NO_MARK lets a wave mix ranks that know of
 * different deaths.
 *
 * With MORTAL the program does not go on after deaths (loss.h): who knows of one answers no wave, and
 * the root begins none. Then an announcement says that nothing was in flight anywhere, also not to
 * or from those that have died meanwhile. Mutant of that: ANSWERS_ON, ranks that know of a death
 * answer all the same.
 *
 * A handler is one step: no wave and no news come to a rank inside one, and what a rank that dies
 * inside one has not counted is not counted with the dead either. */
#define RANKS 4
#ifndef BUDGET
#define BUDGET 2 /* messages */
#endif

#define AT(a, b) ((a) * RANKS + (b))
#define BIT(i) (1 << (i))
#define DEAD(i) (dead & BIT(i))
#define KNOWS(i, j) (knows[i] & BIT(j))

#ifdef ANSWERS_ON
#define MORTAL
#endif
#if defined(MORTAL) && !defined(ANSWERS_ON)
#define GOES_ON(i) (knows[i] == 0)
#else
#define GOES_ON(i) true
#endif

#ifdef NO_MARK
#define SAME_MARK(i) true
#else
#define SAME_MARK(i) (knows[i] == mark)
#endif

byte budget = BUDGET;
bool begun[RANKS]; /* has come to the end of its program, where it takes part in waves */
byte flying[16]; /* AT(source, target) */
byte dead;         /* a bit for each */
byte knows[RANKS]; /* likewise */
byte sent[16];     /* AT(rank, to) */
byte received[16]; /* AT(rank, from); handled */

#define COMES(i) (flying[AT(i, _pid)] > 0 && !KNOWS(_pid, i))

inline send_to(i)
{
    budget--;
    sent[AT(_pid, i)]++;
    flying[AT(_pid, i)]++
}

inline send_some()
{
    do
    :: budget > 0 -> send_to(0)
    :: budget > 0 -> send_to(1)
    :: budget > 0 && !KNOWS(_pid, 2) -> send_to(2)
    :: budget > 0 && !KNOWS(_pid, 3) -> send_to(3)
    :: break
    od
}

active [RANKS] proctype rank()
{
    byte source;
endunborn:
    atomic { !DEAD(_pid) -> send_some(); begun[_pid] = true };
end:
    do
    :: atomic {
        !DEAD(_pid) && (COMES(0) || COMES(1) || COMES(2) || COMES(3)) ->
        if
        :: COMES(0) -> source = 0
        :: COMES(1) -> source = 1
        :: COMES(2) -> source = 2
        :: COMES(3) -> source = 3
        fi;
        flying[AT(source, _pid)]--;
        send_some();
        received[AT(_pid, source)]++;
        source = 0
       }
    od
}

#define MAY_LEARN(i, j) (DEAD(j) && !DEAD(i) && !KNOWS(i, j))

active proctype death()
{
end:
    do
    :: atomic { !DEAD(2) -> dead = dead | BIT(2) }
    :: atomic { !DEAD(3) -> dead = dead | BIT(3) }
    :: atomic { MAY_LEARN(0, 2) -> knows[0] = knows[0] | BIT(2) }
    :: atomic { MAY_LEARN(0, 3) -> knows[0] = knows[0] | BIT(3) }
    :: atomic { MAY_LEARN(1, 2) -> knows[1] = knows[1] | BIT(2) }
    :: atomic { MAY_LEARN(1, 3) -> knows[1] = knows[1] | BIT(3) }
    :: atomic { MAY_LEARN(2, 3) -> knows[2] = knows[2] | BIT(3) }
    :: atomic { MAY_LEARN(3, 2) -> knows[3] = knows[3] | BIT(2) }
    od
}

/* Sums of a rank: what went to the dead it has finished, what came from them it has created. */
inline visit(i)
{
    for (k : 0 .. RANKS - 1) {
        created = created + sent[AT(i, k)];
        finished = finished + received[AT(i, k)];
#ifndef NO_SHARE
        if
        :: KNOWS(i, k) ->
            created = created + received[AT(i, k)];
            finished = finished + sent[AT(i, k)]
        :: else
        fi
#endif
    };
    k = 0
}

/* The root, rank 0, starts a wave with what it knows; a rank answers when it knows the same. */
active proctype waves()
{
    byte created, finished, last, k, mark, at;
    bool balanced = false;
end:
    do
    :: atomic {
        begun[0] && GOES_ON(0) -> created = 0; finished = 0;
        if
        :: mark != knows[0] -> mark = knows[0]; balanced = false
        :: else
        fi;
        visit(0);
        at = 1
       };
       do
       :: atomic { at < RANKS && (mark & BIT(at)) -> at++ }
       :: atomic {
           at < RANKS && !(mark & BIT(at)) && !DEAD(at) && begun[at] && SAME_MARK(at) && GOES_ON(at) ->
           visit(at);
           at++
          }
       :: atomic { knows[0] != mark -> at = 0; break }
       :: at == RANKS -> break
       od;
       atomic {
        if
        :: at == 0 || knows[0] != mark -> balanced = false
        :: else ->
            if
            :: created == finished && balanced && created == last -> break
            :: else -> balanced = (created == finished); last = created
            fi
        fi;
        at = 0
       }
    od;
    /* Nothing is left among the living. */
    atomic {
#ifdef MORTAL
        for (at : 0 .. RANKS * RANKS - 1) {
            assert(flying[at] == 0)
        };
#endif
        for (k : 0 .. RANKS - 1) {
            if
            :: !DEAD(k) && !(mark & BIT(k)) ->
                assert(begun[k]);
                for (at : 0 .. RANKS - 1) {
                    assert(DEAD(at) || (mark & BIT(at)) || flying[AT(at, k)] == 0)
                }
            :: else
            fi
        }
    }
}
