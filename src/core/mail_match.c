#include <stdlib.h>

#include <ferry/two_sided.h>

#include "base/alloc.h"
#include "core/mail.h"

static uint64_t key_of(int way, int source, int32_t tag)
{
    uint64_t rank = way & FY_MAIL_SOURCE ? (uint32_t)source : 0;
    uint64_t number = way & FY_MAIL_TAG ? (uint32_t)tag : 0;
    return (uint64_t)way << 62 | rank << 32 | number;
}

static int way_of(int rank, int32_t tag)
{
    return (rank != FERRY_ANY_RANK ? FY_MAIL_SOURCE : 0) | (tag != FERRY_ANY_TAG ? FY_MAIL_TAG : 0);
}

static fy_mail_key **bucket_of(const fy_mail *mail, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return &mail->buckets[mixed >> 40 & (mail->bucket_count - 1)];
}

static fy_mail_key *matches_find(const fy_mail *mail, uint64_t key)
{
    if (mail->key_count == 0)
        return NULL;
    fy_mail_key *at = *bucket_of(mail, key);
    while (at != NULL && at->key != key)
        at = at->next;
    return at;
}

fy_mail_key *fy_mail_key_find(const fy_mail *mail, int way, int rank, int32_t tag)
{
    return matches_find(mail, key_of(way, rank, tag));
}

static bool matches_grow(fy_mail *mail)
{
    fy_mail old = *mail;
    uint32_t count = old.bucket_count == 0 ? 64 : old.bucket_count * 2;
    mail->buckets = fy_calloc(count, sizeof(*mail->buckets));
    if (mail->buckets == NULL) {
        mail->buckets = old.buckets;
        return false;
    }
    mail->bucket_count = count;
    for (uint32_t i = 0; i < old.bucket_count; i++) {
        for (fy_mail_key *key = old.buckets[i], *next; key != NULL; key = next) {
            next = key->next;
            fy_mail_key **bucket = bucket_of(mail, key->key);
            key->next = *bucket;
            *bucket = key;
        }
    }
    free(old.buckets);
    return true;
}

static fy_mail_key *mail_key_make(fy_mail *mail, uint64_t number)
{
    fy_mail_key *key = matches_find(mail, number);
    if (key != NULL)
        return key;
    if (mail->key_count >= mail->bucket_count && !matches_grow(mail))
        return NULL;
    key = fy_pool_get(&mail->keys);
    if (key == NULL)
        return NULL;
    fy_mail_key **bucket = bucket_of(mail, number);
    *key = (fy_mail_key){.next = *bucket, .key = number};
    fy_list_init(&key->wants);
    fy_list_init(&key->items);
    *bucket = key;
    mail->key_count++;
    return key;
}

static void drop_if_empty(fy_mail *mail, fy_mail_key *key)
{
    if (!fy_list_empty(&key->wants) || !fy_list_empty(&key->items))
        return;
    fy_mail_key **at = bucket_of(mail, key->key);
    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    fy_pool_put(&mail->keys, key);
    mail->key_count--;
}

int fy_want_place(fy_mail *mail, fy_want *want)
{
    want->key = mail_key_make(mail, key_of(way_of(want->rank, want->tag), want->rank, want->tag));
    if (want->key == NULL)
        return FERRY_ENOMEM;
    /* A new receive is the youngest of its list. A receive whose message was withdrawn comes back,
     * and goes before the younger ones. */
    fy_link *before = &want->key->wants;
    while (before->prev != &want->key->wants &&
           ((const fy_want *)(void *)before->prev)->order > want->order)
        before = before->prev;
    fy_list_insert(before, &want->link);
    return 0;
}

void fy_want_remove(fy_mail *mail, fy_want *want)
{
    if (want->key == NULL)
        return;
    fy_list_remove(&want->link);
    drop_if_empty(mail, want->key);
    want->key = NULL;
}

fy_want *fy_want_find(const fy_mail *mail, int source, int32_t tag)
{
    fy_want *oldest = NULL;
    for (int way = 0; way < FY_MAIL_WAYS; way++) {
        const fy_mail_key *key = matches_find(mail, key_of(way, source, tag));
        if (key == NULL || fy_list_empty(&key->wants))
            continue;
        fy_want *want = (fy_want *)(void *)key->wants.next;
        if (oldest == NULL || want->order < oldest->order)
            oldest = want;
    }
    return oldest;
}

fy_item *fy_item_create(fy_mail *mail, fy_packet *packet)
{
    fy_item *item = fy_pool_get(&mail->items);
    if (item == NULL)
        return NULL;
    item->packet = packet;
    for (int way = 0; way < FY_MAIL_WAYS; way++) {
        fy_mail_key *key = mail_key_make(mail, key_of(way, packet->rank, packet->frame.tag));
        if (key == NULL) {
            while (way-- > 0) {
                fy_list_remove(&item->places[way].link);
                drop_if_empty(mail, item->places[way].key);
            }
            fy_pool_put(&mail->items, item);
            return NULL;
        }
        item->places[way].item = item;
        item->places[way].key = key;
        fy_list_insert(&key->items, &item->places[way].link);
    }
    return item;
}

fy_packet *fy_item_take(fy_mail *mail, fy_item *item)
{
    fy_packet *packet = item->packet;
    for (int way = 0; way < FY_MAIL_WAYS; way++) {
        fy_list_remove(&item->places[way].link);
        drop_if_empty(mail, item->places[way].key);
    }
    fy_pool_put(&mail->items, item);
    return packet;
}

fy_item *fy_item_find(const fy_mail *mail, int rank, int32_t tag)
{
    const fy_mail_key *key = matches_find(mail, key_of(way_of(rank, tag), rank, tag));
    if (key == NULL || fy_list_empty(&key->items))
        return NULL;
    return ((const struct fy_item_place *)(const void *)key->items.next)->item;
}
