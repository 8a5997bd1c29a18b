/* Options of sub-commands, numbers and lists of numbers. */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "cmd/cmd.h"

enum { OPTIONS_MAX = 24 };

int cmd_wrong_usage(const char *command)
{
    fprintf(stderr, "Try `ferry %s --help`.\n", command);
    return CMD_USAGE_STATUS;
}

bool cmd_has_program(const char *command, const char *program)
{
    if (program != NULL && *program != '\0')
        return true;
    fprintf(stderr, "ferry %s: %sexpected a program to run\n", command,
            program != NULL ? "\"\": " : "");
    return false;
}

bool cmd_asks_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool takes_value(const cmd_option *option)
{
    return option->text != NULL || option->read != NULL;
}

/* Writes the options as getopt_long takes them. `longs` has room for two more than the list, and
 * `letters` for two characters of each and three more. */
static void options_describe(const cmd_options *what, struct option *longs, char *letters)
{
    size_t count = 0;
    if (what->program)
        *letters++ = '+';
    for (const cmd_option *o = what->list; o->name != NULL; o++) {
        int takes = takes_value(o) ? required_argument : no_argument;
        longs[count++] = (struct option){.name = o->name, .has_arg = takes, .val = o->letter};
        assert(count <= OPTIONS_MAX);
        *letters++ = (char)o->letter;
        if (takes == required_argument)
            *letters++ = ':';
    }
    longs[count++] = (struct option){.name = "help", .val = 'h'};
    longs[count] = (struct option){.name = NULL};
    strcpy(letters, "h");
}

static bool apply(const cmd_options *what, int letter)
{
    const cmd_option *o = what->list;
    while (o->name != NULL && o->letter != letter)
        o++;
    if (o->name == NULL)
        return false;
    if (o->flag != NULL)
        *o->flag = true;
    if (o->text != NULL)
        *o->text = optarg;
    return o->read == NULL || o->read(what->command, letter, optarg, what->arg);
}

int cmd_read_options(int argc, char **argv, const cmd_options *what)
{
    struct option longs[OPTIONS_MAX + 2];
    char letters[2 * OPTIONS_MAX + 3], name[32], *own = argv[0];
    int letter, status = CMD_GO;
    options_describe(what, longs, letters);
    (void)snprintf(name, sizeof(name), "ferry %s", what->command);
    argv[0] = name; /* getopt_long begins its messages with it */
    while (status == CMD_GO && (letter = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (letter == 'h') {
            fputs(what->help, stdout);
            status = 0;
        } else if (!apply(what, letter)) {
            status = cmd_wrong_usage(what->command);
        }
    }
    argv[0] = own;
    return status;
}

bool cmd_read_list(const char *command, const char *text, int most, int max, int *out, int *count)
{
    const char *at = text;
    *count = 0;
    for (bool more = true; more; at++) {
        char *end = NULL;
        errno = 0;
        long number = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;
        if (number < 1 || number > max || errno != 0 || (*end != ',' && *end != '\0') ||
            *count == most) {
            fprintf(stderr,
                    "ferry %s: -n %s: expected at most %d numbers from 1 to %d, with commas "
                    "between them\n",
                    command, text, most, max);
            return false;
        }
        out[(*count)++] = (int)number;
        more = *end == ',';
        at = end;
    }
    return true;
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

bool cmd_set_servers(const char *command, int letter, char *text, void *unused)
{
    (void)unused;
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
    uint64_t servers = 0;
    /* A wrong value is refused with those of all other variables, when the job starts. */
    if (fy_env_number("FERRY_SERVERS", &servers) != 0 || servers < (uint64_t)ranks)
        return true;
    fprintf(stderr,
            "ferry %s: %" PRIu64
            " data servers leave no computing engine of %d rank%s; expected 0 to %d\n",
            command, servers, ranks, ranks == 1 ? "" : "s", ranks - 1);
    return false;
}
