/* Goal: an object on disk migrates as the place of its image, and nothing is lost or read twice
 * whatever happens before the image is read. Method: two ranks driven by one thread; rank 0 moves
 * objects on disk to rank 1, while stores close, images are damaged and objects go back. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "account.h"
#include "store/places.h"

/* Reads so far, and how many of the next reads a signal interrupts. */
static int read_count, interruptions;

/* Takes the place of the C library's function. */
ssize_t pread(int fd, void *buffer, size_t size_bytes, off_t offset)
{
    read_count++;
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_pread64, fd, buffer, size_bytes, offset);
}

/* An object that must be on disk goes to a rank of the job. */
static void move(test_job *job, const account *a, int from, int index, int to)
{
    assert_true(is_out(job->f[from], a->objects[index]));
    assert_int_equal(ferry_object_move(job->f[from], a->objects[index], to), 0);
    (void)job_settle(job);
}

/* Rank 1 has got an image, and an offer. From now on objects on disk go as places. */
static void open_sharing(test_job *job, account a[2])
{
    open_two(job, a, BUDGET);
    create_all(job->f[0], &a[0]);
    settle_writes(job->f[0], &a[0]);
    move(job, &a[0], 0, 0, 1);
    assert_int_equal(stats_of(&a[0]).lent + stats_of(&a[1]).taken, 0);
    assert_int_equal(stats_of(&a[0]).reads, 1);
    assert_true(fy_store_is_read_by(a[0].store, 1));
    assert_false(fy_store_is_read_by(a[1].store, 0));
}

/* The object gets a message from rank 0 and must have lost nothing. */
static void use(test_job *job, account a[2], int index, int rank, uint64_t value)
{
    a[rank].last = 0;
    send_add(job->f[0], &a[0], a[0].objects[index], value);
    (void)job_settle(job);
    assert_int_equal(a[0].error, 0);
    assert_int_equal(a[rank].last, (uint64_t)index + value);
}

static size_t leases(const account *a)
{
    size_t count = 0;
    for (const fy_link *link = a->store->lent.next; link != &a->store->lent; link = link->next)
        count++;
    return count;
}

static void test_store_sends_places(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_sharing(&job, a);
    for (int i = 1; i < 4; i++)
        move(&job, &a[0], 0, i, 1);
    assert_int_equal(stats_of(&a[0]).lent, 3);
    assert_int_equal(stats_of(&a[1]).taken, 3);
    assert_int_equal(stats_of(&a[0]).reads, 1);
    assert_int_equal(leases(&a[0]), 3);
    for (int i = 1; i < 4; i++) {
        assert_true(is_out(job.f[1], a[0].objects[i]));
        assert_null(ferry_object_data(job.f[1], a[0].objects[i]));
        assert_true(fy_record_here(job.f[1], a[0].objects[i])->stored->granularity == i);
    }
    uint64_t end_bytes = a[0].store->end_bytes;
    use(&job, a, 2, 1, 100);
    assert_int_equal(stats_of(&a[1]).reads, 1);
    assert_int_equal(leases(&a[0]), 2);
    /* It has a place of its own there now. The free one is used again. */
    assert_null(fy_record_here(job.f[1], a[0].objects[2])->stored->file);
    uint64_t *data = calloc(1, BYTES);
    ferry_object more;
    assert_non_null(data);
    a[0].alive++;
    assert_int_equal(ferry_object_create(job.f[0], a[0].type, data, &more), 0);
    settle_writes(job.f[0], &a[0]);
    assert_int_equal(a[0].store->end_bytes, end_bytes);
    use(&job, a, 1, 1, 100);
    use(&job, a, 3, 1, 100);
    assert_int_equal(leases(&a[0]), 0);
    job_close(&job);
    assert_int_equal(a[0].alive + a[1].alive, 0);
}

static void test_store_gets_places_back(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_sharing(&job, a);
    move(&job, &a[0], 0, 1, 1);
    uint64_t reads = stats_of(&a[0]).reads + stats_of(&a[1]).reads;
    uint64_t objects = stats_of(&a[0]).objects;
    move(&job, &a[0], 1, 1, 0);
    assert_int_equal(stats_of(&a[0]).reads + stats_of(&a[1]).reads, reads);
    assert_int_equal(stats_of(&a[0]).objects, objects + 1);
    assert_int_equal(leases(&a[0]), 0);
    assert_null(fy_record_here(job.f[0], a[0].objects[1])->stored->file);
    use(&job, a, 1, 0, 100);
    /* Destroyed where its place is another rank's. */
    move(&job, &a[0], 0, 2, 1);
    assert_int_equal(leases(&a[0]), 1);
    assert_int_equal(ferry_object_destroy(job.f[1], a[0].objects[2]), 0);
    (void)job_settle(&job);
    assert_int_equal(leases(&a[0]), 0);
    job_close(&job);
    assert_int_equal(a[0].alive + a[1].alive, 0);
}

static void flip(const account *a, off_t offset)
{
    unsigned char byte = 0;
    CHECK(pread(a->store->disk.fd, &byte, 1, offset) == 1);
    byte ^= 1;
    CHECK(pwrite(a->store->disk.fd, &byte, 1, offset) == 1);
}

static void test_store_finds_damage_in_places(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    char name[32];
    open_sharing(&job, a);
    off_t offset = (off_t)fy_record_here(job.f[0], a[0].objects[1])->stored->offset;
    (void)snprintf(name, sizeof name, "%016llx", (unsigned long long)a[0].objects[1].word);
    move(&job, &a[0], 0, 1, 1);
    flip(&a[0], offset + 500);
    send_add(job.f[0], &a[0], a[0].objects[1], 100);
    (void)job_settle(&job);
    assert_int_equal(a[0].error, FERRY_ESYSTEM);
    assert_non_null(strstr(ferry_error_message(job.f[1]), name));
    assert_non_null(strstr(ferry_error_message(job.f[1]), "checksum"));
    assert_true(is_out(job.f[1], a[0].objects[1]));
    assert_int_equal(leases(&a[0]), 1);
    flip(&a[0], offset + 500);
    use(&job, a, 1, 1, 100);
    job_close(&job);
}

static void test_store_reads_places_of_a_store_that_has_closed(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    ferry_store_options options = FERRY_STORE_OPTIONS_DEFAULTS;
    open_sharing(&job, a);
    move(&job, &a[0], 0, 1, 1);
    move(&job, &a[0], 0, 2, 1);
    assert_int_equal(ferry_store_close(a[0].store), 0);
    use(&job, a, 1, 1, 100);
    /* A place comes back to a rank whose store is another one. */
    options.budget_bytes = BUDGET;
    assert_int_equal(ferry_store_open(job.f[0], &options, &a[0].store), 0);
    assert_int_equal(ferry_store_add(a[0].store, a[0].type), 0);
    move(&job, &a[0], 1, 2, 0);
    use(&job, a, 2, 0, 100);
    job_close(&job);
    assert_int_equal(a[0].alive + a[1].alive, 0);
}

/* Rank 1 closes its store, and rank 0 does not know that yet. */
static void test_store_takes_places_after_it_has_closed(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_sharing(&job, a);
    assert_int_equal(ferry_store_close(a[1].store), 0);
    interruptions = 2;
    read_count = 0;
    move(&job, &a[0], 0, 1, 1);
    assert_int_equal(read_count, 3);
    assert_int_equal(stats_of(&a[0]).lent, 1);
    assert_int_equal(leases(&a[0]), 0);
    assert_int_equal(*(uint64_t *)ferry_object_data(job.f[1], a[0].objects[1]), 1);
    assert_false(fy_store_is_read_by(a[0].store, 1));
    move(&job, &a[0], 0, 2, 1);
    assert_int_equal(stats_of(&a[0]).lent, 1);
    use(&job, a, 1, 1, 100);
    use(&job, a, 2, 1, 100);
    job_close(&job);
    assert_int_equal(a[0].alive + a[1].alive, 0);
}

/* Another store than that of rank 1 must not be opened in its place. */
static void test_store_refuses_files_that_it_cannot_know(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_two(&job, a, BUDGET);
    a[0].store->disk.align_bytes = 512; /* rank 1 aligns otherwise */
    create_all(job.f[0], &a[0]);
    settle_writes(job.f[0], &a[0]);
    for (int i = 0; i < 3; i++)
        move(&job, &a[0], 0, i, 1);
    assert_int_equal(stats_of(&a[0]).lent, 0);
    assert_int_equal(stats_of(&a[0]).reads, 3);
    for (int i = 0; i < 3; i++)
        use(&job, a, i, 1, 100);
    job_close(&job);
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Rank 0 offers its file to rank 1, once more. */
static void offer(test_job *job, const account *a)
{
    a->store->readers[1].told = false;
    atomic_store(&a->store->offers, true);
    (void)job_settle(job);
    assert_true(a->store->readers[1].told);
}

/* A second offer of the same file takes no second descriptor. A pipe is no file. */
static void test_store_opens_each_file_once(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    int ends[2];
    open_sharing(&job, a);
    CHECK(pipe(ends) == 0);
    int before = descriptors(), fd = a[0].store->disk.fd;
    offer(&job, &a[0]);
    assert_int_equal(descriptors(), before);
    a[0].store->disk.fd = ends[0];
    a[0].store->number ^= 1;
    offer(&job, &a[0]);
    assert_int_equal(descriptors(), before);
    a[0].store->disk.fd = fd;
    a[0].store->number ^= 1;
    move(&job, &a[0], 0, 1, 1);
    assert_int_equal(stats_of(&a[0]).lent, 1);
    use(&job, a, 1, 1, 100);
    (void)close(ends[0]);
    (void)close(ends[1]);
    job_close(&job);
}

/* Rank 1 says that another object comes back with the lease of object 1, then that object 1 does,
 * with loads that are no numbers. */
static void test_store_gives_no_object_the_place_of_another(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_sharing(&job, a);
    move(&job, &a[0], 0, 1, 1);
    fy_stored *item = fy_record_here(job.f[1], a[0].objects[1])->stored;
    fy_image_place place;
    fy_place_write(item, &place);
    place.load = place.granularity = NAN;
    fy_record record = {.object = a[0].objects[2]};
    fy_take_fn *take = fy_objects_of(job.f[0])->take;
    assert_null(take(job.f[0], &record, &place, sizeof place));
    assert_null(take(job.f[0], &record, &place, sizeof place - 1));
    assert_int_equal(leases(&a[0]), 1);
    item->load = item->granularity = NAN;
    move(&job, &a[0], 1, 1, 0);
    item = fy_record_here(job.f[0], a[0].objects[1])->stored;
    assert_true(item->load == 0 && item->granularity == 0);
    assert_int_equal(leases(&a[0]), 0);
    use(&job, a, 1, 0, 100);
    job_close(&job);
}

/* A rank without a store cannot take `place`: it says why, but not at the second attempt. */
static void check_refused(ferry *f, const fy_record *known, const fy_image_place *place,
                          const char *expected)
{
    static uint64_t objects = 100;
    char said[512] = "";
    fy_record record = *known;
    record.object.word = ++objects; /* each is told once */
    FILE *file = tmpfile();
    int saved = dup(2);
    CHECK(file != NULL && saved >= 0 && dup2(fileno(file), 2) == 2);
    void *data = fy_objects_of(f)->take(f, &record, place, sizeof *place);
    void *again = fy_objects_of(f)->take(f, &record, place, sizeof *place);
    CHECK(dup2(saved, 2) == 2 && close(saved) == 0);
    rewind(file);
    (void)fread(said, 1, sizeof said - 1, file);
    (void)fclose(file);
    assert_null(data);
    assert_null(again);
    assert_non_null(strstr(said, expected));
    assert_null(strchr(strchr(said, '\n') + 1, '\n'));
}

static void test_store_says_why_it_refuses_a_place(void **state)
{
    (void)state;
    test_job job;
    account a[2];
    open_sharing(&job, a);
    const fy_record *known = fy_record_here(job.f[0], a[0].objects[1]);
    fy_image_place place, other;
    fy_place_write(known->stored, &place);
    assert_int_equal(ferry_store_close(a[1].store), 0);
    (void)job_settle(&job);
    /* The sum is of another object. */
    check_refused(job.f[1], known, &place, "the checksum of its image is");
    other = place;
    other.offset = UINT64_C(1) << 40;
    check_refused(job.f[1], known, &other, "of the file of rank 0 fails: the file ends before");
    other.offset = UINT64_C(1) << 63;
    check_refused(job.f[1], known, &other, "Invalid argument");
    other.number = ~place.number;
    check_refused(job.f[1], known, &other, "of rank 0 is not open here");
    move(&job, &a[0], 0, 1, 1);
    use(&job, a, 1, 1, 100);
    job_close(&job);
    assert_int_equal(a[0].alive + a[1].alive, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_sends_places),
        cmocka_unit_test(test_store_gets_places_back),
        cmocka_unit_test(test_store_finds_damage_in_places),
        cmocka_unit_test(test_store_reads_places_of_a_store_that_has_closed),
        cmocka_unit_test(test_store_takes_places_after_it_has_closed),
        cmocka_unit_test(test_store_refuses_files_that_it_cannot_know),
        cmocka_unit_test(test_store_opens_each_file_once),
        cmocka_unit_test(test_store_gives_no_object_the_place_of_another),
        cmocka_unit_test(test_store_says_why_it_refuses_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
