/* Jobs: reading and writing of images beside the application thread.
 *
 * The application thread begins jobs. Threads of the disk do them. Reads come first, because the
 * program waits for them. The threads are started with the first job. If there are none, a write is
 * done when it is begun, and nothing is read ahead. That is also so while jobs usually take less
 * time than to hand them over, as they do from the page cache. In the simulator a job is also done
 * when it is begun. If the simulated disk takes time, the job stays BUSY until its virtual time has
 * come. A caller that waits for it lets that time pass. There images are read ahead too.
 *
 * Invariants, under the lock: a QUEUED job is in a queue. A BUSY job belongs to the thread that
 * does it, with the image, place and size of its item. The image exists while its job is QUEUED,
 * BUSY or valid. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/fail.h"
#include "store/state.h"

static fy_stored *item_of(fy_link *link)
{
    return ((fy_job *)(void *)link)->item;
}

/* Ends a job. [lock held] */
static void disk_end_job(fy_disk *disk, fy_stored *item, int error)
{
    fy_job *job = &item->job;
    job->work = FY_WORK_NONE;
    job->error = error;
    if (!job->writes) {
        job->valid = error == 0;
        if (error != 0) {
            fy_buffer_give(item->store, item->image);
            item->image = NULL;
        }
    }
    if (job->writes || job->orphan)
        fy_list_insert(&disk->done, &job->link);
    fy_crew_tell_end(&disk->crew);
}

/* A job that takes less than HAND_OVER_NS is not worth a thread. */
enum { HAND_OVER_NS = 30000, SLOW_NS = 8 * HAND_OVER_NS };

/* Does a BUSY job. */
static int do_job(fy_stored *item, uint64_t *took_ns)
{
    char why[FY_STORE_WHY_BYTES];
    uint64_t begun_ns = fy_clock_now_ns();
    int error = 0;
    if (item->job.writes)
        error = fy_stored_put(item);
    else if (!fy_stored_get(item, why))
        error = EIO;
    *took_ns = fy_clock_now_ns() - begun_ns;
    return error;
}

/* Notes how long a job took. One that took very long counts as slow, not as more. [lock held] */
static void note_time(fy_disk *disk, bool writes, uint64_t took_ns)
{
    uint64_t *usual_ns = &disk->usual_ns[writes];
    *usual_ns = (7 * *usual_ns + (took_ns < SLOW_NS ? took_ns : SLOW_NS)) / 8;
}

/* A job of a simulated disk is done, and ends when its time has come. [lock held] */
static void end_later(fy_disk *disk, fy_stored *item, int error)
{
    fy_link *before = disk->later.prev;
    while (before != &disk->later &&
           ((const fy_job *)(const void *)before)->due_ns > item->job.due_ns)
        before = before->prev;
    item->job.error = error;
    fy_list_insert(before->next, &item->job.link);
}

/* Does a job in this thread. [lock held, which it gives back meanwhile] */
static void serve_one(fy_disk *disk, fy_stored *item)
{
    uint64_t took_ns = 0;
    item->job.work = FY_WORK_BUSY;
    fy_crew_unlock(&disk->crew);
    int error = do_job(item, &took_ns);
    fy_crew_lock(&disk->crew);
    note_time(disk, item->job.writes, took_ns);
    if (item->job.due_ns != 0)
        end_later(disk, item, error);
    else
        disk_end_job(disk, item, error);
}

static void *serve(void *arg)
{
    fy_disk *disk = arg;
    fy_crew_lock(&disk->crew);
    while (!disk->crew.stop) {
        fy_link *link = fy_list_pop(&disk->reads);
        if (link == NULL)
            link = fy_list_pop(&disk->writes);
        if (link == NULL) {
            fy_crew_await_work(&disk->crew);
            continue;
        }
        serve_one(disk, item_of(link));
    }
    fy_crew_unlock(&disk->crew);
    return NULL;
}

/* Ends the jobs whose time has come. [lock held] */
static void end_due(fy_disk *disk, uint64_t now_ns)
{
    fy_link *later = &disk->later;
    while (!fy_list_empty(later) && ((fy_job *)(void *)later->next)->due_ns <= now_ns) {
        fy_stored *item = item_of(fy_list_pop(later));
        disk_end_job(disk, item, item->job.error);
    }
}

static void enter(ferry_store *s)
{
    fy_crew_lock(&s->disk.crew);
    if (!fy_list_empty(&s->disk.later))
        end_due(&s->disk, ferry_now(s->f));
}

/* Lets the time pass until `due_ns`. [lock held, which it gives back meanwhile] */
static void pass(ferry_store *s, uint64_t due_ns)
{
    fy_port *port = s->objects->port;
    fy_crew_unlock(&s->disk.crew);
    uint64_t now_ns = ferry_now(s->f);
    if (due_ns > now_ns)
        port->ops->host.advance(port, due_ns - now_ns);
    enter(s);
}

/* Waits until a job ends. [lock held, which it gives back meanwhile] */
static void await_end(ferry_store *s)
{
    const fy_link *later = &s->disk.later;
    if (!fy_list_empty(later))
        pass(s, ((const fy_job *)(const void *)later->next)->due_ns);
    else
        fy_crew_await_end(&s->disk.crew);
}

int fy_jobs_open(ferry_store *s, int threads)
{
    fy_disk *disk = &s->disk;
    fy_port *port = s->objects->port;
    disk->simulator = port->ops->host.disk != NULL ? port : NULL;
    disk->read = pread;
    disk->write = pwrite;
    disk->limit = disk->simulator != NULL ? 0 : threads;
    disk->usual_ns[false] = disk->usual_ns[true] = SLOW_NS;
    fy_list_init(&disk->reads);
    fy_list_init(&disk->writes);
    fy_list_init(&disk->later);
    fy_list_init(&disk->done);
    return fy_crew_open(&disk->crew) == 0 ? 0
                                          : fy_fail(s->f, FERRY_ENOMEM, "store_open: no memory");
}

void fy_jobs_end(ferry_store *s)
{
    fy_crew_end(&s->disk.crew);
    end_due(&s->disk, UINT64_MAX);
}

void fy_jobs_close(ferry_store *s)
{
    fy_crew_close(&s->disk.crew);
    if (s->disk.fd >= 0)
        (void)close(s->disk.fd);
}

/* Whether a thread is to do a job that begins. Starts one for it if there can be more. [lock held]
 */
static bool wants_thread(fy_disk *disk, bool writes)
{
    if (disk->crew.count != 0 && disk->usual_ns[writes] < HAND_OVER_NS)
        return false;
    if (disk->crew.count < disk->limit && !fy_crew_add(&disk->crew, serve, disk))
        disk->limit = disk->crew.count;
    return disk->crew.count != 0;
}

/* Begins a job. Returns whether it was queued for a thread; else it is done. [lock held, which it
 * gives back] */
static bool job_begin(fy_stored *item, bool writes)
{
    fy_disk *disk = &item->store->disk;
    fy_job *job = &item->job;
    job->writes = writes;
    job->due_ns = 0;
    bool queued = wants_thread(disk, writes);
    if (queued) {
        job->work = FY_WORK_QUEUED;
        fy_list_insert(writes ? &disk->writes : &disk->reads, &job->link);
        disk->untold++;
    } else {
        serve_one(disk, item);
    }
    fy_crew_unlock(&disk->crew);
    return queued;
}

bool fy_job_write(fy_stored *item)
{
    enter(item->store);
    item->job.valid = true;
    return job_begin(item, true);
}

bool fy_job_read(fy_stored *item)
{
    void *image = fy_image_create(item->store, item->size_bytes);
    if (image == NULL)
        return false;
    enter(item->store);
    if (item->image != NULL || item->job.work != FY_WORK_NONE) {
        fy_buffer_give(item->store, image);
        fy_crew_unlock(&item->store->disk.crew);
        return false;
    }
    item->image = image;
    (void)job_begin(item, false);
    return true;
}

/* Wakes a thread for each job of which none was told, except `kept` ones. [lock held] */
static void tell_threads(fy_disk *disk, int kept)
{
    for (; disk->untold > kept; disk->untold--)
        fy_crew_bring_work(&disk->crew);
}

void fy_jobs_start(ferry_store *s, const fy_stored *mine)
{
    fy_disk *disk = &s->disk;
    fy_crew_lock(&disk->crew);
    tell_threads(disk, mine != NULL && mine->job.work == FY_WORK_QUEUED);
    fy_crew_unlock(&disk->crew);
}

/* Does a queued job in this thread. The others are told of the rest. [lock held, which it gives
 * back meanwhile] */
static void serve_here(fy_disk *disk, fy_stored *item)
{
    disk->untold -= disk->untold != 0;
    tell_threads(disk, 0);
    serve_one(disk, item);
}

void fy_jobs_serve(ferry_store *s)
{
    enum { SMALL_BYTES = 128 << 10 };
    fy_disk *disk = &s->disk;
    if (s->leaving_bytes + s->ahead_bytes > SMALL_BYTES)
        return;
    fy_crew_lock(&disk->crew);
    fy_link *link = NULL;
    if (disk->untold == 1)
        link = fy_list_pop(fy_list_empty(&disk->reads) ? &disk->writes : &disk->reads);
    if (link != NULL)
        serve_here(disk, item_of(link));
    fy_crew_unlock(&disk->crew);
}

fy_stored *fy_jobs_reap(ferry_store *s)
{
    fy_disk *disk = &s->disk;
    enter(s);
    fy_link *link = fy_list_pop(&disk->done);
    fy_crew_unlock(&disk->crew);
    return link == NULL ? NULL : item_of(link);
}

void fy_jobs_wait(ferry_store *s)
{
    fy_disk *disk = &s->disk;
    enter(s);
    while (fy_list_empty(&disk->done)) {
        fy_link *link = fy_list_pop(&disk->writes);
        if (link != NULL) {
            serve_here(disk, item_of(link));
        } else {
            tell_threads(disk, 0);
            await_end(s);
        }
    }
    fy_crew_unlock(&disk->crew);
}

/* Reads the image in this thread, since no other thread reads it. [lock held, which it gives back
 * meanwhile] */
static bool read_here(fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    fy_disk *disk = &item->store->disk;
    fy_job *job = &item->job;
    job->work = FY_WORK_BUSY;
    job->writes = false;
    job->due_ns = 0;
    fy_crew_unlock(&disk->crew);
    if (item->image == NULL)
        item->image = fy_image_create(item->store, item->size_bytes);
    bool whole = item->image != NULL && fy_stored_get(item, why);
    if (item->image == NULL)
        (void)snprintf(why, FY_STORE_WHY_BYTES, "no memory for its image");
    fy_crew_lock(&disk->crew);
    if (job->due_ns != 0)
        pass(item->store, job->due_ns);
    disk_end_job(disk, item, whole ? 0 : EIO);
    return whole;
}

bool fy_stored_read(fy_stored *item, char why[FY_STORE_WHY_BYTES])
{
    fy_disk *disk = &item->store->disk;
    fy_job *job = &item->job;
    bool whole = true;
    enter(item->store);
    while (whole && !job->valid) {
        if (job->work == FY_WORK_BUSY) {
            await_end(item->store);
            continue;
        }
        if (job->work == FY_WORK_QUEUED)
            disk->untold -= disk->untold != 0;
        fy_list_remove(&job->link);
        whole = read_here(item, why);
    }
    job->lent = job->lent || whole;
    fy_crew_unlock(&disk->crew);
    return whole;
}

void *fy_stored_adopt(fy_stored *item)
{
    fy_disk *disk = &item->store->disk;
    fy_job *job = &item->job;
    void *image = NULL;
    enter(item->store);
    if (job->work != FY_WORK_BUSY) {
        fy_list_remove(&job->link);
        image = item->image;
        item->image = NULL;
        job->work = FY_WORK_NONE;
        job->valid = job->lent = false;
    }
    fy_crew_unlock(&disk->crew);
    return image;
}

bool fy_stored_forget(fy_stored *item, bool spare)
{
    fy_disk *disk = &item->store->disk;
    fy_job *job = &item->job;
    enter(item->store);
    bool ends = job->work != FY_WORK_BUSY && !(spare && job->lent);
    if (ends) {
        fy_list_remove(&job->link);
        fy_buffer_give(item->store, item->image);
        item->image = NULL;
        job->work = FY_WORK_NONE;
        job->valid = false;
    }
    if (!spare)
        job->lent = false;
    fy_crew_unlock(&disk->crew);
    return ends;
}

bool fy_stored_abandon(fy_stored *item)
{
    if (fy_stored_forget(item, false))
        return true;
    fy_disk *disk = &item->store->disk;
    enter(item->store);
    item->job.orphan = item->job.work == FY_WORK_BUSY;
    bool orphan = item->job.orphan;
    fy_crew_unlock(&disk->crew);
    return !orphan && fy_stored_forget(item, false);
}
