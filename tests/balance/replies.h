/* Replies: a rank answers each request with several answers, and both are counted. The program's
 * user data begin with a `replies`. */
#ifndef FY_TEST_REPLIES_H
#define FY_TEST_REPLIES_H

#include <ferry/ferry.h>

#include "../sim/oracle.h"

enum { REPLY_BYTES_MAX = 1000 };

typedef struct replies {
    ferry_handler request, answer;
    int each;          /* answers to a request */
    size_t size_bytes; /* of an answer */
    int64_t requests, answers;
} replies;

static inline void on_request(ferry *f, int source, const ferry_message *message)
{
    static const char data[REPLY_BYTES_MAX];
    replies *r = ferry_user_data(f);
    (void)message;
    r->requests++;
    const ferry_message answer = {.handler = r->answer, .data = data, .size_bytes = r->size_bytes};
    for (int i = 0; i < r->each; i++)
        must(f, ferry_request_send(f, source, &answer, NULL), "answer");
}

static inline void on_answer(ferry *f, int source, const ferry_message *message)
{
    replies *r = ferry_user_data(f);
    (void)source, (void)message;
    r->answers++;
}

static inline void replies_register(ferry *f, replies *r)
{
    must(f, ferry_handler_register(f, "request", on_request, &r->request), "request");
    must(f, ferry_handler_register(f, "answer", on_answer, &r->answer), "answer");
}

#endif
