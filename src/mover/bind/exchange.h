/* Exchange: two rounds of messages between ranks that know whom they send to and not whom they hear
 * from, as it takes to ask and to be answered. Begun and ended in the same order on every rank;
 * between the beginning and the first message lies a collective of the caller's. */
#ifndef FY_MOVER_EXCHANGE_H
#define FY_MOVER_EXCHANGE_H

#include "mover/run/state.h"

/* A message that has come, kept until the exchange ends. */
typedef struct fy_post {
    struct fy_post *next;
    int source;
    size_t size_bytes;
    uint64_t data[];
} fy_post;

typedef enum fy_exchange_round { FY_EXCHANGE_ASK, FY_EXCHANGE_ANSWER } fy_exchange_round;

struct fy_exchange {
    struct fy_exchange *next;
    ferry *f;
    uint32_t number;
    int error; /* a message could not be kept here, or was lost there */
    fy_post *inbox[2];
    size_t count[2]; /* of messages, also those that were not kept */
    bool is_over[2]; /* all that was expected has come */
};

void fy_exchange_begin(fy_exchange *x, ferry *f);

/* Tells every rank how many ask it, when this one is going to ask those marked. Collective; an
 * `error` is one of all ranks. FERRY_ENOMEM, FERRY_EPEER. */
int fy_exchange_expect(fy_exchange *x, int error, const bool *asked, size_t *asking);

/* Sends to `rank`, which may be this one. With `error` the receiver learns that instead of data.
 * FERRY_EPEER, FERRY_ENOMEM. */
int fy_exchange_send(fy_exchange *x, int rank, fy_exchange_round round, int error, const void *data,
                     size_t size_bytes);

/* Waits until `count` messages of the round have come. FERRY_EPEER: a rank died. */
int fy_exchange_receive(fy_exchange *x, fy_exchange_round round, size_t count);

void fy_exchange_end(fy_exchange *x);

#endif
