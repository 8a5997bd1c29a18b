#include "object/letter.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { POOLED_BYTES = 64, CHUNK_LETTERS = 64 };

int fy_letterbox_init(fy_letterbox *box, size_t limit_bytes, size_t full_bytes, size_t *kept_bytes)
{
    *box = (fy_letterbox){
        .limit_bytes = limit_bytes, .full_bytes = full_bytes, .kept_bytes = kept_bytes};
    fy_pool_init(&box->pool, sizeof(fy_letter) + POOLED_BYTES, CHUNK_LETTERS);
    return fy_table_init(&box->holdings, sizeof(fy_holding));
}

void fy_letterbox_fini(fy_letterbox *box)
{
    fy_table_fini(&box->holdings);
    fy_pool_fini(&box->pool);
}

fy_holding *fy_holding_find(fy_letterbox *box, int origin)
{
    uint64_t key = (uint64_t)origin + 1;
    void *slot = fy_table_find(&box->holdings, key);
    if (slot == NULL) {
        if (fy_table_insert(&box->holdings, key, &slot) != 0)
            return NULL;
        box->last[0] = box->last[1] = NULL; /* they may have moved */
    }
    return box->last[origin & 1] = slot;
}

static size_t bytes_of(const fy_letter *letter)
{
    return sizeof *letter + (letter->pooled ? POOLED_BYTES : letter->message.size_bytes);
}

/* When too much is kept every origin of more has a holding, which gets it a token. */
static inline bool count(fy_letterbox *box, int origin, size_t bytes, bool task)
{
    *box->kept_bytes += bytes;
    box->full |= *box->kept_bytes > box->full_bytes;
    if (task && !box->full)
        return true;
    fy_holding *holding = fy_holding_of(box, origin);
    if (holding == NULL) {
        *box->kept_bytes -= bytes;
        return false;
    }
    holding->bytes += task ? 0 : bytes;
    box->unsettled |= holding->tokens == 0 && (holding->bytes > box->limit_bytes || box->full);
    return true;
}

static inline void discount(fy_letterbox *box, fy_letter *letter)
{
    letter->counted = false;
    fy_holding *holding = fy_holding_of(box, letter->envelope.origin); /* there is one */
    holding->bytes -= bytes_of(letter);
    box->unsettled |= holding->tokens != 0 && holding->bytes <= box->limit_bytes / 2 && !box->full;
}

void fy_letter_discount(fy_letterbox *box, fy_letter *letter)
{
    discount(box, letter);
}

static void release(fy_letterbox *box, fy_letter *letter)
{
    if (letter->pooled)
        fy_pool_put(&box->pool, letter);
    else
        free(letter);
}

/* Word by word, as the program has just written it: copied in larger pieces, each would have to
 * wait until its stores are in the cache, behind those to the rings. */
static inline void copy_message(ferry_message *to, const ferry_message *from)
{
    to->handler = from->handler;
    to->word_count = from->word_count;
    to->tag = from->tag;
    for (unsigned i = 0; i < FERRY_WORDS_MAX && i < from->word_count; i++)
        to->words[i] = from->words[i];
    to->size_bytes = from->size_bytes;
}

fy_letter *fy_letter_make(fy_letterbox *box, int origin, const ferry_message *message,
                          uint64_t since_ns, bool task)
{
    size_t size_bytes = message->size_bytes;
    bool pooled = size_bytes <= POOLED_BYTES;
    if (size_bytes > SIZE_MAX - sizeof(fy_letter))
        return NULL;
    fy_letter *letter =
        pooled ? fy_pool_get(&box->pool) : fy_malloc(sizeof(fy_letter) + size_bytes);
    if (letter == NULL)
        return NULL;
    letter->next = NULL;
    letter->load = 0;
    letter->since_ns = since_ns;
    letter->pooled = pooled;
    letter->counted = !task;
    letter->overdue = false;
    letter->token = false;
    copy_message(&letter->message, message);
    letter->message.data = size_bytes == 0 ? NULL : letter + 1;
    if (!count(box, origin, bytes_of(letter), task)) {
        release(box, letter);
        return NULL;
    }
    if (size_bytes != 0)
        memcpy(letter + 1, message->data, size_bytes);
    return letter;
}

void fy_letter_destroy(fy_letterbox *box, fy_letter *letter)
{
    if (letter->counted)
        discount(box, letter);
    *box->kept_bytes -= bytes_of(letter);
    if (box->full && *box->kept_bytes <= box->full_bytes / 2) {
        box->full = false;
        box->unsettled = true;
    }
    release(box, letter);
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
