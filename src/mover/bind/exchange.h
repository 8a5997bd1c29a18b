/* Exchange: two rounds of messages, requests and answers, between ranks that know to which ranks
 * they send, but not from which they receive. Exchanges begin and end in the same order on every
 * rank. The caller makes a collective between the beginning and the first message: a message for
 * an exchange that has not begun would be lost. */
#ifndef FY_MOVER_EXCHANGE_H
#define FY_MOVER_EXCHANGE_H

#include "mover/run/state.h"

/* A message that has come, kept until the exchange ends. */
typedef struct fy_exchange_post {
    struct fy_exchange_post *next;
    int source;
    size_t size_bytes;
    uint64_t data[];
} fy_exchange_post;

typedef enum fy_exchange_round { FY_EXCHANGE_ASK, FY_EXCHANGE_ANSWER } fy_exchange_round;

struct fy_exchange {
    struct fy_exchange *next;
    ferry *f;
    uint32_t number;
    int error; /* this rank could not keep a message, or its sender could not send it */
    fy_exchange_post *inbox[2];
    size_t count[2]; /* of messages that have come, kept or not */
    bool is_over[2]; /* all expected messages have come */
};

void fy_exchange_begin(fy_exchange *x, ferry *f);

/* This rank is going to ask the ranks marked in `asked`. Sets `*asking` to the number of ranks that
 * will ask this one. Collective. If one rank passes an `error`, all return one. FERRY_ENOMEM,
 * FERRY_EPEER. */
int fy_exchange_expect(fy_exchange *x, int error, const bool *asked, size_t *asking);

/* Sends to `rank`, which may be this one. If `error` is not 0, or the data cannot be sent, `rank`
 * gets the error in place of data. FERRY_EPEER, FERRY_ENOMEM. */
int fy_exchange_send(fy_exchange *x, int rank, fy_exchange_round round, int error, const void *data,
                     size_t size_bytes);

/* Waits until `count` messages of the round have come. FERRY_EPEER: a rank died. */
int fy_exchange_receive(fy_exchange *x, fy_exchange_round round, size_t count);

void fy_exchange_end(fy_exchange *x);

#endif
