/* Collections: elements that are inserted, removed, sent to and moved, and a ring of elements with
 * steps. Each index has one member that inserts and removes it, so its state is known. */
#include "mixed.h"

enum { STEPS_COUNT = 5, RING = 13 };

static void on_element(ferry *f, ferry_object object, void *data, int source,
                       const ferry_message *message)
{
    account *a = ferry_user_data(f);
    const ferry_element *e = data;
    watch *w = watch_handled(f, message, TO_ELEMENT);
    (void)source;
    if (w != NULL && w->target != (int)e->index.at[0])
        wrong(f, "a message to another element", (uint64_t)w->target, (uint64_t)e->index.at[0]);
    if (*(uint64_t *)e->data != (uint64_t)e->index.at[0])
        wrong(f, "an element differs", *(uint64_t *)e->data, (uint64_t)e->index.at[0]);
    check_data(f, message, message->words[0]);
    answer(f, message->words[2]);
    int rank = one_in(&a->random, t->plan.move_one_in) ? draw_rank(f, a) : -1;
    if (rank < 0)
        return;
    int error = ferry_object_move(f, object, rank);
    if ((error != FERRY_EPEER && error != FERRY_ENOMEM) || !has(DEATHS))
        must(f, error, "move an element");
    atomic_fetch_add(&t->moves, error == 0);
}

static void send_element(ferry *f, account *a, ferry_collection *c, uint64_t hops)
{
    int index = (int)draw(&a->random, INDICES);
    watch *w = watch_begin(f, TO_ELEMENT, index);
    bool tracked;
    if (w == NULL)
        return;
    uint64_t name = watch_name(w);
    size_t size_bytes = draw_size(&a->random);
    if (atomic_fetch_add(&t->bytes, size_bytes + 64) > t->plan.bytes_max)
        size_bytes = 0;
    const ferry_message message = {.handler = a->element,
                                   .word_count = 3,
                                   .words = {name, 0, hops},
                                   .data = draw_data(f, w, name, size_bytes),
                                   .size_bytes = size_bytes};
    ferry_track track = watch_track(f, w, &tracked);
    watch_sent(
        f, w,
        ferry_collection_send(c, ferry_index_of(index, 0, 0), &message, tracked ? &track : NULL));
}

static void on_contribute(ferry *f, ferry_object object, void *data, int source,
                          const ferry_message *message)
{
    account *a = ferry_user_data(f);
    ferry_element *e = data;
    uint64_t value = (uint64_t)e->index.at[0] + 1;
    ferry_contribution what = FERRY_CONTRIBUTION_DEFAULTS;
    (void)object, (void)source;
    if (message->words[0] == 0)
        return;
    what.values = &value;
    what.count = 1;
    what.type = FERRY_UINT64;
    what.to = FERRY_REDUCED_RANKS;
    what.handler = a->reduced;
    must(f, ferry_element_contribute(e, &what), "contribute");
}

static void on_reduced(ferry *f, int source, const ferry_message *message)
{
    account *a = ferry_user_data(f);
    (void)source;
    if (message->size_bytes != sizeof a->sum || a->sum != 0)
        wrong(f, "a second result of a reduction", message->size_bytes, a->sum);
    memcpy(&a->sum, message->data, sizeof a->sum);
}

static void *make_element(ferry *f, ferry_element *element, void *arg, const void *bytes,
                          size_t size_bytes)
{
    uint64_t *data = malloc(sizeof *data);
    (void)f, (void)arg;
    if (data == NULL)
        abort();
    *data = (uint64_t)element->index.at[0];
    if (bytes != NULL && (size_bytes != 1 || *(const unsigned char *)bytes != *data))
        abort();
    return data;
}

static bool is_mine(const ferry *f, int index)
{
    int count = ferry_member_count(f);
    return index % count == ferry_member_place(f, ferry_rank(f));
}

static void insert(ferry *f, ferry_collection *c, int index)
{
    unsigned char byte = (unsigned char)index;
    atomic_store(&t->elements[index].present, true);
    atomic_store(&t->elements[index].inserted, true);
    (void)allowed(f,
                  ferry_collection_insert(c, NULL, ferry_index_of(index, 0, 0), &byte, sizeof byte),
                  "insert");
}

static void take_out(ferry *f, ferry_collection *c, int index)
{
    atomic_store(&t->elements[index].removed, true);
    atomic_store(&t->elements[index].present, false);
    int error = ferry_collection_remove(c, ferry_index_of(index, 0, 0));
    if (error != FERRY_ENOENT)
        (void)allowed(f, error, "remove");
}

static void element_act(ferry *f, account *a, ferry_collection *c)
{
    int index = (int)draw(&a->random, INDICES);
    const ferry_section some = {ferry_index_of(index / 2, 0, 0), ferry_index_of(index, 0, 0),
                                ferry_index_of(2, 0, 0)};
    const ferry_message nothing = {.handler = a->contribute, .word_count = 1};
    switch (draw(&a->random, 8)) {
    case 0:
    case 1:
        if (is_mine(f, index))
            insert(f, c, index);
        break;
    case 2:
        if (is_mine(f, index))
            take_out(f, c, index);
        break;
    case 3:
        (void)allowed(f, ferry_collection_send_section(c, &some, &nothing), "section");
        break;
    case 4:
        act(f, a);
        break;
    default:
        send_element(f, a, c, t->plan.hops);
        break;
    }
}

/* All elements give their indices: no element is lost, and none is there twice. */
static int reduce_elements(ferry *f, account *a, ferry_collection *c)
{
    const ferry_message all = {.handler = a->contribute, .word_count = 1, .words = {1}};
    uint64_t expected = 0;
    int error = allowed(f, ferry_barrier(f), "barrier");
    if (error != 0)
        return error;
    for (int i = 0; i < INDICES; i++)
        expected += atomic_load(&t->elements[i].present) ? (uint64_t)i + 1 : 0;
    a->sum = 0;
    error = allowed(f, ferry_barrier(f), "barrier");
    if (error == 0 && ferry_member_place(f, ferry_rank(f)) == 0)
        error = allowed(f, ferry_collection_send_section(c, NULL, &all), "section");
    if (error == 0)
        error = allowed(f, ferry_quiesce(f), "quiesce");
    if (error == 0 && a->sum != expected && a->deaths == 0)
        wrong(f, "the sum over all elements", a->sum, expected);
    a->sum = 0;
    return error;
}

static int play_elements(ferry *f, account *a, ferry_collection *c)
{
    uint64_t count = 2 + draw(&a->random, 40);
    for (uint64_t i = 0; i < count; i++)
        element_act(f, a, c);
    int error = allowed(f, ferry_quiesce(f), "quiesce");
    if (error != 0)
        return error;
    check_watches(f, ferry_rank(f), false);
    return reduce_elements(f, a, c);
}

/* No message waits for an element any more: the collection has ended. */
static void close_watches(ferry *f)
{
    rank_truth *p = mine(f);
    (void)ferry_poll(f); /* it reports those that waited */
    check_watches(f, ferry_rank(f), true);
    for (unsigned i = 0; i < atomic_load(&p->watch_count); i++)
        if (p->watches[i].kind == TO_ELEMENT)
            atomic_fetch_and(&p->watches[i].flags, ~(unsigned)(SENT | TRACKED));
}

/* Ends the session. A quiescence that has failed on the way leaves the check to the next. */
static int close(ferry *f, account *a, ferry_collection *c, int error)
{
    a->collection = NULL;
    int ended = allowed(f, ferry_collection_destroy(c), "collection_destroy");
    if (ended == 0)
        close_watches(f);
    return error != 0 ? error : ended;
}

/* Collective, and false on all: there is no session now. */
static int begin_session(ferry *f, bool *begun)
{
    int error = nobody_comes(f, begun);
    if (error != 0 || !*begun)
        return error;
    for (int i = 0; ferry_member_place(f, ferry_rank(f)) == 0 && i < INDICES; i++) {
        atomic_store(&t->elements[i].present, false);
        atomic_store(&t->elements[i].inserted, false);
        atomic_store(&t->elements[i].removed, false);
    }
    return allowed(f, ferry_barrier(f), "barrier");
}

int elements_session(ferry *f, account *a, uint64_t *random)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "datum", .flat_bytes = sizeof(uint64_t)};
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ferry_collection *c;
    bool begun, all = one_in(random, 2);
    options.ops = &ops;
    options.make = make_element;
    options.map = one_in(random, 2) ? FERRY_MAP_HASH : FERRY_MAP_DEFAULT;
    options.extents[0] = all ? INDICES : 0;
    int error = begin_session(f, &begun);
    if (error != 0 || !begun)
        return error;
    for (int i = 0; all && i < INDICES; i++)
        if (is_mine(f, i)) {
            atomic_store(&t->elements[i].present, true);
            atomic_store(&t->elements[i].inserted, true);
        }
    error = allowed(f, ferry_collection_create(f, &options, &c), "collection_create");
    if (error != 0)
        return error;
    a->collection = c;
    atomic_fetch_add(&t->sessions, 1);
    return close(f, a, c, play_elements(f, a, c));
}

/* Steps. */

static void send_step(ferry *f, ferry_element *e, uint64_t number)
{
    int64_t own = e->index.at[0];
    for (int side = -1; side <= 1; side += 2) {
        const ferry_message message = {.word_count = 2, .words = {(uint64_t)own, number}};
        ferry_index next = ferry_index_of((own + RING + side) % RING, 0, 0);
        (void)allowed(f, ferry_step_send(e->collection, e, next, number, &message, NULL),
                      "step_send");
    }
}

static void begin_step(ferry *f, ferry_element *e, uint64_t number)
{
    ferry_step step = FERRY_STEP_DEFAULTS;
    step.messages = 2;
    step.number = number;
    step.reduction = number != 0;
    must(f, ferry_step_next(e, &step), "step_next");
    send_step(f, e, number);
}

static void *make_stepper(ferry *f, ferry_element *element, void *arg, const void *bytes,
                          size_t size_bytes)
{
    void *data = make_element(f, element, arg, bytes, size_bytes);
    begin_step(f, element, 0);
    return data;
}

static void on_step(ferry *f, ferry_element *e, const ferry_inputs *inputs)
{
    account *a = ferry_user_data(f);
    uint64_t own = (uint64_t)e->index.at[0], sum = 0, value = own + inputs->step;
    ferry_contribution what = FERRY_CONTRIBUTION_DEFAULTS;
    for (size_t i = 0; i < inputs->count; i++) {
        sum += inputs->inputs[i].message->words[0];
        if (inputs->inputs[i].message->words[1] != inputs->step)
            wrong(f, "a message of another step", inputs->step, own);
    }
    if (inputs->count != 2 || sum != (own + 1) % RING + (own + RING - 1) % RING)
        wrong(f, "the inputs of a step differ", inputs->count, sum);
    uint64_t expected = RING * (RING - 1) / 2 + RING * (inputs->step - 1);
    if (inputs->step != 0 &&
        (inputs->reduced == NULL || *(const uint64_t *)inputs->reduced != expected))
        wrong(f, "the reduction of a step differs", inputs->step, own);
    atomic_fetch_add(&t->steps_done, 1);
    answer(f, t->plan.hops);
    if (inputs->step + 1 < STEPS_COUNT) {
        what.values = &value;
        what.count = 1;
        what.type = FERRY_UINT64;
        must(f, ferry_element_contribute(e, &what), "contribute");
        begin_step(f, e, inputs->step + 1);
    }
    int rank = one_in(&a->random, t->plan.move_one_in) ? draw_rank(f, a) : -1;
    if (rank < 0)
        return;
    int error = ferry_object_move(f, e->object, rank);
    if ((error != FERRY_EPEER && error != FERRY_ENOMEM) || !has(DEATHS))
        must(f, error, "move a stepper");
}

int steps_session(ferry *f, account *a, uint64_t *random)
{
    static const ferry_object_ops ops = {
        .size = sizeof ops, .name = "datum", .flat_bytes = sizeof(uint64_t)};
    ferry_collection_options options = FERRY_COLLECTION_OPTIONS_DEFAULTS;
    ferry_collection *c;
    bool begun;
    options.ops = &ops;
    options.make = make_stepper;
    options.step = on_step;
    options.extents[0] = RING;
    options.fixed = one_in(random, 2);
    int error = begin_session(f, &begun);
    if (error != 0 || !begun)
        return error;
    uint64_t before = atomic_load(&t->steps_done);
    error = allowed(f, ferry_barrier(f), "barrier");
    if (error == 0)
        error = allowed(f, ferry_collection_create(f, &options, &c), "collection_create");
    if (error != 0)
        return error;
    for (int i = 0; i < 3; i++)
        act(f, a);
    error = allowed(f, ferry_quiesce(f), "quiesce");
    uint64_t done = atomic_load(&t->steps_done) - before;
    if (error == 0 && !has(DEATHS) && done != RING * STEPS_COUNT)
        wrong(f, "steps were done", done, RING * STEPS_COUNT);
    if (error == 0)
        error = ferry_collection_check(c);
    if (error != FERRY_ESTATE || !has(DEATHS))
        error = allowed(f, error, "collection_check");
    return close(f, a, c, error);
}

void elements_open(ferry *f, account *a)
{
    must(f, ferry_object_handler_register(f, "element", on_element, &a->element), "handler");
    must(f, ferry_object_handler_register(f, "contribute", on_contribute, &a->contribute),
         "handler");
    must(f, ferry_handler_register(f, "reduced", on_reduced, &a->reduced), "handler");
}
