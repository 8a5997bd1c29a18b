/* Going to sleep where ranks share processors (src/port/shm/wait.c): the receiver runs membarrier only
 * when it begins to sleep often, and says so by a bit; then senders fence, and it sleeps without. It
 * takes the bit back when it has not slept for a while. A sender that published without a fence looks
 * at the bit once more after it has looked whether the receiver sleeps. No message may wait for a
 * sleeper unwoken.
 *
 * The sender's processor has a store buffer, as x86 has: a store becomes visible some time later, or
 * with an exchange, as that which takes the sleeper's word back. What the receiver writes here is
 * sequentially consistent. Deadlock before all messages are taken is the
 * error. Mutants: NO_BARRIER leaves membarrier out, NO_SECOND_LOOK the sender's look at the bit. */
#define MESSAGES 4

byte published = 0; /* what the receiver can see of the ring */
byte buffered = 0;  /* the sender's stores that are not visible yet */
bool sleeping = false;
bool fenced = false;   /* senders fence */
bool woken = false;

/* Under `atomic`. */
inline make_visible()
{
    do
    :: buffered > 0 -> buffered--; published++
    :: buffered == 0 -> break
    od
}

active proctype drain()
{
end:
    do
    :: atomic { buffered > 0 -> buffered--; published++ }
    od
}

active proctype sender()
{
    byte sent = 0;
    bool fences;

    do
    :: sent < MESSAGES ->
       fences = fenced;
       buffered++;
       sent++;
       if
       :: fences -> atomic { make_visible() }
       :: !fences -> skip
       fi;
       if
       :: atomic { sleeping -> make_visible(); sleeping = false; woken = true }
       :: !sleeping ->
#ifndef NO_SECOND_LOOK
          if
          :: !fences && fenced ->
             atomic { make_visible() };
             if
             :: atomic { sleeping -> make_visible(); sleeping = false; woken = true }
             :: atomic { !sleeping -> skip }
             fi
          :: fences || !fenced -> skip
          fi
#else
          skip
#endif
       fi
    :: sent == MESSAGES -> break
    od
}

active proctype receiver()
{
    byte taken = 0;

    do
    :: taken == MESSAGES -> break
    :: taken < MESSAGES ->
       if
       :: atomic { published > 0 -> published--; taken++ }
       :: published == 0 ->
          sleeping = true;
          if
          :: !fenced ->
             fenced = true;
#ifndef NO_BARRIER
             atomic { make_visible() }
#endif
          :: fenced -> skip
          fi;
          if
          :: published > 0 -> atomic { sleeping = false; woken = false }
          :: published == 0 -> woken; woken = false
          fi
       :: fenced -> fenced = false /* it has not slept for a while */
       fi
    od
}
