#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/cmd.h"

int cmd_wrong_usage(const char *command)
{
    fprintf(stderr, "Try `ferry %s --help`.\n", command);
    return CMD_USAGE_STATUS;
}

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

bool cmd_set_servers(const char *command, int letter, const char *text)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > 65535) {
        fprintf(stderr, "ferry %s: -%c %s: must be a number of data servers, 0 to 65535\n", command,
                letter, text);
        return false;
    }
    if (setenv("FERRY_SERVERS", text, 1) != 0) {
        fprintf(stderr, "ferry %s: no memory for FERRY_SERVERS\n", command);
        return false;
    }
    return true;
}

bool cmd_check_servers(const char *command, int ranks)
{
    const char *text = getenv("FERRY_SERVERS");
    long servers = text == NULL ? 0 : strtol(text, NULL, 10);
    if (servers < ranks)
        return true;
    fprintf(stderr,
            "ferry %s: %ld data servers leave no computing engine of %d rank%s; expected 0 to %d\n",
            command, servers, ranks, ranks == 1 ? "" : "s", ranks - 1);
    return false;
}
