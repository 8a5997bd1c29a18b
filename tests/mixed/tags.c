/* Polls for one tag: they run messages with that tag alone, and tell how many. */
#include "mixed.h"

void tags_check(ferry *f, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    a->handled++;
    if (a->polled != FERRY_ANY_TAG && message->tag != a->polled)
        wrong(f, "a poll for one tag ran another", (uint64_t)message->tag, (uint64_t)a->polled);
}

void tags_poll(ferry *f, account *a)
{
    const int32_t tags[TAG_COUNT] = {0, 1, 2, FERRY_ANY_TAG};
    uint64_t before = a->handled, count = 1 + draw(&a->random, 4);
    for (uint64_t i = 0; i < count; i++, before = a->handled) {
        a->polled = tags[draw(&a->random, TAG_COUNT)];
        int ran = ferry_poll_tag(f, a->polled);
        a->polled = FERRY_ANY_TAG;
        atomic_fetch_add(&t->polls, 1);
        if (ran == FERRY_EAGAIN) {
            if (a->handled != before)
                wrong(f, "a poll ran messages, and says it has not", before, a->handled);
            (void)ferry_poll(f);
        } else if (ran < 0) {
            must(f, ran, "poll_tag");
        } else if ((uint64_t)ran < a->handled - before) {
            wrong(f, "a poll ran more than it says", (uint64_t)ran, a->handled - before);
        }
    }
}
