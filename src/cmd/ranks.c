#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/cmd.h"

bool cmd_read_ranks(const char *command, int letter, const char *text, int max, int *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > max) {
        fprintf(stderr, "ferry %s: -%c %s: must be a number of ranks, 1 to %d\n", command, letter,
                text, max);
        return false;
    }
    *out = (int)value;
    return true;
}
