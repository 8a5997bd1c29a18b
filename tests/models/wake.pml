/* Going to sleep (docs/decisions/0001): a sender publishes a slot and then reads whether the receiver
 * sleeps, without a fence; the receiver says that it sleeps, makes every other processor's stores
 * visible (membarrier), looks once more, and sleeps. No message may wait for a sleeper unwoken.
 *
 * Both processors have a store buffer of one entry each, as x86 has: a store becomes visible some
 * time later. Deadlock before all messages are taken is the error. Mutant: NO_BARRIER leaves
 * membarrier out. */
#define MESSAGES 3

byte published = 0;      /* what the receiver can see of the ring */
byte buffered = 0;       /* the sender's stores that are not visible yet */
bool sleeping = false;   /* what the sender can see of the receiver's word */
bool sleep_store = false; /* the receiver's store of it, not visible yet */
bool woken = false;

/* The processors' store buffers drain at any time. */
active proctype drain()
{
end:
    do
    :: atomic { buffered > 0 -> buffered--; published++ }
    :: atomic { sleep_store -> sleep_store = false; sleeping = true }
    od
}

active proctype sender()
{
    byte sent = 0;

    do
    :: sent < MESSAGES ->
       buffered++;
       sent++;
       if
       :: atomic { sleeping -> sleeping = false; woken = true }
       :: atomic { !sleeping -> skip }
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
          sleep_store = true;
#ifndef NO_BARRIER
          /* Own store and the others' are visible when the call returns. */
          atomic {
            sleep_store = false; sleeping = true;
            do
            :: buffered > 0 -> buffered--; published++
            :: buffered == 0 -> break
            od
          };
#endif
          if
          :: published > 0 -> atomic { sleep_store = false; sleeping = false; woken = false }
          :: published == 0 -> woken; woken = false
          fi
       fi
    od
}
