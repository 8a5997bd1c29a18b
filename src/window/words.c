/* Puts and sums of 8 bytes that wait for the end of their epoch.
 *
 * Each reachable rank has a list here of indices and numbers, in the order of the calls. Such a
 * word needs no memory of the program and cannot be cancelled, so it has no record. The element had
 * a word when the call was made. If it has got a value of another size meanwhile, the operation is
 * done like all others. */
#include "base/alloc.h"
#include "window/state.h"

enum { WORDS_FIRST = 64 };

bool fy_window_words_grow(fy_window_peer *peer)
{
    fy_window_word *more = fy_double(peer->words, &peer->word_room, WORDS_FIRST, sizeof(*more));
    if (more != NULL)
        peer->words = more;
    return more != NULL;
}

static int apply(ferry_window *w, int rank, const fy_window_word *word)
{
    fy_array *array = w->peers[rank].array;
    _Atomic uint64_t *number = fy_array_word(array, word->index);
    if (number == NULL) {
        const fy_action what = {.verb = word->adds ? FY_WINDOW_ACCUMULATE : FY_WINDOW_PUT,
                                .type = FERRY_UINT64,
                                .reduction = FERRY_SUM,
                                .index = word->index,
                                .value = &word->value,
                                .count = 1,
                                .size_bytes = sizeof(word->value)};
        return fy_array_apply(w->f, array, rank, &what);
    }
    /* acq_rel, release: pair with the acquire of the rank that uses the element next */
    if (word->adds)
        (void)atomic_fetch_add_explicit(number, word->value, memory_order_acq_rel);
    else
        atomic_store_explicit(number, word->value, memory_order_release);
    return 0;
}

static void words_end(ferry_window *w, int rank, int error)
{
    fy_window_peer *peer = &w->peers[rank];
    if (error == 0 && !fy_window_is_alive(w->f, rank))
        error = FERRY_EPEER;
    for (size_t i = 0; i < peer->word_count; i++) {
        const fy_window_word *word = &peer->words[i];
        fy_window_note(w, rank, word->index, error == 0 ? apply(w, rank, word) : error);
    }
    w->words -= peer->word_count;
    peer->word_count = 0;
}

void fy_window_words_end(ferry_window *w, int rank, int error)
{
    const int first = rank < 0 ? 0 : rank, last = rank < 0 ? w->ranks - 1 : rank;
    for (int r = first; r <= last && w->words > 0; r++)
        words_end(w, r, error);
}
