#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "object/affinity.h"
#include "object/names.h"
#include "object/queued.h"
#include "object/sources.h"
#include "object/wire.h"

/* Goal: a name is never given twice, and numbers are used again. Method: give and end more names
 * than one number has generations, remembering the first. */
static void test_names_are_never_given_twice(void **state)
{
    (void)state;
    fy_names names;
    fy_names_init(&names, 5);
    ferry_object first;
    ferry_object kept;
    assert_int_equal(fy_names_give(&names, &first), 0);
    assert_int_equal(fy_names_give(&names, &kept), 0);
    assert_int_equal(fy_object_creator(first), 5);
    fy_names_end(&names, first);
    for (int i = 0; i < 10000; i++) {
        ferry_object object;
        assert_int_equal(fy_names_give(&names, &object), 0);
        assert_true(fy_names_alive(&names, object));
        assert_false(ferry_object_equal(object, first));
        assert_false(fy_names_alive(&names, first));
        fy_names_end(&names, object);
    }
    assert_true(fy_names_alive(&names, kept));
    /* 10,000 lives of one object at a time: three numbers and the one kept. */
    assert_true(names.count <= 5);
    fy_names_fini(&names);
}

/* Goal: queued messages come out by origin and sequence, also across the wrap of the sequence, and
 * repeats are refused. Method: insert in a bad order, take in a good one. */
static void test_queued_sort_by_origin_and_sequence(void **state)
{
    (void)state;
    fy_message_store box;
    size_t kept_bytes = 0;
    assert_int_equal(fy_message_store_init(&box, 1024, 1 << 20, &kept_bytes), 0);
    fy_queued_list messages = {0};
    const ferry_message message = {.word_count = 0};
    const uint32_t sequences[] = {2, UINT32_MAX, 1, 0, UINT32_MAX - 1};
    for (int origin = 2; origin >= 0; origin--)
        for (size_t i = 0; i < 5; i++) {
            fy_envelope envelope = {.origin = origin, .sequence = sequences[i]};
            fy_queued_message *queued = fy_queued_create(&box, &envelope, &message, 0, false);
            assert_true(fy_queued_list_insert(&messages, queued));
            fy_queued_message *again = fy_queued_create(&box, &envelope, &message, 0, false);
            assert_false(fy_queued_list_insert(&messages, again));
            fy_queued_destroy(&box, again);
        }
    assert_int_equal(messages.count, 15);
    assert_null(fy_queued_list_take(&messages, 1, 3));
    for (int origin = 0; origin < 3; origin++)
        for (uint32_t i = 0; i < 5; i++) {
            fy_queued_message *queued = fy_queued_list_take(&messages, origin, UINT32_MAX - 1 + i);
            assert_non_null(queued);
            fy_queued_destroy(&box, queued);
        }
    assert_int_equal(messages.count, 0);
    assert_int_equal(kept_bytes, 0);
    assert_null(messages.head);
    assert_int_equal(fy_held_of(&box, 1)->bytes, 0);
    fy_message_store_fini(&box);
}

/* Goal: expected numbers are kept per rank, few or many. Method: count in a model beside. */
static void test_sources_count_per_rank(void **state)
{
    (void)state;
    enum { RANKS = 1000 };
    fy_sources sources = {0};
    for (uint32_t round = 1; round <= 3; round++)
        for (int rank = 0; rank < RANKS; rank++) {
            uint32_t *expected = fy_sources_of(&sources, rank * 7);
            assert_non_null(expected);
            *expected += (uint32_t)rank;
            assert_int_equal(*expected, (uint32_t)rank * round);
        }
    assert_int_equal(sources.count, RANKS);
    fy_source *copy = calloc(RANKS, sizeof *copy);
    fy_sources_copy(&sources, copy);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(copy[i].expected, (copy[i].rank_plus_1 - 1) / 7 * 3);
    free(copy);
    fy_sources_fini(&sources);
}

/* Goal: what fy_wire_write writes fy_wire_read reads, and nonsense is refused. Method: all word
 * counts; then damaged fields. */
static void test_wire_reads_what_it_writes(void **state)
{
    (void)state;
    for (uint8_t count = 0; count <= FERRY_WORDS_MAX; count++) {
        uint64_t joined[3] = {3, 4, 0x1234};
        ferry_message message = {
            .handler = {9}, .word_count = count, .tag = -7, .words = {1, 2, 3, 4}};
        fy_envelope envelope = {.object = {(uint64_t)3 << 44 | 8},
                                .origin = 15,
                                .sequence = 0xfffffff0u,
                                .movement = 77,
                                .hops = 200,
                                .op = 5};
        fy_frame frame;
        fy_wire_write(&frame, &envelope, &message);
        size_t extra = fy_wire_extra_bytes(&message);
        frame.data = joined;
        frame.size_bytes = extra;
        fy_envelope envelope_read;
        ferry_message message_read;
        assert_true(fy_wire_read(&frame, 16, &envelope_read, &message_read));
        assert_true(ferry_object_equal(envelope_read.object, envelope.object));
        assert_int_equal(envelope_read.origin, 15);
        assert_int_equal(envelope_read.sequence, 0xfffffff0u);
        assert_int_equal(envelope_read.movement, 77);
        assert_int_equal(envelope_read.hops, 200);
        assert_int_equal(envelope_read.op, 5);
        assert_memory_equal(message.words, message_read.words, count * sizeof(uint64_t));
        assert_int_equal(message_read.size_bytes, 0);
        assert_int_equal(message_read.tag, -7);
        assert_false(fy_wire_read(&frame, 15, &envelope_read, &message_read));
        frame.word_count++;
        assert_false(fy_wire_read(&frame, 16, &envelope_read, &message_read));
        frame.word_count--;
        if (extra > 0) {
            frame.size_bytes--;
            assert_false(fy_wire_read(&frame, 16, &envelope_read, &message_read));
        }
    }
}

static int place_of_number(const void *context, uint64_t object)
{
    (void)context;
    return object == 9 ? -1 : (int)(object % 3);
}

/* Goal: what ties an object to ranks is the same after a migration frame, and its dependencies are
 * counted per rank. Method: write, read back whole and cut short, place with a known directory. */
static void test_affinity_travels(void **state)
{
    (void)state;
    unsigned char bytes[256];
    fy_affinity *affinity = fy_affinity_create(2, 4), *read = NULL;
    assert_non_null(affinity);
    affinity->granularity = 7;
    affinity->priorities[1] = 2.5;
    for (uint64_t i = 0; i < 4; i++)
        affinity->dependencies[i] = 3 * i + (i == 2); /* 0, 3, 7, 9: ranks 0, 0, 1, none */
    assert_ptr_equal(fy_affinity_write(affinity, bytes), bytes + fy_affinity_bytes(affinity));
    const unsigned char *at = bytes, *end = bytes + fy_affinity_bytes(affinity);
    assert_int_equal(fy_affinity_read(&at, end - 1, 2, 4, &read), FERRY_EINVAL);
    at = bytes;
    assert_int_equal(fy_affinity_read(&at, end, 2, 4, &read), 0);
    assert_ptr_equal(at, end);
    assert_true(read->granularity == 7 && read->priorities[0] == 0 && read->priorities[1] == 2.5);
    fy_affinity_place(read, place_of_number, NULL);
    assert_int_equal(fy_affinity_there(read, 0), 2);
    assert_int_equal(fy_affinity_there(read, 1), 1);
    assert_int_equal(fy_affinity_there(read, 2), 0);
    assert_int_equal(fy_affinity_there(NULL, 0), 0);
    free(affinity);
    free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_never_given_twice),
        cmocka_unit_test(test_queued_sort_by_origin_and_sequence),
        cmocka_unit_test(test_sources_count_per_rank),
        cmocka_unit_test(test_wire_reads_what_it_writes),
        cmocka_unit_test(test_affinity_travels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
