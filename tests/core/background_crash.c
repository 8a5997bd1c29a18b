/* Goal: a crash on the thread of ferry_background_begin is reported as one on the application's
 * thread, and so is one after ferry_background_end. Method: a handler crashes, during or after. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ferry/ferry.h>

#include "../support/check.h"

static void crash(ferry *f, int source, const ferry_message *message)
{
    (void)f;
    (void)source;
    (void)message;
    raise(SIGSEGV);
}

static int rank_main(ferry *f, int argc, char **argv)
{
    ferry_message message = {0};
    bool after = argc > 1 && strcmp(argv[1], "after") == 0;
    check(f, ferry_handler_register(f, "crash", crash, &message.handler) == 0, "register");
    if (!after)
        check(f, ferry_request_send(f, 0, &message, NULL) == 0, "send");
    check(f, ferry_background_begin(f) == 0, "begin");
    while (!after)
        pause();
    check(f, ferry_background_end(f) == 0, "end");
    check(f, ferry_request_send(f, 0, &message, NULL) == 0, "send");
    return ferry_quiesce(f);
}

int main(int argc, char **argv)
{
    return ferry_main(argc, argv, rank_main, NULL);
}
