/* Objects and requests. Each message has a watch: it is handled once, where it should be, no
 * earlier than one that the same rank sent before it, and its track tells the truth. */
#include "mixed.h"

size_t draw_size(uint64_t *random)
{
    static const uint64_t bounds[] = {64, 2000, 9000, 70000, 300000, (1 << 20) + 1};
    return one_in(random, 3) ? 0 : (size_t)draw(random, bounds[draw(random, t->plan.sizes)]);
}

static unsigned char byte_of(uint64_t seed)
{
    return (unsigned char)(seed * 31 + (seed >> 32));
}

/* Data of a message, which its watch keeps until the next round. Some is in the shared heap. */
unsigned char *draw_data(ferry *f, watch *w, uint64_t seed, size_t size_bytes)
{
    account *a = ferry_user_data(f);
    w->is_shared = one_in(&a->random, 3) && ferry_alloc(f, size_bytes + 1, &w->data) == 0;
    if (!w->is_shared)
        w->data = malloc(size_bytes + 1);
    if (w->data == NULL)
        abort();
    memset(w->data, byte_of(seed), size_bytes);
    return w->data;
}

/* Frees what is not in the shared heap, of a rank that has left. */
void watches_free(int rank)
{
    rank_truth *p = &t->places[rank];
    for (unsigned i = 0; i < atomic_load(&p->watch_count); i++)
        if (!p->watches[i].is_shared)
            free(p->watches[i].data);
}

void watches_clear(ferry *f)
{
    rank_truth *p = mine(f);
    for (unsigned i = 0; i < atomic_load(&p->watch_count); i++) {
        watch *w = &p->watches[i];
        if (w->is_shared)
            must(f, ferry_free(f, w->data), "free");
        else
            free(w->data);
        w->data = NULL;
    }
    atomic_store(&p->watch_count, 0);
    ((account *)ferry_user_data(f))->generation++;
}

void check_data(ferry *f, const ferry_message *message, uint64_t seed)
{
    const unsigned char *bytes = message->data;
    size_t size_bytes = message->size_bytes;
    for (size_t i = 0; i < size_bytes; i += i < 64 || i + 64 > size_bytes ? 1 : 61)
        if (bytes[i] != byte_of(seed))
            wrong(f, "data differ", seed, i);
}

int draw_rank(ferry *f, account *a)
{
    int ranks = ferry_ranks(f), first = (int)draw(&a->random, (uint64_t)ranks);
    for (int i = 0; i < ranks; i++) {
        int rank = (first + i) % ranks;
        if (atomic_load(&t->places[rank].here) &&
            (rank == ferry_rank(f) || !ferry_peer_is_gone(f, rank)))
            return rank;
    }
    return -1;
}

/* Watches. */

watch *watch_begin(ferry *f, watch_kind kind, int target)
{
    account *a = ferry_user_data(f);
    rank_truth *p = mine(f);
    unsigned count = atomic_load(&p->watch_count);
    if (count == WATCHES)
        return NULL;
    watch *w = &p->watches[count];
    atomic_store(&w->flags, 0);
    atomic_store(&w->handled, 0);
    w->data = NULL;
    w->is_shared = false;
    w->kind = kind;
    w->source = ferry_rank(f);
    w->target = target;
    w->generation = a->generation;
    atomic_store(&p->watch_count, count + 1);
    return w;
}

uint64_t watch_name(const watch *w)
{
    uint64_t index = (uint64_t)(w - t->places[w->source].watches);
    return (uint64_t)w->generation << 32 | (uint64_t)w->source << 16 | index;
}

/* Whether an error is true of a message, which was refused or failed. */
static bool is_true(const watch *w, int error)
{
    if (has(DEATHS))
        return (error == FERRY_ECANCELED && w->kind == TO_ELEMENT) || error == FERRY_EPEER ||
               error == FERRY_ENOENT || error == FERRY_ENOMEM;
    switch (w->kind) {
    case TO_OBJECT:
        return error == FERRY_ENOENT && atomic_load(&t->objects[w->target].ended);
    case TO_RANK:
        return error == FERRY_EPEER && is_leaving(w->target);
    case TO_ALL:
        return error == FERRY_EPEER && has(LEAVES);
    case TO_ELEMENT: /* one that waits ends with its collection, whose home may leave then */
        return (error == FERRY_ENOENT && atomic_load(&t->elements[w->target].removed)) ||
               ((error == FERRY_ECANCELED || (error == FERRY_EPEER && has(LEAVES))) &&
                !atomic_load(&t->elements[w->target].inserted));
    }
    return false;
}

static void end(ferry *f, watch *w, unsigned how, int error)
{
    unsigned before = atomic_fetch_or(&w->flags, how);
    if (ferry_rank(f) != w->source)
        wrong(f, "an end was reported elsewhere", (uint64_t)w->source, 0);
    if (before & ENDED)
        wrong(f, "a message ended twice", before, how);
    if (how == COMPLETED && !(before & ARRIVAL) && w->kind != TO_ALL &&
        atomic_load(&w->handled) == 0)
        wrong(f, "a message completed that was not handled", w->kind, (uint64_t)w->target);
    bool cancelled = (before & CANCELLED) != 0 || is_leaving(w->source);
    if (how == FAILED && error == FERRY_ECANCELED && cancelled)
        atomic_fetch_or(&w->flags, GIVEN_UP);
    else if (how == FAILED && error == FERRY_ENOMEM && w->kind == TO_ALL)
        must(f, has(DEATHS) ? 0 : error, "a rank that passes a broadcast on");
    else if (how == FAILED && !is_true(w, error))
        wrong(f, "a message failed otherwise", w->kind, (uint64_t)-error);
    else if (how == FAILED && !has(DEATHS) && w->kind != TO_ALL && atomic_load(&w->handled) != 0)
        wrong(f, "a message failed that was handled", w->kind, (uint64_t)-error);
    atomic_fetch_add(&t->ended, 1);
}

static void on_completed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    if (receipt->error != 0)
        wrong(f, "completed with an error", (uint64_t)-receipt->error, 0);
    end(f, arg, COMPLETED, 0);
}

static void on_failed(ferry *f, void *arg, const ferry_receipt *receipt)
{
    end(f, arg, FAILED, receipt->error);
}

static void on_timed_out(ferry *f, void *arg, const ferry_receipt *receipt)
{
    (void)receipt;
    end(f, arg, GIVEN_UP, 0);
}

ferry_track watch_track(ferry *f, watch *w, bool *tracked)
{
    account *a = ferry_user_data(f);
    ferry_track track = FERRY_TRACK_DEFAULTS;
    *tracked = one_in(&a->random, t->plan.track_one_in);
    track.completed = on_completed;
    track.failed = on_failed;
    track.timed_out = on_timed_out;
    track.completed_arg = track.failed_arg = track.timed_out_arg = w;
    track.arrival = one_in(&a->random, 3);
    if (one_in(&a->random, t->plan.cancel_one_in))
        track.timeout_ns = 1 + draw(&a->random, 200000);
    for (int i = 0; *tracked && i < OPS && one_in(&a->random, 2); i++)
        if (a->ops[i].w == NULL) {
            a->ops[i].w = w;
            track.op = &a->ops[i].op;
            break;
        }
    atomic_fetch_or(&w->flags,
                    SENT | (*tracked ? TRACKED : 0u) | (*tracked && track.arrival ? ARRIVAL : 0u));
    return track;
}

/* Notes how the call that sent the message returned. */
void watch_sent(ferry *f, watch *w, int error)
{
    account *a = ferry_user_data(f);
    if (error == 0)
        return;
    for (int i = 0; i < OPS; i++)
        if (a->ops[i].w == w)
            a->ops[i] = (waited){0};
    bool successor_unknown = error == FERRY_EPEER && has(LEAVES) && atomic_load(&mine(f)->joined);
    if (error != FERRY_EAGAIN && !successor_unknown && !is_true(w, error))
        must(f, error, "send");
    unsigned before = atomic_fetch_and(&w->flags, ~(unsigned)(SENT | TRACKED));
    bool may_be_handled = w->kind == TO_ALL && error == FERRY_ENOMEM;
    if ((before & ENDED) != 0 || (atomic_load(&w->handled) != 0 && !may_be_handled))
        wrong(f, "a message was refused, and ended or handled", w->kind, (uint64_t)-error);
    atomic_fetch_add(&t->refused, 1);
}

/* The watch of a message that is handled here. */
watch *watch_handled(ferry *f, const ferry_message *message, watch_kind kind)
{
    uint64_t name = message->words[0];
    int source = (int)(name >> 16 & 0xffff);
    if (source >= RANKS_MAX || (name & 0xffff) >= WATCHES)
        wrong(f, "no such message", name, 0);
    watch *w = &t->places[source].watches[name & 0xffff];
    if (w->generation != name >> 32) {
        if (!has(DEATHS) || !ferry_peer_is_gone(f, source))
            wrong(f, "a message of an earlier round", w->generation, name >> 32);
        return NULL;
    }
    unsigned bit = 1u << ferry_rank(f), before = atomic_fetch_or(&w->handled, bit);
    if (w->kind != kind || (before & (kind == TO_ALL ? bit : ~0u)) != 0)
        wrong(f, "a message was handled twice, or elsewhere", w->kind, (uint64_t)w->target);
    atomic_fetch_add(&t->handled, 1);
    return w;
}

/* Takes ends of operations: of all, or of one at random, which it may give up instead. */
void ops_take(ferry *f, account *a, bool all)
{
    for (int i = 0; i < OPS; i++) {
        waited *x = &a->ops[i];
        if (x->w == NULL || (!all && !one_in(&a->random, OPS)))
            continue;
        watch *w = x->w;
        if (!all && one_in(&a->random, t->plan.cancel_one_in)) {
            atomic_fetch_or(&w->flags, CANCELLED);
            must(f, ferry_op_cancel(f, &x->op), "cancel");
        } else {
            bool waits = all || (w->kind != TO_ELEMENT && one_in(&a->random, 4));
            int error = waits ? ferry_op_wait(f, &x->op) : ferry_op_test(f, &x->op);
            if (error == FERRY_EAGAIN)
                continue;
            if (error == FERRY_ESTATE || error == FERRY_EINVAL)
                must(f, error, "op");
            unsigned flags = atomic_load(&w->flags);
            if ((flags & ENDED) == 0 || (error == 0) != ((flags & COMPLETED) != 0))
                wrong(f, "an operation's end differs from its event", flags, (uint64_t)-error);
        }
        *x = (waited){0};
    }
}

/* Whether a message that was not handled may not have been. */
static bool may_be_lost(const watch *w, unsigned flags, bool at_end)
{
    if (has(DEATHS) || (flags & (FAILED | GIVEN_UP)) != 0)
        return true;
    switch (w->kind) {
    case TO_OBJECT:
        return atomic_load(&t->objects[w->target].ended);
    case TO_RANK:
        return is_leaving(w->target);
    case TO_ALL:
        return has(JOINS) || has(LEAVES) || atomic_load(&t->living) == 1;
    case TO_ELEMENT:
        return at_end || atomic_load(&t->elements[w->target].removed) ||
               !atomic_load(&t->elements[w->target].inserted);
    }
    return false;
}

/* After a quiescence: all that the rank has sent has been handled and has ended. With `at_end`
 * only messages to elements count, of a collection that has ended. */
void check_watches(ferry *f, int rank, bool at_end)
{
    rank_truth *p = &t->places[rank];
    for (unsigned i = 0; i < atomic_load(&p->watch_count); i++) {
        watch *w = &p->watches[i];
        unsigned flags = atomic_load(&w->flags);
        bool waits =
            w->kind == TO_ELEMENT && !at_end && !atomic_load(&t->elements[w->target].inserted);
        if ((flags & SENT) == 0 || (at_end && w->kind != TO_ELEMENT))
            continue;
        if ((flags & TRACKED) != 0 && (flags & ENDED) == 0 && !waits)
            wrong(f, "a tracked message has no end", w->kind, (uint64_t)w->target);
        if (atomic_load(&w->handled) == 0 && !may_be_lost(w, flags, at_end))
            wrong(f, "a message was not handled", w->kind, (uint64_t)w->target);
    }
}

/* Sending. */

static int32_t tag_of(unsigned number)
{
    return number == TAG_COUNT - 1 ? FERRY_ANY_TAG : (int32_t)number;
}

static unsigned draw_stream(account *a, int from)
{
    return (unsigned)from + (has(TAGS) ? 2 * (unsigned)draw(&a->random, TAG_COUNT) : 0);
}

/* Sends one message: the same for all kinds. `s` numbers what goes to one target. */
static int send_one(ferry *f, unsigned which, watch *w, stream *s, uint64_t hops)
{
    account *a = ferry_user_data(f);
    size_t size_bytes = draw_size(&a->random);
    bool tracked;
    if (atomic_fetch_add(&t->bytes, size_bytes + 64) > t->plan.bytes_max)
        size_bytes = 0;
    uint64_t name = watch_name(w);
    unsigned number = s == NULL ? 0 : atomic_load(&s->sent);
    unsigned char *data = draw_data(f, w, name, size_bytes);
    const ferry_message message = {.handler = w->kind == TO_OBJECT ? a->message : a->request,
                                   .word_count = (uint8_t)(3 + draw(&a->random, 2)),
                                   .words = {name, (uint64_t)number * STREAMS + which, hops},
                                   .tag = tag_of(which / 2),
                                   .data = data,
                                   .size_bytes = size_bytes};
    ferry_track track = watch_track(f, w, &tracked);
    track.submitted = NULL;
    const ferry_track *by = tracked ? &track : NULL;
    int error;
    if (w->kind == TO_OBJECT) {
        ferry_object object = {atomic_load(&t->objects[w->target].word)};
        error = ferry_object_send(f, object, &message, by);
    } else if (w->kind == TO_RANK) {
        error = ferry_request_send(f, w->target, &message, by);
    } else {
        error = ferry_request_broadcast(f, &message, by);
    }
    if (error == 0 && s != NULL)
        atomic_store(&s->sent, number + 1);
    watch_sent(f, w, error);
    return error;
}

int send_object(ferry *f, int from, uint64_t hops)
{
    account *a = ferry_user_data(f);
    int count = atomic_load(&t->object_count);
    if (count > OBJECTS_MAX)
        count = OBJECTS_MAX;
    if (count == 0)
        return 0;
    int object = (int)draw(&a->random, (uint64_t)count);
    watch *w =
        atomic_load(&t->objects[object].word) == 0 ? NULL : watch_begin(f, TO_OBJECT, object);
    unsigned which = draw_stream(a, from);
    return w == NULL ? 0 : send_one(f, which, w, &mine(f)->to_object[which][object], hops);
}

int send_request(ferry *f, int from, uint64_t hops)
{
    account *a = ferry_user_data(f);
    int rank = draw_rank(f, a);
    watch *w = rank < 0 ? NULL : watch_begin(f, TO_RANK, rank);
    unsigned which = draw_stream(a, from);
    return w == NULL ? 0 : send_one(f, which, w, &mine(f)->to_rank[which][rank], hops);
}

void send_broadcast(ferry *f, int from)
{
    watch *w = watch_begin(f, TO_ALL, 0);
    if (w != NULL)
        (void)send_one(f, draw_stream(ferry_user_data(f), from), w, NULL, 0);
}

/* Handlers start messages and transfers here. */
void answer(ferry *f, uint64_t hops)
{
    account *a = ferry_user_data(f);
    uint64_t count = hops == 0 ? 0 : draw(&a->random, t->plan.fan + 1);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t what = draw(&a->random, 6);
        if (what < 2 && has(OBJECTS))
            (void)send_object(f, FROM_HANDLER, hops - 1);
        else if (what < 4 && has(REQUESTS))
            (void)send_request(f, FROM_HANDLER, hops - 1);
        else if (what == 4 && has(MEMORY))
            memory_act(f, a, FROM_HANDLER);
        else if (what == 5 && has(CELLS))
            cell_act(f, a, FROM_HANDLER);
    }
}

/* Handling. */

static void check_order(ferry *f, stream *s, uint64_t word)
{
    unsigned number = (unsigned)(word / STREAMS);
    if (number < atomic_load(&s->seen))
        wrong(f, "a message was overtaken", number, atomic_load(&s->seen));
    atomic_store(&s->seen, number + 1);
}

static void object_leave(ferry *f, account *a, ferry_object object, uint64_t index)
{
    if (one_in(&a->random, t->plan.end_one_in)) {
        atomic_store(&t->objects[index].ended, true);
        must(f, ferry_object_destroy(f, object), "destroy");
        return;
    }
    int rank = one_in(&a->random, t->plan.move_one_in) ? draw_rank(f, a) : -1;
    if (rank < 0)
        return;
    int error = ferry_object_move(f, object, rank);
    atomic_fetch_add(&t->moves, error == 0);
    bool may_be = has(DEATHS) || is_leaving(rank) || atomic_load(&t->places[rank].comes) ||
                  atomic_load(&mine(f)->comes);
    bool may_lack = error == FERRY_ENOMEM && has(DEATHS);
    if (error != 0 && !may_lack && (error != FERRY_EPEER || !may_be))
        must(f, error, "move");
}

static void on_message(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    account *a = ferry_user_data(f);
    const thing *x = data;
    watch *w = watch_handled(f, message, TO_OBJECT);
    uint64_t index = x->index;
    unsigned which = message->words[1] % STREAMS;
    tags_check(f, message);
    if (atomic_load(&t->objects[index].is_carried))
        wrong(f, "an object that is carried got a message", index, 0);
    if (w != NULL && (w->target != (int)index || w->source != source))
        wrong(f, "a message to another object", index, (uint64_t)w->target);
    if (atomic_load(&t->objects[index].ended))
        wrong(f, "an object that has ended got a message", index, 0);
    for (uint64_t i = 0; i < x->size_bytes; i++)
        if (x->ballast[i] != (unsigned char)index)
            wrong(f, "the object differs", index, i);
    check_order(f, &t->places[source].to_object[which][index], message->words[1]);
    check_data(f, message, message->words[0]);
    if (one_in(&a->random, 4))
        ferry_compute(f, (double)draw(&a->random, 3000) * 1e-9);
    answer(f, message->words[2]);
    object_leave(f, a, object, index);
}

static void on_request(ferry *f, int source, const ferry_message *message)
{
    unsigned which = message->words[1] % STREAMS;
    bool to_all = t->places[source].watches[(message->words[0] & 0xffff) % WATCHES].kind == TO_ALL;
    watch *w = watch_handled(f, message, to_all ? TO_ALL : TO_RANK);
    tags_check(f, message);
    if (w != NULL && (w->source != source || (!to_all && w->target != ferry_rank(f))))
        wrong(f, "a request to another rank", (uint64_t)source, (uint64_t)w->target);
    if (!to_all)
        check_order(f, &t->places[source].to_rank[which][ferry_rank(f)], message->words[1]);
    check_data(f, message, message->words[0]);
    answer(f, message->words[2]);
}

/* Main programs create, move and end objects. */

void object_create(ferry *f, account *a)
{
    int index = atomic_fetch_add(&t->object_count, 1);
    uint64_t size_bytes = one_in(&a->random, 3) ? draw(&a->random, 30000) : 0;
    ferry_object object;
    if (index >= OBJECTS_MAX) {
        atomic_store(&t->object_count, OBJECTS_MAX);
        return;
    }
    thing *x = malloc(sizeof *x + size_bytes);
    if (x == NULL)
        abort();
    *x = (thing){.index = (uint64_t)index, .size_bytes = size_bytes};
    memset(x->ballast, index, size_bytes);
    must(f, ferry_object_create(f, a->type, x, &object), "create");
    if (has(BALANCE) && one_in(&a->random, 2))
        must(f, ferry_balance_add(f, object, NULL), "balance_add");
    atomic_store(&t->objects[index].word, object.word);
}

void object_act(ferry *f, account *a)
{
    int index = (int)draw(&a->random, OBJECTS_MAX);
    ferry_object object = {atomic_load(&t->objects[index].word)};
    if (one_in(&a->random, 4)) {
        object_create(f, a);
    } else if (object.word != 0 && ferry_object_data(f, object) != NULL) {
        object_leave(f, a, object, (uint64_t)index);
    } else {
        (void)send_object(f, FROM_MAIN, t->plan.hops);
    }
}

static size_t packed_size(ferry *f, const void *data)
{
    (void)f;
    return sizeof(thing) + ((const thing *)data)->size_bytes;
}

void messages_open(ferry *f, account *a)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "thing", .packed_size = packed_size};
    must(f, ferry_object_type_register(f, &ops, &a->type), "type");
    must(f, ferry_object_handler_register(f, "message", on_message, &a->message), "handler");
    must(f, ferry_handler_register(f, "request", on_request, &a->request), "handler");
}
