/* Parameters: the command line of an application, read the same way on every rank from one table.
 *
 * Ranks may be threads of one process, so nothing here is shared between calls and `argv` stays as
 * it is. Only rank 0 prints. */
#ifndef APP_PARAMETERS_H
#define APP_PARAMETERS_H

#include <stdbool.h>

#include <ferry/ferry.h>

/* One option, or one argument that is known by its place. One of the pointers says where its value
 * goes; what stands there before is the default. */
typedef struct parameter {
    const char *name; /* "tasks" is --tasks; in capitals, as "ROUNDS", it is an argument */
    const char *help;
    double min, max;                           /* of a number */
    long *whole;                               /* a whole number */
    double *real;                              /* any number */
    const char **text;                         /* lends a word of argv */
    int *choice;                               /* index in `of` of the word that was given */
    const char *const *of;                     /* up to NULL */
    bool *flag;                                /* set by its presence */
    bool (*take)(void *arg, const char *text); /* reads what `help` describes, perhaps repeatedly */
    void *arg;
    bool required;
} parameter;

/* Reads `argv` by `table`, which ends with one without a name. `about` says in a line what
 * the program does. Returns -1 to go on, else the exit status: 0 after --help, 2 after an error. */
int parameters_read(ferry *f, int argc, char **argv, const char *about, const parameter *table);

#endif
