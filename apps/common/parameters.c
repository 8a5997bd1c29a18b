#include "common/parameters.h"

#include <argp.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS_MAX = 20, HELP = 256, USAGE, FIRST_KEY, TEXT_BYTES = 256 };

typedef struct reader {
    ferry *f;
    const parameter *table;
    int arguments;             /* read so far */
    bool seen[PARAMETERS_MAX]; /* by index in the table */
    bool helped;
} reader;

static bool is_argument(const parameter *o)
{
    return isupper((unsigned char)o->name[0]);
}

/* The values that `o` takes, in words. */
static void expected(const parameter *o, char *out, size_t size_bytes)
{
    if (o->take != NULL) {
        snprintf(out, size_bytes, "%s", o->help);
        return;
    }
    if (o->choice == NULL) {
        snprintf(out, size_bytes, "a %snumber from %.10g to %.10g", o->whole ? "whole " : "",
                 o->min, o->max);
        return;
    }
    int n = snprintf(out, size_bytes, "one of");
    for (const char *const *word = o->of; *word != NULL && n < (int)size_bytes; word++)
        n += snprintf(out + n, size_bytes - (size_t)n, " %s", *word);
}

static bool read_choice(const parameter *o, const char *text)
{
    for (int i = 0; o->of[i] != NULL; i++)
        if (strcmp(o->of[i], text) == 0) {
            *o->choice = i;
            return true;
        }
    return false;
}

static bool read_number(const parameter *o, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !(number >= o->min && number <= o->max))
        return false;
    if (o->real != NULL)
        *o->real = number;
    else if (number == floor(number))
        *o->whole = (long)number;
    else
        return false;
    return true;
}

static bool read_value(const parameter *o, const char *text)
{
    if (o->take != NULL)
        return o->take(o->arg, text);
    if (o->text != NULL)
        *o->text = text;
    return o->text != NULL || (o->choice != NULL ? read_choice(o, text) : read_number(o, text));
}

static error_t refuse(const reader *r, struct argp_state *state, const parameter *o,
                      const char *text)
{
    char what[TEXT_BYTES];
    expected(o, what, sizeof what);
    if (ferry_rank(r->f) == 0)
        argp_error(state, "%s%s is '%s': expected %s", is_argument(o) ? "" : "--", o->name, text,
                   what);
    return EINVAL;
}

static error_t take_argument(reader *r, struct argp_state *state, const char *text)
{
    int place = 0;
    for (int i = 0; r->table[i].name != NULL; i++) {
        if (!is_argument(&r->table[i]) || place++ < r->arguments)
            continue;
        r->arguments++;
        r->seen[i] = true;
        return read_value(&r->table[i], text) ? 0 : refuse(r, state, &r->table[i], text);
    }
    if (ferry_rank(r->f) == 0)
        argp_error(state, "'%s' is one argument too many", text);
    return EINVAL;
}

static error_t check_required(const reader *r, struct argp_state *state)
{
    for (int i = 0; !r->helped && r->table[i].name != NULL; i++) {
        if (!r->table[i].required || r->seen[i])
            continue;
        if (ferry_rank(r->f) == 0)
            argp_error(state, "%s is missing: %s", r->table[i].name, r->table[i].help);
        return EINVAL;
    }
    return 0;
}

static error_t take(int key, char *text, struct argp_state *state)
{
    reader *r = state->input;
    if (key == HELP || key == USAGE) {
        r->helped = true;
        if (ferry_rank(r->f) == 0)
            argp_state_help(state, stdout,
                            key == USAGE ? ARGP_HELP_USAGE
                                         : ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
        return 0;
    }
    if (key == ARGP_KEY_ARG)
        return take_argument(r, state, text);
    if (key == ARGP_KEY_END)
        return check_required(r, state);
    if (key < FIRST_KEY || key >= FIRST_KEY + PARAMETERS_MAX)
        return ARGP_ERR_UNKNOWN;
    const parameter *o = &r->table[key - FIRST_KEY];
    r->seen[key - FIRST_KEY] = true;
    if (o->flag != NULL) {
        *o->flag = true;
        return 0;
    }
    return read_value(o, text) ? 0 : refuse(r, state, o, text);
}

/* The text of --help for `o`; for a number also its range and its default. */
static const char *describe(const parameter *o, char *out, size_t size_bytes)
{
    if (o->whole == NULL && o->real == NULL)
        return o->help;
    snprintf(out, size_bytes, "%s: %.10g to %.10g, by default %.10g", o->help, o->min, o->max,
             o->whole != NULL ? (double)*o->whole : *o->real);
    return out;
}

/* Words for the usage: the arguments in their order, those one may leave out in brackets. */
static void name_arguments(const parameter *table, char *out, size_t size_bytes)
{
    int n = 0;
    for (const parameter *o = table; o->name != NULL && n < (int)size_bytes; o++)
        if (is_argument(o))
            n += snprintf(out + n, size_bytes - (size_t)n, o->required ? " %s" : " [%s]", o->name);
}

/* Whether the option `word`, with its hyphens and without a value, takes the word behind it. */
static bool takes_next(const parameter *table, const char *word)
{
    const parameter *o = table;
    size_t length = strlen(word + 2);
    while (o->name != NULL && (is_argument(o) || strncmp(o->name, word + 2, length) != 0))
        o++;
    return o->name != NULL && o->flag == NULL;
}

/* Whether there is an option of one character. There are no such options, and argp would not say
 * which was given. */
static bool has_short_option(ferry *f, int argc, char **argv, const parameter *table)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i];
        if (strncmp(word, "--", 2) == 0) {
            i += takes_next(table, word);
        } else if (word[0] == '-' && word[1] != '\0') {
            if (ferry_rank(f) == 0)
                fprintf(stderr, "%s: '%s' is no option; see --help\n", argv[0], word);
            return true;
        }
    }
    return false;
}

int parameters_read(ferry *f, int argc, char **argv, const char *about, const parameter *table)
{
    reader r = {.f = f, .table = table};
    if (has_short_option(f, argc, argv, table))
        return 2;
    struct argp_option known[PARAMETERS_MAX + 3] = {{"help", HELP, NULL, 0, "this list", -1},
                                                    {"usage", USAGE, NULL, 0, "in short", -1}};
    char arguments[TEXT_BYTES] = "", helps[PARAMETERS_MAX][TEXT_BYTES];
    for (int i = 0; table[i].name != NULL; i++) {
        assert(i < PARAMETERS_MAX);
        const char *value = table[i].flag                                       ? NULL
                            : table[i].text || table[i].choice || table[i].take ? "WORD"
                                                                                : "N";
        known[i + 2] =
            is_argument(&table[i])
                ? (struct argp_option){table[i].name, 0, NULL, OPTION_DOC | OPTION_NO_USAGE,
                                       table[i].help, 1}
                : (struct argp_option){table[i].name, FIRST_KEY + i, value, 0, table[i].help, 2};
        known[i + 2].doc = describe(&table[i], helps[i], TEXT_BYTES);
    }
    name_arguments(table, arguments, sizeof arguments);
    const struct argp parser = {.options = known,
                                .parser = take,
                                .args_doc = arguments[0] ? arguments + 1 : NULL,
                                .doc = about};
    unsigned flags = ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER;
    if (ferry_rank(f) != 0)
        flags |= ARGP_NO_ERRS;
    error_t error = argp_parse(&parser, argc, argv, flags, NULL, &r);
    return error != 0 ? 2 : r.helped ? 0 : -1;
}
