/* Atomic changes of words, and mutexes. A mutex is two words: the next ticket, and the ticket that
 * has the mutex. */
#include "armci_state.h"

#include <stdlib.h>
#include <string.h>

static uint64_t update(ferry_atomic_verb verb, void *word, size_t bytes, uint64_t operand,
                       int process)
{
    const ferry_atomic what = {verb, word, operand, 0};
    if (fy_armci_is_mapped(process))
        fy_armci_poll();
    return fy_compat_update(&what, bytes, process, fy_armci_is_mapped(process));
}

int ARMCI_Rmw(int verb, void *old, void *target, int value, int process)
{
    bool adds = verb == ARMCI_FETCH_AND_ADD || verb == ARMCI_FETCH_AND_ADD_LONG;
    bool is_long = verb == ARMCI_FETCH_AND_ADD_LONG || verb == ARMCI_SWAP_LONG;
    size_t bytes = is_long ? sizeof(long) : sizeof(int);
    uint64_t word;
    uint32_t half = (uint32_t)value;
    fy_armci_check("ARMCI_Rmw", process);
    if (verb < ARMCI_FETCH_AND_ADD || verb > ARMCI_SWAP_LONG)
        fy_compat_fail("ARMCI_Rmw: verb %d; expected ARMCI_FETCH_AND_ADD to ARMCI_SWAP_LONG", verb);
    fy_armci_address_check("ARMCI_Rmw", target, "target");
    fy_armci_address_check("ARMCI_Rmw", old, "place of the old value");
    fy_compat.call = "ARMCI_Rmw";
    fy_armci_remote_check("ARMCI_Rmw", process, target, bytes);
    if ((uintptr_t)target % bytes != 0)
        fy_compat_fail("ARMCI_Rmw at %p; expected a multiple of %zu", target, bytes);
    if (adds)
        word = is_long ? (uint64_t)(int64_t)value : half;
    else if (is_long)
        memcpy(&word, old, sizeof(word));
    else
        word = (memcpy(&half, old, sizeof(half)), half);
    word = update(adds ? FERRY_FETCH_ADD : FERRY_SWAP, target, bytes, word, process);
    half = (uint32_t)word;
    memcpy(old, is_long ? (const void *)&word : (const void *)&half, bytes);
    return 0;
}

int ARMCI_Create_mutexes(int count)
{
    static const char call[] = "ARMCI_Create_mutexes";
    uint64_t *own = NULL;
    fy_armci_check(call, 0);
    size_t bytes = 2 * sizeof(uint64_t) * fy_armci_number(call, count, "mutexes");
    size_t processes = (size_t)fy_compat.count;
    if (fy_armci.mutexes != NULL)
        fy_compat_fail("%s: there are mutexes; call ARMCI_Destroy_mutexes first", call);
    if (count > 0) {
        fy_compat_check(call, ferry_alloc(fy_compat.f, bytes, (void **)(void *)&own));
        memset(own, 0, bytes);
    }
    fy_armci.mutexes = fy_compat_need(call, calloc(processes, sizeof(uint64_t *)));
    fy_armci.mutex_counts = fy_compat_need(call, calloc(processes, sizeof(int)));
    fy_compat_check(call, ferry_allgather(fy_compat.f, &own, sizeof(own), fy_armci.mutexes));
    fy_compat_check(call,
                    ferry_allgather(fy_compat.f, &count, sizeof(count), fy_armci.mutex_counts));
    return 0;
}

void fy_armci_mutexes_free(void)
{
    if (fy_armci.mutexes == NULL)
        return;
    fy_compat_check("ARMCI_Destroy_mutexes",
                    ferry_free(fy_compat.f, fy_armci.mutexes[fy_compat.me]));
    free((void *)fy_armci.mutexes);
    free(fy_armci.mutex_counts);
    fy_armci.mutexes = NULL;
    fy_armci.mutex_counts = NULL;
}

int ARMCI_Destroy_mutexes(void)
{
    fy_armci_check("ARMCI_Destroy_mutexes", 0);
    int process;
    const void *held = fy_compat_held(&process);
    if (fy_armci.mutexes == NULL)
        fy_compat_fail("ARMCI_Destroy_mutexes: there are none");
    if (held != NULL)
        fy_compat_fail("ARMCI_Destroy_mutexes: process %d holds mutex %d of process %d",
                       fy_compat.me,
                       (int)(((const uint64_t *)held - fy_armci.mutexes[process]) / 2), process);
    ARMCI_Barrier();
    fy_armci_mutexes_free();
    return 0;
}

static uint64_t *mutex_at(const char *call, int mutex, int process)
{
    fy_armci_check(call, process);
    int count = fy_armci.mutexes == NULL ? 0 : fy_armci.mutex_counts[process];
    if (mutex < 0 || mutex >= count)
        fy_compat_fail("%s: mutex %d; process %d has %d", call, mutex, process, count);
    return fy_armci.mutexes[process] + (ptrdiff_t)2 * mutex;
}

void ARMCI_Lock(int mutex, int process)
{
    uint64_t *words = mutex_at("ARMCI_Lock", mutex, process);
    fy_compat.call = "ARMCI_Lock";
    fy_compat_want("ARMCI_Lock", words, process);
    uint64_t ticket = update(FERRY_FETCH_ADD, words, sizeof(*words), 1, process);
    unsigned turns = 0;
    while (update(FERRY_FETCH_ADD, words + 1, sizeof(*words), 0, process) != ticket)
        fy_compat_turn(&turns);
    fy_compat_hold("ARMCI_Lock", words, process);
}

static void unlock(uint64_t *words, int process)
{
    fy_compat_release("ARMCI_Unlock", words, process);
    ARMCI_AllFence();
    (void)update(FERRY_FETCH_ADD, words + 1, sizeof(*words), 1, process);
}

void ARMCI_Unlock(int mutex, int process)
{
    unlock(mutex_at("ARMCI_Unlock", mutex, process), process);
}

void fy_armci_mutexes_unlock(void)
{
    int process;
    for (const void *held; (held = fy_compat_held(&process)) != NULL;)
        unlock((uint64_t *)(uintptr_t)held, process);
}
