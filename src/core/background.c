/* Background: a thread that owns the rank while the program computes.
 *
 * The rank belongs to one thread at a time. Creating the thread hands the rank over, and joining
 * the thread takes it back. Both order everything before against everything after. So nothing in
 * the rank needs a lock, and a program that never uses this pays nothing. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/crash.h"
#include "base/relax.h"
#include "base/thread.h"
#include <ferry/background.h>

#include "core/fail.h"
#include "core/rank.h"

/* How often ferry_background_end looks for the end of the thread before it sleeps: some 20 us. */
enum { LOOKS = 2000 };

static void *drive(void *arg)
{
    ferry *f = arg;
    /* relaxed: only this thread needs to see it */
    atomic_store_explicit(&f->background.errno_at, &errno, memory_order_relaxed);
    (void)sigaltstack(&f->background.crash_stack, NULL);
    fy_doing before = fy_account_enter(f, FY_DOING_IDLE);
    fy_patience patience = {0};
    /* acquire: pairs with the release in ferry_background_end, which then wakes */
    while (!atomic_load_explicit(&f->background.ends, memory_order_acquire))
        fy_progress_wait(f, FERRY_FOREVER, &patience);
    fy_account_leave(f, before);
    /* release: pairs with the acquire in ferry_background_end */
    atomic_store_explicit(&f->background.left, true, memory_order_release);
    return NULL;
}

int ferry_background_begin(ferry *f)
{
    int error = fy_check_outside(f, "background_begin");
    if (error != 0)
        return error;
    if (f->background.begun)
        return fy_fail(f, FERRY_ESTATE, "background_begin: already begun");
    if (f->info.virtual_time)
        return fy_fail(f, FERRY_ENOTSUP, "background_begin: not in a simulated job");
    f->background = (fy_background){.begun = true, .crash_stack = fy_crash_stack()};
    error = fy_thread_start(&f->background.thread, drive, f);
    if (error == 0)
        return 0;
    f->background.begun = false;
    return fy_fail(f, FERRY_ESYSTEM, "background_begin: cannot start a thread: %s",
                   strerror(error));
}

int ferry_background_end(ferry *f)
{
    fy_background *background = &f->background;
    if (!background->begun)
        return fy_fail(f, FERRY_ESTATE, "background_end: not begun");
    /* relaxed: another thread's value never equals that of this one */
    if (atomic_load_explicit(&background->errno_at, memory_order_relaxed) == &errno)
        return fy_check_outside(f, "background_end");
    /* release: pairs with the acquire in drive */
    atomic_store_explicit(&background->ends, true, memory_order_release);
    f->head.ops->transport.wake(f->head.port, FY_APP);
    /* Looks a while: going to sleep and being woken takes longer than the thread's end.
     * acquire: pairs with the release in drive */
    for (int i = 0; i < LOOKS && !atomic_load_explicit(&background->left, memory_order_acquire);
         i++)
        fy_relax();
    fy_thread_join(background->thread);
    background->begun = false;
    return 0;
}
