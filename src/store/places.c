/* Places: the files of other ranks, objects that come as places, and the frames for both. */
#include "store/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/mix.h"
#include "core/fail.h"
#include "core/outgoing.h"
#include "object/flat.h"

/* The files that this rank can read. It outlives the store, since places may come after that. */
typedef struct fy_files {
    fy_link all;
    bool closing;     /* no frame may be sent any more */
    uint64_t refused; /* the object whose place was refused last */
} fy_files;

/* How another rank finds the file. `boot`, device and number of the file together are the same only
 * on one host. */
typedef struct fy_file_offer {
    uint64_t number, boot, device, node;
    int64_t pid;
    int32_t fd;
    uint32_t align_bytes;
} fy_file_offer;

_Static_assert(sizeof(fy_image_place) == 64 && sizeof(fy_file_offer) == 48, "they have no holes");

static fy_files *files_of(const ferry *f)
{
    return fy_layer_state(f, FY_LAYER_STORE);
}

/* A hash of the host's present boot. 0: unknown. */
static uint64_t boot_of(void)
{
    char text[64] = "";
    uint64_t sum = 0, word;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t count = read(fd, text, sizeof text);
    (void)close(fd);
    for (size_t at = 0; at < sizeof text && count > 0; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        sum = fy_mix(sum, word);
    }
    return sum;
}

static void send_offer(ferry_store *s, int rank)
{
    struct stat status;
    uint64_t boot = boot_of();
    if (boot == 0 || fstat(s->disk.fd, &status) != 0)
        return;
    const fy_file_offer offer = {.number = s->number,
                                 .boot = boot,
                                 .device = status.st_dev,
                                 .node = status.st_ino,
                                 .pid = getpid(),
                                 .fd = s->disk.fd,
                                 .align_bytes = (uint32_t)s->disk.align_bytes};
    const fy_frame frame = {
        .kind = FY_KIND_STORE_OFFER, .data = &offer, .size_bytes = sizeof offer};
    (void)fy_send(s->f, FY_DATA, rank, &frame); /* if it is lost, images travel */
}

static void free_file(fy_file *file)
{
    fy_list_remove(&file->link);
    (void)close(file->fd);
    free(file);
}

/* Closes the files of ranks that are gone, if no object here has its image in them. */
static void close_gone(fy_files *files)
{
    for (fy_link *link = files == NULL ? NULL : files->all.next, *next;
         link != NULL && link != &files->all; link = next) {
        fy_file *file = (fy_file *)(void *)link;
        next = link->next;
        if (fy_file_is_gone(file) && file->items == 0)
            free_file(file);
    }
}

void fy_places_progress(ferry_store *s)
{
    if (s->sweeps && fy_leases_sweep(s)) {
        close_gone(files_of(s->f));
        s->sweeps = false;
    }
    /* relaxed: what it says is under the lock */
    if (!atomic_load_explicit(&s->offers, memory_order_relaxed))
        return;
    atomic_store_explicit(&s->offers, false, memory_order_relaxed);
    for (int rank = 0; rank < s->objects->ranks; rank++) {
        fy_crew_lock(&s->disk.crew);
        bool due = s->readers[rank].wanted && !s->readers[rank].told;
        s->readers[rank].told = s->readers[rank].told || due;
        fy_crew_unlock(&s->disk.crew);
        if (due)
            send_offer(s, rank);
    }
}

static fy_file *find(const fy_files *files, int rank, uint64_t number)
{
    for (fy_link *link = files->all.next; link != &files->all; link = link->next) {
        fy_file *file = (fy_file *)(void *)link;
        if (file->rank == rank && file->number == number)
            return file;
    }
    return NULL;
}

/* NULL: no memory. */
static fy_files *make_files(ferry *f)
{
    fy_files *files = files_of(f);
    if (files != NULL || (files = fy_calloc(1, sizeof *files)) == NULL)
        return files;
    fy_list_init(&files->all);
    fy_layer_state_set(f, FY_LAYER_STORE, files);
    return files;
}

/* Adds a file. The fd belongs to it. NULL: no memory. */
static fy_file *add_file(ferry *f, int rank, int fd, uint64_t number, size_t align_bytes)
{
    fy_files *files = make_files(f);
    fy_file *file = files == NULL ? NULL : fy_calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->rank = rank;
    file->fd = fd;
    file->number = number;
    file->align_bytes = align_bytes;
    fy_list_insert(&files->all, &file->link);
    return file;
}

/* Whether the program needs the remaining descriptors itself. */
static bool is_scarce(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) != 0 || (rlim_t)fd >= limit.rlim_cur / 2;
}

/* Opens the file of an offer. -1: it is not on this host, or may not be read. */
static int open_offered(const fy_file_offer *offer)
{
    char path[64];
    struct stat status;
    if (offer->boot == 0 || offer->boot != boot_of())
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)offer->pid, offer->fd);
    int direct = offer->align_bytes == FY_DIRECT_BYTES ? O_DIRECT : 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | direct);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == offer->device &&
        status.st_ino == offer->node && !is_scarce(fd))
        return fd;
    (void)close(fd);
    return -1;
}

/* Tells the rank of `file` which types come here as places. `s` NULL: none. */
static void accept_file(ferry *f, const ferry_store *s, const fy_file *file)
{
    uint64_t types[FY_TYPE_WORDS] = {0};
    bool takes = s != NULL && s->disk.align_bytes == file->align_bytes;
    for (unsigned i = 0; i < FY_TYPES_MAX && takes; i++)
        types[i / 64] |= (uint64_t)(s->shadows[i] != NULL) << i % 64;
    const fy_frame frame = {.kind = FY_KIND_STORE_ACCEPT,
                            .word_count = 1,
                            .words = {file->number},
                            .data = types,
                            .size_bytes = sizeof types};
    if (file->rank != ferry_rank(f) && !fy_file_is_gone(file))
        (void)fy_send(f, FY_DATA, file->rank, &frame);
}

static void accept_all(ferry *f, const ferry_store *s)
{
    const fy_files *files = files_of(f);
    if (files == NULL || files->closing)
        return;
    for (fy_link *link = files->all.next; link != &files->all; link = link->next)
        accept_file(f, s, (fy_file *)(void *)link);
}

void fy_places_accept(ferry_store *s)
{
    accept_all(s->f, s);
}

/* A number of another rank, which may have sent no number at all. */
static double at_least_0(double number)
{
    return number >= 0 ? number : 0;
}

/* The object of `record` is on disk, and `item` has its place. */
static void set_place(ferry_store *s, fy_record *record, fy_stored *item,
                      const fy_image_place *place)
{
    item->record = record;
    item->job.orphan = false;
    item->look = 0;
    item->load = at_least_0(place->load);
    item->granularity = at_least_0(place->granularity);
    item->untold = true;
    record->stored = item;
    record->out = true;
    record->type = s->shadows[record->type_index];
    fy_list_insert(&s->out, &item->link);
    s->stats.objects++;
    s->stats.disk_objects++;
    s->stats.disk_bytes += item->size_bytes;
}

static fy_stored *make_item(ferry_store *s, const fy_record *record, fy_file *file,
                            const fy_image_place *place)
{
    fy_stored *item = fy_stored_create(s, record->object);
    if (item == NULL)
        return NULL;
    fy_stored_measured(item, place->size_bytes);
    item->offset = place->offset;
    item->sum = place->sum;
    item->lease = place->lease;
    item->file = file;
    file->items++;
    s->stats.taken++;
    return item;
}

static void send_release(ferry *f, const fy_file *file, uint64_t lease)
{
    const fy_frame frame = {
        .kind = FY_KIND_STORE_RELEASE, .word_count = 2, .words = {file->number, lease}};
    if (!files_of(f)->closing && !fy_file_is_gone(file) && file->rank != ferry_rank(f))
        (void)fy_send(f, FY_DATA, file->rank, &frame); /* if it is lost, the place stays unused */
}

void fy_place_release(fy_stored *item)
{
    fy_file *file = item->file;
    if (!item->returned)
        send_release(item->store->f, file, item->lease);
    item->file = NULL;
    item->lease = item->offset = 0;
    item->returned = false;
    file->items--;
    item->store->sweeps |= fy_file_is_gone(file);
}

/* Says why an object has no data, once: it is tried again for some time. Returns NULL. */
__attribute__((format(printf, 3, 4))) static void *places_refuse(ferry *f, const fy_record *record,
                                                                 const char *format, ...)
{
    fy_files *files = make_files(f);
    if (files == NULL || files->refused == record->object.word)
        return NULL;
    files->refused = record->object.word;
    char why[128];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    fy_log(f, "store: object %016llx has come without its image, and %s",
           (unsigned long long)record->object.word, why);
    return NULL;
}

/* Reads a whole image. False: errno says why; 0: the file is shorter. */
static bool read_image(const fy_file *file, const fy_image_place *place, void *image,
                       size_t room_bytes)
{
    size_t done = 0;
    for (ssize_t count = 1; count != 0 && done < place->size_bytes;) {
        errno = 0;
        count =
            pread(file->fd, (char *)image + done, room_bytes - done, (off_t)(place->offset + done));
        if (count < 0 && errno != EINTR)
            return false;
        done += count > 0 ? (size_t)count : 0;
    }
    return done >= place->size_bytes;
}

/* Reads the whole image at once, since this rank has no store for the object. NULL: it cannot. */
static void *read_now(ferry *f, const fy_record *record, const fy_file *file,
                      const fy_image_place *place)
{
    size_t room_bytes = (place->size_bytes + file->align_bytes) & ~(file->align_bytes - 1);
    void *image = fy_aligned_alloc(file->align_bytes, room_bytes), *data = NULL;
    if (image == NULL)
        return NULL;
    if (!read_image(file, place, image, room_bytes)) {
        (void)places_refuse(f, record, "reading it at byte %llu of the file of rank %d fails: %s",
                            (unsigned long long)place->offset, file->rank,
                            errno == 0 ? "the file ends before" : strerror(errno));
    } else {
        uint64_t sum = fy_image_sum(image, record->object.word, place->size_bytes);
        data =
            sum == place->sum
                ? record->type->ops.unpack(f, record->object, image, place->size_bytes)
                : places_refuse(f, record, "the checksum of its image is %016llx, expected %016llx",
                                (unsigned long long)sum, (unsigned long long)place->sum);
    }
    free(image);
    return data;
}

/* The item of an object that comes back unread. */
static fy_stored *take_back(ferry *f, ferry_store *s, const fy_record *record,
                            const fy_image_place *place)
{
    fy_stored *item = fy_lease_return(s, place->lease, record->object);
    return item != NULL
               ? item
               : places_refuse(f, record, "this rank has lent no image of it with lease %llu",
                               (unsigned long long)place->lease);
}

/* fy_take_fn. */
static void *take(ferry *f, fy_record *record, const void *packed, size_t size_bytes)
{
    fy_image_place place;
    ferry_store *s = fy_store_of(f);
    const fy_files *files = files_of(f);
    if (size_bytes != sizeof place)
        return places_refuse(f, record, "its place has %zu bytes, expected %zu", size_bytes,
                             sizeof place);
    memcpy(&place, packed, sizeof place);
    bool stored = s != NULL && s->shadows[record->type_index] != NULL;
    bool back = stored && place.rank == s->objects->rank && place.number == s->number;
    fy_file *file = back || files == NULL ? NULL : find(files, (int)place.rank, place.number);
    if (!back && file == NULL)
        return places_refuse(f, record, "file %016llx of rank %lld is not open here",
                             (unsigned long long)place.number, (long long)place.rank);
    if (back || (stored && s->disk.align_bytes == file->align_bytes)) {
        fy_stored *item =
            back ? take_back(f, s, record, &place) : make_item(s, record, file, &place);
        if (item != NULL)
            set_place(s, record, item, &place);
        return item;
    }
    void *data = read_now(f, record, file, &place);
    if (data != NULL)
        send_release(f, file, place.lease);
    return data;
}

void fy_place_write(const fy_stored *item, void *out)
{
    const ferry_store *s = item->store;
    const fy_file *file = item->file;
    const fy_image_place place = {.number = file == NULL ? s->number : file->number,
                                  .lease = item->lease,
                                  .offset = item->offset,
                                  .size_bytes = item->size_bytes,
                                  .sum = item->sum,
                                  .load = item->load,
                                  .granularity = item->granularity,
                                  .rank = file == NULL ? s->objects->rank : file->rank};
    memcpy(out, &place, sizeof place);
}

static fy_verdict hear_offer(ferry *f, int source, const fy_frame *frame)
{
    fy_file_offer offer;
    if (frame->size_bytes != sizeof offer || frame->word_count != 0) {
        fy_bad_frame(f, source, frame, "an offer of a store");
        return FY_TAKEN;
    }
    memcpy(&offer, frame->data, sizeof offer);
    if (offer.align_bytes == 0 || (offer.align_bytes & (offer.align_bytes - 1)) != 0)
        return FY_TAKEN;
    if (files_of(f) != NULL && find(files_of(f), source, offer.number) != NULL)
        return FY_TAKEN; /* its file is open already */
    int fd = open_offered(&offer);
    fy_file *file = fd < 0 ? NULL : add_file(f, source, fd, offer.number, offer.align_bytes);
    if (file != NULL) {
        fy_objects_of(f)->take = take;
        accept_file(f, fy_store_of(f), file);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    return FY_TAKEN;
}

static fy_verdict hear_accept(ferry *f, int source, const fy_frame *frame)
{
    ferry_store *s = fy_store_of(f);
    uint64_t types[FY_TYPE_WORDS];
    if (frame->size_bytes != sizeof types || frame->word_count != 1) {
        fy_bad_frame(f, source, frame, "an answer to a store");
        return FY_TAKEN;
    }
    memcpy(types, frame->data, sizeof types);
    if (s != NULL && frame->words[0] == s->number) {
        fy_objects_of(f)->take = take; /* places may come back */
        fy_lease_accept(s, source, types);
    }
    return FY_TAKEN;
}

static fy_verdict hear_release(ferry *f, int source, const fy_frame *frame)
{
    ferry_store *s = fy_store_of(f);
    if (frame->word_count != 2)
        fy_bad_frame(f, source, frame, "a release of a store");
    else if (s != NULL && frame->words[0] == s->number)
        (void)fy_lease_end(s, frame->words[1], source);
    return FY_TAKEN;
}

void fy_places_end(ferry_store *s)
{
    const fy_files *files = files_of(s->f);
    bool closing = files != NULL && files->closing;
    if (!closing)
        accept_all(s->f, NULL);
    if (!fy_leases_free(s) || closing)
        return;
    if (add_file(s->f, s->objects->rank, s->disk.fd, s->number, s->disk.align_bytes) != NULL)
        s->disk.fd = -1;
    else
        fy_log(s->f, "store: no memory to keep its file open: an object that comes back unread "
                     "cannot be read");
}

/* An object may still wait to be installed whose place is in a file of that rank, so the file stays
 * open. */
static void places_peer_gone(ferry *f, int rank)
{
    ferry_store *s = fy_store_of(f);
    const fy_files *files = files_of(f);
    if (s != NULL)
        s->sweeps = true;
    for (fy_link *link = files == NULL ? NULL : files->all.next;
         link != NULL && link != &files->all; link = link->next) {
        fy_file *file = (fy_file *)(void *)link;
        if (file->rank == rank)
            /* relaxed: as in fy_file_is_gone */
            atomic_store_explicit(&file->gone, true, memory_order_relaxed);
    }
}

static void places_drain(ferry *f)
{
    if (files_of(f) != NULL)
        files_of(f)->closing = true;
}

static void close_files(ferry *f)
{
    fy_files *files = files_of(f);
    while (files != NULL && !fy_list_empty(&files->all))
        free_file((fy_file *)(void *)files->all.next);
    free(files);
    fy_layer_state_set(f, FY_LAYER_STORE, NULL);
}

static const fy_kind_info kinds[] = {
    [FY_KIND_STORE_OFFER - FY_KINDS_OF_STORE] = {hear_offer, NULL, "offer of a store", 0},
    [FY_KIND_STORE_ACCEPT - FY_KINDS_OF_STORE] = {hear_accept, NULL, "answer to a store", 0},
    [FY_KIND_STORE_RELEASE - FY_KINDS_OF_STORE] = {hear_release, NULL, "release of a store", 0},
};

const fy_layer_ops fy_store_layer = {.layer = FY_LAYER_STORE,
                                     .name = "store",
                                     .kinds = kinds,
                                     .kind_count = sizeof(kinds) / sizeof(kinds[0]),
                                     .drain = places_drain,
                                     .close = close_files,
                                     .peer_gone = places_peer_gone};
