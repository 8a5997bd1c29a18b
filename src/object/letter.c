#include "object/letter.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { POOLED_BYTES = 64, CHUNK_LETTERS = 64 };

void fy_letter_pool_init(fy_pool *pool)
{
    fy_pool_init(pool, sizeof(fy_letter) + POOLED_BYTES, CHUNK_LETTERS);
}

fy_letter *fy_letter_create(fy_pool *pool, const fy_envelope *envelope,
                            const ferry_message *message, uint64_t since_ns)
{
    size_t size_bytes = message->size_bytes;
    bool pooled = size_bytes <= POOLED_BYTES;
    if (size_bytes > SIZE_MAX - sizeof(fy_letter))
        return NULL;
    fy_letter *letter = pooled ? fy_pool_get(pool) : fy_malloc(sizeof(fy_letter) + size_bytes);
    if (letter == NULL)
        return NULL;
    letter->next = NULL;
    letter->envelope = *envelope;
    letter->load = 0;
    letter->since_ns = since_ns;
    letter->pooled = pooled;
    letter->overdue = false;
    letter->message = *message;
    letter->message.data = size_bytes == 0 ? NULL : letter + 1;
    if (size_bytes != 0)
        memcpy(letter + 1, message->data, size_bytes);
    return letter;
}

void fy_letter_destroy(fy_pool *pool, fy_letter *letter)
{
    if (letter->pooled)
        fy_pool_put(pool, letter);
    else
        free(letter);
}

void fy_letters_push(fy_letters *letters, fy_letter *letter)
{
    letter->next = NULL;
    if (letters->head == NULL)
        letters->head = letter;
    else
        letters->tail->next = letter;
    letters->tail = letter;
    letters->count++;
}

fy_letter *fy_letters_pop(fy_letters *letters)
{
    fy_letter *letter = letters->head;
    if (letter == NULL)
        return NULL;
    letters->head = letter->next;
    letter->next = NULL;
    letters->count--;
    return letter;
}

/* Order of the early list. Sequence numbers of one origin lie close together, so their difference
 * tells which is earlier even after the numbers have wrapped. */
static int compare(const fy_letter *a, int origin, uint32_t sequence)
{
    if (a->envelope.origin != origin)
        return a->envelope.origin < origin ? -1 : 1;
    int32_t difference = (int32_t)(a->envelope.sequence - sequence);
    return (difference > 0) - (difference < 0);
}

bool fy_letters_insert(fy_letters *letters, fy_letter *letter)
{
    int origin = letter->envelope.origin;
    uint32_t sequence = letter->envelope.sequence;
    if (letters->head == NULL || compare(letters->tail, origin, sequence) < 0) {
        fy_letters_push(letters, letter);
        return true;
    }
    fy_letter **where = &letters->head;
    while (compare(*where, origin, sequence) < 0)
        where = &(*where)->next;
    if (compare(*where, origin, sequence) == 0)
        return false;
    letter->next = *where;
    *where = letter;
    letters->count++;
    return true;
}

fy_letter *fy_letters_take(fy_letters *letters, int origin, uint32_t sequence)
{
    fy_letter *before = NULL;
    fy_letter *letter = letters->head;
    while (letter != NULL && compare(letter, origin, sequence) < 0) {
        before = letter;
        letter = letter->next;
    }
    if (letter == NULL || compare(letter, origin, sequence) != 0)
        return NULL;
    if (before == NULL)
        letters->head = letter->next;
    else
        before->next = letter->next;
    if (letters->tail == letter)
        letters->tail = before;
    letters->count--;
    letter->next = NULL;
    return letter;
}
