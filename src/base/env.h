/* Env: the FERRY_* variables, and what other launchers say about the job.
 *
 * The environment is read at open alone; nothing here keeps state. */
#ifndef FY_ENV_H
#define FY_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/shared.h"

/* The value of a variable; NULL when unset or empty. */
FY_SHARED const char *fy_env_get(const char *name);

/* Reads a whole number, of a variable that Ferry knows as one; K, M, G and T multiply by powers of
 * 1,024. Leaves `*value` alone when the variable is unset. FERRY_EINVAL: not a number or outside
 * its range; fy_error_text names variable, value and range. */
FY_SHARED int fy_env_number(const char *name, uint64_t *value);

/* Likewise, within [min, max]: of variables that are not Ferry's, or where less will do. */
FY_SHARED int fy_env_number_within(const char *name, uint64_t min, uint64_t max, uint64_t *value);

/* Whether all numbers among the known variables are numbers in their ranges, and all words are
 * among those expected. It checks those that this run does not need too, so that every port tells
 * of a wrong one. Errors as fy_env_number. */
FY_SHARED int fy_env_check(void);

/* The number of a variable that fy_env_check has found right; `otherwise` when it is unset. */
uint64_t fy_env_number_or(const char *name, uint64_t otherwise);

/* Whether a ring may have these sizes, wherever they come from; 0: the default. FERRY_EINVAL with
 * fy_error_set. */
int fy_env_check_rings(uint32_t slots, uint32_t bytes);

/* Refuses FERRY_RANKS_JOIN, for ranks that no process can join. FERRY_ELAUNCH with fy_error_set. */
FY_SHARED int fy_env_refuse_join(void);

/* A socket of the command that has started this process, to which it sends a byte when it has
 * opened a rank. */
#define FY_ENV_JOB_OPENED "FERRY_JOB_OPENED"

/* The process sends the first when it has opened a rank, the second when all its ranks have ended.
 * An older program sends 0 for the first, and no second. */
enum { FY_ENV_OPENED = 1, FY_ENV_ENDED = 2 };

/* Says so, once, if a command wants to know. Returns the socket, which the caller closes; -1: no
 * command wants to know. */
FY_SHARED int fy_env_say_opened(void);

/* Says by that socket that the ranks have ended, and have not left work undone. */
static inline void fy_env_say_ended(int socket)
{
    static const char ended = FY_ENV_ENDED;
    (void)send(socket, &ended, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The entries of the environment ("NAME=value") that begin with `prefix`, one after the other; NULL
 * behind the last. `*index` begins with 0. */
const char *fy_env_next(const char *prefix, size_t *index);

/* Logs each FERRY_* variable that Ferry does not know, with the nearest known name. */
void fy_env_warn_unknown(void);

/* How many ranks another launcher's environment announces: 1 when none does; at least so many where
 * PMIx tells no more than this rank's number. `*variable` is the name it was found under, NULL when
 * none. */
uint64_t fy_env_foreign_ranks(const char **variable);

#endif
