/* Goal: ferry_open opens the rank of a port that FERRY_PORT names, or says why not. Method: opens,
 * sends itself a request, closes; prints "handled". */
#include <stdio.h>

#include <ferry/ferry.h>

static void handle(ferry *f, int source, const ferry_message *message)
{
    (void)source, (void)message;
    *(int *)ferry_user_data(f) = 1;
}

int main(void)
{
    ferry *f;
    ferry_handler handler;
    int handled = 0;
    if (ferry_open(NULL, &f) != 0) {
        fprintf(stderr, "%s\n", ferry_error_message(NULL));
        return 1;
    }
    ferry_user_data_set(f, &handled);
    int error = ferry_handler_register(f, "handle", handle, &handler);
    if (error == 0)
        error = ferry_request_send(f, 0, &(ferry_message){.handler = handler}, NULL);
    while (error == 0 && handled == 0)
        error = ferry_poll(f) < 0;
    printf("%s on %d rank\n", error == 0 ? "handled" : ferry_error_message(f), ferry_ranks(f));
    return ferry_close(f) != 0 || error != 0;
}
