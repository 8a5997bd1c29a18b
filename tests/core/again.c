/* Goal: a process that was one of several ranks opens no other, which would be a job of one rank
 * without a word. A job of one rank may follow another one, and programs that a rank starts may
 * open theirs. Method: the program opens a second rank beside the first and after it, and runs
 * itself once more. For ferry run with any number of ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/ferry.h>

static void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, ferry_error_message(NULL));
    exit(EXIT_FAILURE);
}

/* Opens a rank more. It is alone where the process had none of several. */
static void open_other(bool alone)
{
    ferry *f = NULL;
    int error = ferry_open(NULL, &f);
    if (alone) {
        expect(error == 0 && ferry_ranks(f) == 1, "a rank that is alone");
        expect(ferry_close(f) == 0, "close");
        return;
    }
    expect(error == FERRY_ESTATE && f == NULL, "a second rank of a process is refused");
    expect(strstr(ferry_error_message(NULL), "was a rank before") != NULL, "the reason is told");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        open_other(true);
        return 0;
    }
    ferry *f;
    char command[4096];
    snprintf(command, sizeof(command), "'%s' child", argv[0]);
    expect(ferry_open(NULL, &f) == 0, "open");
    bool alone = ferry_ranks(f) == 1;
    open_other(alone);
    expect(system(command) == 0, "a program that the rank starts");
    expect(ferry_close(f) == 0, "close");
    open_other(alone);
    return 0;
}
