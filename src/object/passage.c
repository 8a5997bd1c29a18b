#include "object/passage.h"

#include <string.h>

typedef struct passage_letter {
    uint64_t size_bytes;
    uint32_t origin;
    uint32_t sequence;
    uint32_t op;
    int32_t tag;
    uint16_t handler;
    uint16_t word_count;
    uint32_t reserved;
    uint64_t words[FERRY_WORDS_MAX];
} passage_letter;

static size_t padded(size_t size_bytes)
{
    return (size_bytes + 7) & ~(size_t)7;
}

static size_t letters_bytes(const fy_letters *letters)
{
    size_t sum = 0;
    for (const fy_letter *letter = letters->head; letter != NULL; letter = letter->next)
        sum += sizeof(passage_letter) + padded(letter->message.size_bytes);
    return sum;
}

size_t fy_passage_bytes(const fy_record *record, size_t data_bytes)
{
    size_t head = sizeof(fy_passage) + record->sources.count * sizeof(fy_source) +
                  fy_affinity_bytes(record->affinity) + letters_bytes(&record->pending) +
                  letters_bytes(&record->early);
    return data_bytes > SIZE_MAX - head - 8 ? 0 : head + padded(data_bytes);
}

static unsigned char *write_letters(const fy_letters *letters, unsigned char *at)
{
    for (const fy_letter *letter = letters->head; letter != NULL; letter = letter->next) {
        const ferry_message *message = &letter->message;
        passage_letter head = {.size_bytes = message->size_bytes,
                               .origin = (uint32_t)letter->envelope.origin,
                               .sequence = letter->envelope.sequence,
                               .op = letter->envelope.op,
                               .tag = message->tag,
                               .handler = message->handler.index,
                               .word_count = message->word_count};
        memcpy(head.words, message->words, sizeof head.words);
        memcpy(at, &head, sizeof head);
        at += sizeof head;
        if (message->size_bytes != 0)
            memcpy(at, message->data, message->size_bytes);
        memset(at + message->size_bytes, 0, padded(message->size_bytes) - message->size_bytes);
        at += padded(message->size_bytes);
    }
    return at;
}

void *fy_passage_write(const fy_record *record, size_t data_bytes, void *block)
{
    fy_passage passage = {.object = record->object.word,
                          .movement = record->movement + 1,
                          .type = record->type_index,
                          .scheduled = record->scheduled,
                          .source_count = record->sources.count,
                          .pending_count = record->pending.count,
                          .early_count = record->early.count,
                          .has_affinity = record->affinity != NULL,
                          .address = record->handed ? (uint64_t)(uintptr_t)record->data : 0,
                          .data_bytes = data_bytes,
                          .left_ns = record->left_ns,
                          .load = record->load};
    if (record->affinity != NULL) {
        passage.priority_count = record->affinity->priority_count;
        passage.dependency_count = record->affinity->dependency_count;
    }
    unsigned char *at = block;
    memcpy(at, &passage, sizeof passage);
    at += sizeof passage;
    fy_sources_copy(&record->sources, (fy_source *)(void *)at);
    at += record->sources.count * sizeof(fy_source);
    at = fy_affinity_write(record->affinity, at);
    at = write_letters(&record->pending, at);
    return write_letters(&record->early, at);
}

bool fy_address_shared(const fy_objects *objects, fy_thread thread, const void *address)
{
    const fy_port_ops *ops = objects->port->ops;
    return objects->info.shares_memory && ops->owner != NULL &&
           ops->owner(objects->port, thread, address, 1) >= 0;
}

bool fy_passage_read(const fy_objects *objects, const void *block, size_t size_bytes,
                     fy_passage *out)
{
    if (size_bytes < sizeof *out)
        return false;
    memcpy(out, block, sizeof *out);
    ferry_object object = {out->object};
    if (out->address != 0 &&
        !fy_address_shared(objects, FY_APP, (const void *)(uintptr_t)out->address))
        return false;
    return (uint32_t)out->object != 0 && fy_object_creator(object) < objects->ranks &&
           out->type < objects->type_count && out->data_bytes <= size_bytes - sizeof *out &&
           out->load >= 0 &&
           (out->priority_count == 0 || out->priority_count == (uint32_t)objects->ranks);
}

static int read_sources(const fy_objects *objects, const fy_passage *passage,
                        const unsigned char **at, const unsigned char *end, fy_record *record)
{
    if ((size_t)(end - *at) / sizeof(fy_source) < passage->source_count)
        return FERRY_EINVAL;
    for (uint32_t i = 0; i < passage->source_count; i++, *at += sizeof(fy_source)) {
        fy_source source;
        memcpy(&source, *at, sizeof source);
        if (source.rank_plus_1 == 0 || source.rank_plus_1 > (uint32_t)objects->ranks)
            return FERRY_EINVAL;
        uint32_t *expected = fy_sources_of(&record->sources, (int)source.rank_plus_1 - 1);
        if (expected == NULL)
            return FERRY_ENOMEM;
        *expected = source.expected;
    }
    return 0;
}

static int read_letter(fy_objects *objects, ferry_object object, const unsigned char **at,
                       const unsigned char *end, fy_letter **out)
{
    passage_letter head;
    if ((size_t)(end - *at) < sizeof head)
        return FERRY_EINVAL;
    memcpy(&head, *at, sizeof head);
    *at += sizeof head;
    if (head.size_bytes > (size_t)(end - *at) || padded(head.size_bytes) > (size_t)(end - *at) ||
        head.origin >= (uint32_t)objects->ranks || head.word_count > FERRY_WORDS_MAX)
        return FERRY_EINVAL;
    fy_envelope envelope = {
        .object = object, .origin = (int)head.origin, .sequence = head.sequence, .op = head.op};
    ferry_message message = {.handler = {head.handler},
                             .word_count = (uint8_t)head.word_count,
                             .tag = head.tag,
                             .data = head.size_bytes != 0 ? *at : NULL,
                             .size_bytes = head.size_bytes};
    memcpy(message.words, head.words, sizeof head.words);
    *at += padded(head.size_bytes);
    *out = fy_letter_create(&objects->letters, &envelope, &message,
                            objects->port->ops->now(objects->port));
    return *out != NULL ? 0 : FERRY_ENOMEM;
}

int fy_passage_unload(fy_objects *objects, const fy_passage *passage, const void *block,
                      size_t size_bytes, fy_record *record, const void **data)
{
    const unsigned char *at = (const unsigned char *)block + sizeof *passage;
    const unsigned char *end = (const unsigned char *)block + size_bytes;
    int error = read_sources(objects, passage, &at, end, record);
    if (error == 0 && passage->has_affinity != 0)
        error = fy_affinity_read(&at, end, passage->priority_count, passage->dependency_count,
                                 &record->affinity);
    for (uint32_t i = 0; error == 0 && i < passage->pending_count; i++) {
        fy_letter *letter = NULL;
        error = read_letter(objects, record->object, &at, end, &letter);
        if (error == 0)
            fy_letters_push(&record->pending, letter);
    }
    for (uint32_t i = 0; error == 0 && i < passage->early_count; i++) {
        fy_letter *letter = NULL;
        error = read_letter(objects, record->object, &at, end, &letter);
        if (error == 0 && !fy_letters_insert(&record->early, letter)) {
            fy_letter_destroy(&objects->letters, letter);
            error = FERRY_EINVAL;
        }
    }
    if (error == 0 && padded(passage->data_bytes) != (size_t)(end - at))
        error = FERRY_EINVAL;
    *data = at;
    return error;
}
