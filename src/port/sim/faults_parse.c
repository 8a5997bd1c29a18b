/* Parser of fault plans, and the choice of random ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/error.h>

#include "base/error.h"
#include "base/random.h"
#include "port/sim/faults.h"
#include "port/sim/net.h"

enum {
    MILLION = 1000000,
    FILE_BYTES_MAX = 64 << 20,
    STREAM_PLAN = 3,
    STREAM_MALLOC_ODDS = 5,
    STREAM_UNREADABLE = 10,
    FACTOR_MAX = 1000000
};

typedef struct reader {
    const char *item, *at; /* the item that is read, and how far */
    int ranks;
    fy_faults *faults;
} reader;

static int faults_fail(const reader *r, const char *expected)
{
    int length = (int)strcspn(r->item, ",\n");
    return fy_error_set(FERRY_EINVAL, "fault \"%.*s\": expected %s", length < 60 ? length : 60,
                        r->item, expected);
}

/* The same for an item with ranks, which may be the wrong part. */
static int faults_fail_rank(const reader *r, const char *expected)
{
    char text[64];
    snprintf(text, sizeof(text), "%s, with ranks 0..%d", expected, r->ranks - 1);
    return faults_fail(r, text);
}

static bool faults_take(reader *r, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(r->at, text, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool take_number(reader *r, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    if (*r->at < '0' || *r->at > '9')
        return false;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
        uint64_t digit = (uint64_t)(*r->at - '0');
        if (digit > max || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static bool take_rank(reader *r, int *rank)
{
    uint64_t value;
    if (!take_number(r, (uint64_t)r->ranks - 1, &value))
        return false;
    *rank = (int)value;
    return true;
}

static bool take_time(reader *r, uint64_t *ns)
{
    uint64_t ps;
    if (!fy_net_time(r->at, &ps, &r->at))
        return false;
    *ns = ps / 1000;
    return true;
}

/* A probability from 0 to 1 with up to six decimals, per million. */
static bool take_odds(reader *r, uint32_t *odds)
{
    uint64_t whole, value = 0, scale = MILLION;
    if (!take_number(r, 1, &whole))
        return false;
    if (faults_take(r, "."))
        for (; *r->at >= '0' && *r->at <= '9' && scale > 1; r->at++) {
            scale /= 10;
            value += (uint64_t)(*r->at - '0') * scale;
        }
    value += whole * MILLION;
    *odds = (uint32_t)value;
    return value <= MILLION;
}

static int faults_grow(void **items, size_t count, size_t item_bytes)
{
    if ((count & (count - 1)) != 0)
        return 0;
    void *bigger = realloc(*items, (count == 0 ? 1 : count * 2) * item_bytes);
    if (bigger == NULL)
        return fy_error_set(FERRY_ENOMEM, "no memory for a plan of %zu faults", count);
    *items = bigger;
    return 0;
}

static int add_timed(fy_faults *faults, fy_fault fault)
{
    void *items = faults->timed;
    int error = faults_grow(&items, faults->timed_count, sizeof(fault));
    if (error != 0)
        return error;
    faults->timed = items;
    faults->timed[faults->timed_count++] = fault;
    return 0;
}

static int add_slow(fy_faults *faults, fy_slow slow)
{
    void *items = faults->slow;
    int error = faults_grow(&items, faults->slow_count, sizeof(slow));
    if (error != 0)
        return error;
    faults->slow = items;
    faults->slow[faults->slow_count++] = slow;
    return 0;
}

static int add_named(fy_faults *faults, fy_decision decision)
{
    fy_decisions *named = &faults->named;
    void *items = named->items;
    int error = faults_grow(&items, named->count, sizeof(decision));
    if (error != 0)
        return error;
    named->items = items;
    named->items[named->count++] = decision;
    return 0;
}

/* The value of a decision, after its number. */
static bool take_value(reader *r, fy_decision *decision)
{
    decision->value = 1;
    if (!fy_fault_has_value(decision->kind))
        return true;
    if (!faults_take(r, ":"))
        return false;
    if (decision->kind == FY_FAULT_DELAY)
        return take_time(r, &decision->value);
    return take_number(r, UINT32_MAX, &decision->value) && decision->value != 0;
}

static int read_class(reader *r, fy_fault_kind kind)
{
    uint64_t factor = 1;
    if (faults_take(r, "@")) {
        fy_decision decision = {.kind = kind};
        if (!take_number(r, UINT64_MAX, &decision.number) || !take_value(r, &decision))
            return faults_fail(r,
                               "a number after @, then :TIME for a delay, :BYTE for disk-damage, "
                               ":FACTOR for disk-slow");
        return add_named(r->faults, decision);
    }
    if (!faults_take(r, "=") || !take_odds(r, &r->faults->odds[kind]))
        return faults_fail(r, "=PROBABILITY from 0 to 1 or @NUMBER");
    if (kind == FY_FAULT_DELAY && (!faults_take(r, ":") || !take_time(r, &r->faults->delay_max_ns)))
        return faults_fail(r, "delay=PROBABILITY:TIME");
    if (kind == FY_FAULT_DISK_SLOW &&
        (!faults_take(r, ":") || !take_number(r, FACTOR_MAX, &factor) || factor == 0))
        return faults_fail(r,
                           "disk-slow=PROBABILITY:FACTOR, FACTOR a whole number from 1 to 1000000");
    if (kind == FY_FAULT_DISK_SLOW)
        r->faults->disk_factor = (uint32_t)factor;
    return 0;
}

static int read_timed(reader *r, fy_fault_kind kind)
{
    fy_fault fault = {.kind = kind};
    bool good = faults_take(r, "=") && take_rank(r, &fault.first);
    fault.last = fault.first;
    if (good && kind == FY_FAULT_CUT)
        good = faults_take(r, "-") && take_rank(r, &fault.last) && fault.first <= fault.last;
    good = good && faults_take(r, "@") && take_time(r, &fault.at_ns);
    if (good && kind != FY_FAULT_DIE)
        good = faults_take(r, ":") && take_time(r, &fault.for_ns);
    if (!good)
        return faults_fail_rank(r, kind == FY_FAULT_STOP  ? "stop=RANK@TIME:TIME"
                                   : kind == FY_FAULT_DIE ? "die=RANK@TIME"
                                                          : "cut=FIRST-LAST@TIME:TIME");
    return add_timed(r->faults, fault);
}

static int read_slow(reader *r)
{
    fy_slow slow;
    uint64_t factor;
    if (!take_rank(r, &slow.rank) || !faults_take(r, ":") || !take_number(r, FACTOR_MAX, &factor) ||
        factor == 0)
        return faults_fail_rank(r, "slow=RANK:FACTOR");
    slow.factor = (int)factor;
    return add_slow(r->faults, slow);
}

static int read_ring(reader *r)
{
    uint64_t slots;
    if (!take_number(r, 1 << 20, &slots) || slots == 0)
        return faults_fail(r, "ring=SLOTS");
    r->faults->ring_slots = (uint32_t)slots;
    return 0;
}

static int read_starve(reader *r)
{
    int rank;
    if (!take_rank(r, &rank))
        return faults_fail_rank(r, "starve=RANK");
    r->faults->starved_plus_1 = rank + 1;
    return 0;
}

/* A number of any size up to `max`, small ones as likely as big ones. */
static uint64_t spread(fy_random *random, uint64_t min, uint64_t max)
{
    unsigned doublings = 0;
    while (min << doublings < max && doublings < 40)
        doublings++;
    uint64_t base = min << fy_random_below(random, doublings + 1);
    uint64_t value = base + fy_random_below(random, base);
    return value < max ? value : max;
}

static int random_timed(fy_faults *faults, fy_random *random, fy_fault_kind kind, int ranks,
                        uint64_t latency_ns)
{
    fy_fault fault = {.kind = kind};
    fault.first = (int)fy_random_below(random, (uint64_t)ranks);
    fault.last = fault.first;
    if (kind == FY_FAULT_CUT)
        fault.last += (int)fy_random_below(random, (uint64_t)(ranks - fault.first));
    fault.at_ns = spread(random, latency_ns, latency_ns * 100000);
    fault.for_ns = spread(random, latency_ns * 10, latency_ns * 100000);
    return add_timed(faults, fault);
}

/* Faults of disks. Reads fail so rarely that the store can read again. */
static void choose_disk(fy_faults *faults, fy_random *random, uint64_t classes)
{
    const uint64_t reads_max = 1000;
    if ((classes & 512) != 0)
        faults->odds[FY_FAULT_DISK_FULL] = (uint32_t)spread(random, 1000, 500000);
    if ((classes & 1024) != 0) {
        faults->odds[FY_FAULT_DISK_SLOW] = (uint32_t)spread(random, 1000, 500000);
        faults->disk_factor = (uint32_t)spread(random, 2, 1000);
    }
    if ((classes & 2048) != 0)
        faults->odds[FY_FAULT_DISK_ERROR] = (uint32_t)spread(random, 100, reads_max);
    if ((classes & 4096) != 0)
        faults->odds[FY_FAULT_DISK_DAMAGE] = (uint32_t)spread(random, 100, reads_max);
}

/* Each class of faults with probability one half. With `all` also those after which a program may
 * fail: deaths and refused memory. */
static int faults_choose(fy_faults *faults, int ranks, uint64_t latency_ns, bool all)
{
    fy_random random;
    fy_random_init(&random, faults->seed, STREAM_PLAN);
    uint64_t classes = fy_random_next(&random);
    int error = 0;
    if ((classes & 1) != 0)
        faults->odds[FY_FAULT_DROP] = (uint32_t)spread(&random, 1000, 200000);
    if ((classes & 2) != 0)
        faults->odds[FY_FAULT_DUP] = (uint32_t)spread(&random, 1000, 200000);
    if ((classes & 4) != 0) {
        faults->odds[FY_FAULT_DELAY] = (uint32_t)spread(&random, 1000, 500000);
        faults->delay_max_ns = spread(&random, latency_ns, latency_ns * 10000);
    }
    if ((classes & 8) != 0)
        faults->ring_slots = (uint32_t)spread(&random, 1, 16);
    for (uint64_t i = (classes & 16) != 0 ? 1 + fy_random_below(&random, 3) : 0; i > 0; i--)
        error =
            error != 0 ? error : random_timed(faults, &random, FY_FAULT_STOP, ranks, latency_ns);
    if (error == 0 && (classes & 32) != 0)
        error = random_timed(faults, &random, FY_FAULT_CUT, ranks, latency_ns);
    if (error == 0 && (classes & 64) != 0)
        error = add_slow(faults, (fy_slow){(int)fy_random_below(&random, (uint64_t)ranks),
                                           (int)spread(&random, 2, 1000)});
    if (all && (classes & 128) != 0)
        faults->odds[FY_FAULT_NOMEM] = (uint32_t)spread(&random, 100, 100000);
    if (error == 0 && all && ranks > 1 && (classes & 256) != 0)
        error = random_timed(faults, &random, FY_FAULT_DIE, ranks, latency_ns);
    choose_disk(faults, &random, classes);
    return error;
}

/* From one refusal in ten thousand allocations to one in fifty. */
static int choose_malloc(fy_faults *faults)
{
    fy_random random;
    fy_random_init(&random, faults->seed, STREAM_MALLOC_ODDS);
    faults->odds[FY_FAULT_MALLOC] = (uint32_t)spread(&random, 100, 20000);
    return 0;
}

/* Reads fail so often that the store gives up some objects. */
static int choose_unreadable(fy_faults *faults)
{
    fy_random random;
    fy_random_init(&random, faults->seed, STREAM_UNREADABLE);
    faults->odds[FY_FAULT_DISK_ERROR] = (uint32_t)spread(&random, 1000, 500000);
    faults->odds[FY_FAULT_DISK_DAMAGE] = (uint32_t)spread(&random, 1000, 500000);
    return 0;
}

static int read_item(reader *r, uint64_t latency_ns)
{
    if (faults_take(r, "random-all"))
        return faults_choose(r->faults, r->ranks, latency_ns, true);
    if (faults_take(r, "random-malloc"))
        return choose_malloc(r->faults);
    if (faults_take(r, "random-disk"))
        return choose_unreadable(r->faults);
    if (faults_take(r, "random"))
        return faults_choose(r->faults, r->ranks, latency_ns, false);
    if (faults_take(r, "drop"))
        return read_class(r, FY_FAULT_DROP);
    if (faults_take(r, "dup"))
        return read_class(r, FY_FAULT_DUP);
    if (faults_take(r, "delay"))
        return read_class(r, FY_FAULT_DELAY);
    if (faults_take(r, "nomem"))
        return read_class(r, FY_FAULT_NOMEM);
    if (faults_take(r, "malloc"))
        return read_class(r, FY_FAULT_MALLOC);
    if (faults_take(r, "disk-full"))
        return read_class(r, FY_FAULT_DISK_FULL);
    if (faults_take(r, "disk-error"))
        return read_class(r, FY_FAULT_DISK_ERROR);
    if (faults_take(r, "disk-damage"))
        return read_class(r, FY_FAULT_DISK_DAMAGE);
    if (faults_take(r, "disk-slow"))
        return read_class(r, FY_FAULT_DISK_SLOW);
    if (faults_take(r, "stop"))
        return read_timed(r, FY_FAULT_STOP);
    if (faults_take(r, "die"))
        return read_timed(r, FY_FAULT_DIE);
    if (faults_take(r, "cut"))
        return read_timed(r, FY_FAULT_CUT);
    if (faults_take(r, "slow="))
        return read_slow(r);
    if (faults_take(r, "ring="))
        return read_ring(r);
    if (faults_take(r, "starve="))
        return read_starve(r);
    return faults_fail(
        r, "drop, dup, delay, nomem, malloc, starve, disk-full, disk-error, disk-damage, "
           "disk-slow, stop, die, cut, slow, ring, random, random-all, random-malloc or "
           "random-disk");
}

static int read_plan(reader *r, uint64_t latency_ns)
{
    while (*r->at != '\0') {
        r->item = r->at;
        int error = *r->at == '\n' ? 0 : read_item(r, latency_ns);
        if (error != 0)
            return error;
        if (*r->at != ',' && *r->at != '\n' && *r->at != '\0')
            return faults_fail(r, "a comma or the end after it");
        r->at += *r->at != '\0';
    }
    return 0;
}

static int read_file(const char *name, char **text)
{
    FILE *file = fopen(name, "r");
    if (file == NULL)
        return fy_error_set(FERRY_ESYSTEM, "cannot open the fault plan \"%s\": %s", name,
                            strerror(errno));
    size_t bytes = 0, capacity = 0;
    int error = 0;
    *text = NULL;
    while (error == 0 && !feof(file)) {
        if (bytes + 1 >= capacity) {
            capacity = capacity * 2 + 4096;
            bool fits = capacity <= FILE_BYTES_MAX;
            char *bigger = fits ? realloc(*text, capacity) : NULL;
            if (bigger == NULL) {
                error = fits ? fy_error_set(FERRY_ENOMEM, "fault plan \"%s\": no memory", name)
                             : fy_error_set(FERRY_EINVAL, "fault plan \"%s\": longer than %d MiB",
                                            name, FILE_BYTES_MAX >> 20);
                break;
            }
            *text = bigger;
        }
        bytes += fread(*text + bytes, 1, capacity - bytes - 1, file);
        if (ferror(file))
            error = fy_error_set(FERRY_ESYSTEM, "fault plan \"%s\": %s", name, strerror(errno));
    }
    fclose(file);
    if (error != 0)
        free(*text);
    else
        (*text)[bytes] = '\0';
    return error;
}

static int decision_compare(const void *a, const void *b)
{
    const fy_decision *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

int fy_faults_open(const char *text, uint64_t seed, int ranks, uint64_t latency_ns,
                   fy_faults *faults)
{
    *faults = (fy_faults){.seed = seed};
    char *from_file = NULL;
    if (text == NULL)
        return 0;
    if (text[0] == '@') {
        int error = read_file(text + 1, &from_file);
        if (error != 0)
            return error;
        text = from_file;
    }
    reader r = {.item = text, .at = text, .ranks = ranks, .faults = faults};
    int error = read_plan(&r, latency_ns > 0 ? latency_ns : 1);
    free(from_file);
    if (error != 0) {
        fy_faults_fini(faults);
        return error;
    }
    if (faults->named.count > 0)
        qsort(faults->named.items, faults->named.count, sizeof(*faults->named.items),
              decision_compare);
    return 0;
}
