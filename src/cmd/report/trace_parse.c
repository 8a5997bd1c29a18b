#include "cmd/report/trace.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 256 };

/* The state of reading one file. */
typedef struct reader {
    const char *at, *end; /* the rest of the line; the end of the line */
    const char *name;
    size_t line;
    char *error;
    trace_rank *out;
    bool timed, ended; /* the lines "time" and "end" were read */
} reader;

static __attribute__((format(printf, 2, 3))) bool wrong(reader *r, const char *format, ...)
{
    int used = snprintf(r->error, TRACE_ERROR_BYTES, "%s:%zu: ", r->name, r->line);
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && used < TRACE_ERROR_BYTES)
        (void)vsnprintf(r->error + used, TRACE_ERROR_BYTES - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

/* Reads the next word of the line; at its end an empty word. */
static void next_word(reader *r, char word[WORD_BYTES])
{
    size_t length = 0;
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    for (; r->at < r->end && *r->at != ' '; r->at++)
        if (length < WORD_BYTES - 1)
            word[length++] = *r->at;
    word[length] = '\0';
}

static bool take_number(reader *r, const char *what, uint64_t max, uint64_t *out)
{
    char word[WORD_BYTES];
    next_word(r, word);
    uint64_t number = 0;
    bool fits = word[0] != '\0';
    for (const char *c = word; *c != '\0' && fits; c++) {
        fits = *c >= '0' && *c <= '9' && number <= (UINT64_MAX - (uint64_t)(*c - '0')) / 10;
        number = number * 10 + (uint64_t)(*c - '0');
    }
    if (!fits || number > max)
        return wrong(r, "\"%s\": expected %s, a whole number up to %llu", word, what,
                     (unsigned long long)max);
    *out = number;
    return true;
}

static bool take_int(reader *r, const char *what, int max, int *out)
{
    uint64_t number;
    if (!take_number(r, what, (uint64_t)max, &number))
        return false;
    *out = (int)number;
    return true;
}

static bool take_name(reader *r, uint64_t *out)
{
    char word[WORD_BYTES], *end;
    next_word(r, word);
    *out = strtoull(word, &end, 16);
    if (strlen(word) != 16 || *end != '\0' || strspn(word, "0123456789abcdef") != 16)
        return wrong(r, "\"%s\": expected an object, 16 hexadecimal digits", word);
    return true;
}

static bool take_load(reader *r, double *out)
{
    char word[WORD_BYTES], *end;
    next_word(r, word);
    *out = strtod(word, &end);
    if (word[0] == '\0' || *end != '\0' || !isfinite(*out))
        return wrong(r, "\"%s\": expected a load, a number", word);
    return true;
}

/* Gives the rest of the line. */
static bool take_text(reader *r, const char *what, char **out)
{
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    if (r->at == r->end)
        return wrong(r, "expected %s after the first word", what);
    if (*out != NULL)
        return wrong(r, "%s for the second time; expected it once", what);
    *out = strndup(r->at, (size_t)(r->end - r->at));
    r->at = r->end;
    return *out != NULL || wrong(r, "no memory for %s", what);
}

/* The array with room for one more element than `count`. NULL: no memory. */
static void *trace_grow(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0)
        return array;
    return realloc(array, (count == 0 ? 1 : count * 2) * size);
}

static bool read_rank(reader *r)
{
    trace_rank *t = r->out;
    if (!take_int(r, "the rank", TRACE_RANKS_MAX - 1, &t->rank) ||
        !take_int(r, "the number of ranks", TRACE_RANKS_MAX, &t->ranks))
        return false;
    return t->rank < t->ranks ||
           wrong(r, "rank %d of %d: expected a rank below their number", t->rank, t->ranks);
}

static bool read_time(reader *r)
{
    trace_rank *t = r->out;
    if (!take_number(r, "the time of opening in ns", UINT64_MAX / 2, &t->open_ns) ||
        !take_number(r, "the time of closing in ns", UINT64_MAX / 2, &t->close_ns))
        return false;
    r->timed = true;
    return t->close_ns >= t->open_ns || wrong(r, "the rank closes before it opens; expected "
                                                 "\"time OPEN CLOSE\"");
}

static bool read_stat(reader *r)
{
    char word[WORD_BYTES];
    next_word(r, word);
    trace_stat *larger = trace_grow(r->out->stats, r->out->stat_count, sizeof *larger);
    if (larger == NULL)
        return wrong(r, "no memory for a stat");
    r->out->stats = larger;
    trace_stat *stat = &larger[r->out->stat_count];
    stat->name = strdup(word);
    if (stat->name == NULL)
        return wrong(r, "no memory for a stat");
    r->out->stat_count++;
    return take_number(r, "the value of the stat", UINT64_MAX, &stat->value);
}

static bool read_handler(reader *r)
{
    int index;
    return take_int(r, "the index of a handler", TRACE_HANDLERS_MAX - 1, &index) &&
           take_text(r, "the name of a handler", &r->out->handlers[index]);
}

static bool read_move(reader *r)
{
    char word[WORD_BYTES];
    trace_move move = {.asker = -1};
    if (!take_number(r, "the time of the move in ns", UINT64_MAX / 2, &move.time_ns) ||
        !take_name(r, &move.object) ||
        !take_int(r, "the rank it goes to", TRACE_RANKS_MAX - 1, &move.target))
        return false;
    next_word(r, word);
    if (strcmp(word, "task") != 0 && strcmp(word, "word") != 0 && strcmp(word, "time") != 0)
        return wrong(r, "\"%s\": expected an occasion: task, word or time", word);
    memcpy(move.occasion, word, 5);
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    if (r->end - r->at >= 3 && strncmp(r->at, "-1 ", 3) == 0)
        r->at += 3;
    else if (!take_int(r, "the rank that asked, or -1", TRACE_RANKS_MAX - 1, &move.asker))
        return false;
    if (!take_load(r, &move.load) || !take_load(r, &move.asker_load))
        return false;
    trace_move *larger = trace_grow(r->out->moves, r->out->move_count, sizeof *larger);
    if (larger == NULL)
        return wrong(r, "no memory for a move");
    r->out->moves = larger;
    larger[r->out->move_count++] = move;
    return true;
}

static bool read_choice(reader *r)
{
    char **larger = trace_grow(r->out->choices, r->out->choice_count, sizeof *larger);
    if (larger == NULL)
        return wrong(r, "no memory for a choice");
    r->out->choices = larger;
    larger[r->out->choice_count] = NULL;
    return take_text(r, "what steering chose", &larger[r->out->choice_count++]);
}

static bool read_object(reader *r)
{
    uint64_t name;
    if (!take_name(r, &name))
        return false;
    trace_object *larger = trace_grow(r->out->objects, r->out->object_count, sizeof *larger);
    if (larger == NULL)
        return wrong(r, "no memory for an object");
    r->out->objects = larger;
    trace_object *o = &larger[r->out->object_count++];
    *o = (trace_object){.object = name};
    const struct {
        uint64_t *value;
        const char *what;
    } fields[] = {{&o->handled, "messages handled"},
                  {&o->handler_ns, "ns in handlers"},
                  {&o->message_ns, "ns of delivery"},
                  {&o->pack_ns, "ns of packing"},
                  {&o->unpack_ns, "ns of unpacking"},
                  {&o->transit_ns, "ns on the way"},
                  {&o->forwarded, "messages forwarded"},
                  {&o->in, "arrivals"},
                  {&o->out, "departures"}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!take_number(r, fields[i].what, UINT64_MAX / 4096, fields[i].value))
            return false;
    return take_text(r, "the type of the object", &o->type);
}

static bool take_origin(reader *r, int32_t *out)
{
    uint64_t number;
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    bool negative = r->at < r->end && *r->at == '-';
    r->at += negative;
    if (!take_number(r, "a rank, or below 0 who sent", negative ? INT32_MAX : TRACE_RANKS_MAX - 1,
                     &number))
        return false;
    *out = negative ? -(int32_t)number : (int32_t)number;
    return true;
}

static bool read_trail(reader *r)
{
    trace_trail e = {.start_ns = 0};
    uint64_t sequence;
    if (!take_name(r, &e.object) || !take_origin(r, &e.origin) ||
        !take_number(r, "the number of a message", UINT32_MAX, &sequence) ||
        !take_number(r, e.origin < 0 ? "bytes sent" : "ns of a handler", UINT64_MAX / 4096,
                     &e.value) ||
        (e.origin >= 0 &&
         (!take_number(r, "the start of a handler in ns", UINT64_MAX / 2, &e.start_ns) ||
          !take_load(r, &e.load))))
        return false;
    e.sequence = (uint32_t)sequence;
    if (e.origin >= 0 && r->at < r->end) {
        uint64_t handler;
        if (!take_number(r, "a handler", UINT16_MAX, &handler))
            return false;
        e.handler = (uint32_t)handler;
    }
    trace_trail *larger = trace_grow(r->out->trail, r->out->trail_count, sizeof *larger);
    if (larger == NULL)
        return wrong(r, "no memory for a message");
    r->out->trail = larger;
    larger[r->out->trail_count++] = e;
    return true;
}

/* The handler of a task; 0 if the program's code ran without one. */
static bool take_handler(reader *r, uint32_t *out)
{
    enum { NONE = UINT16_MAX };
    uint64_t handler;
    if (!take_number(r, "a handler", NONE, &handler))
        return false;
    if (handler >= TRACE_HANDLERS_MAX && handler != NONE)
        return wrong(r, "handler %llu: expected at most %d, or %d for none",
                     (unsigned long long)handler, TRACE_HANDLERS_MAX - 1, NONE);
    *out = handler == NONE ? 0 : (uint32_t)handler;
    return true;
}

static bool read_stretch(reader *r, trace_kind kind)
{
    trace_rank *t = r->out;
    trace_stretch s = {.kind = kind};
    if (!r->timed)
        return wrong(r, "a stretch before the line \"time OPEN CLOSE\"; expected that first");
    if (!take_number(r, "the start in ns", t->close_ns - t->open_ns, &s.start_ns))
        return false;
    if (kind == TRACE_TASK &&
        (!take_handler(r, &s.handler) ||
         !take_number(r, "ns of processor time", UINT64_MAX / 4096, &s.cpu_ns)))
        return false;
    if (t->stretch_count > 0 && t->stretches[t->stretch_count - 1].start_ns > s.start_ns)
        return wrong(r, "starts at %llu ns, the one before at %llu; expected rising times",
                     (unsigned long long)s.start_ns,
                     (unsigned long long)t->stretches[t->stretch_count - 1].start_ns);
    trace_stretch *larger = trace_grow(t->stretches, t->stretch_count, sizeof *larger);
    if (larger == NULL)
        return wrong(r, "no memory for a stretch");
    t->stretches = larger;
    larger[t->stretch_count++] = s;
    return true;
}

static bool read_line(reader *r)
{
    static const char kinds[] = "irtm"; /* by trace_kind */
    char word[WORD_BYTES];
    trace_rank *t = r->out;
    next_word(r, word);
    const char *kind = word[0] != '\0' && word[1] == '\0' ? strchr(kinds, word[0]) : NULL;
    if (kind != NULL)
        return read_stretch(r, (trace_kind)(kind - kinds));
    if (strcmp(word, "x") == 0)
        return read_trail(r);
    if (strcmp(word, "version") == 0)
        return take_text(r, "the version", &t->version);
    if (strcmp(word, "command") == 0)
        return take_text(r, "the command", &t->command);
    if (strcmp(word, "port") == 0)
        return take_text(r, "the port", &t->port);
    if (strcmp(word, "scheduler") == 0)
        return take_text(r, "the scheduler", &t->scheduler);
    if (strcmp(word, "steer") == 0)
        return read_choice(r);
    if (strcmp(word, "rank") == 0)
        return read_rank(r);
    if (strcmp(word, "time") == 0)
        return read_time(r);
    if (strcmp(word, "stat") == 0)
        return read_stat(r);
    if (strcmp(word, "handler") == 0)
        return read_handler(r);
    if (strcmp(word, "move") == 0)
        return read_move(r);
    if (strcmp(word, "object") == 0)
        return read_object(r);
    r->ended = strcmp(word, "end") == 0;
    return r->ended ||
           wrong(r,
                 "\"%.40s\": expected version, command, rank, port, scheduler, steer, time, "
                 "stat, handler, move, object, x, i, r, t, m or end",
                 word);
}

static bool parse(reader *r, const char *text, const char *end)
{
    static const char first[] = "ferry trace 1\n";
    if ((size_t)(end - text) < sizeof first - 1 || memcmp(text, first, sizeof first - 1) != 0)
        return wrong(r, "expected the line \"ferry trace 1\"");
    text += sizeof first - 1;
    while (text < end && !r->ended) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        r->line++;
        if (stop == NULL)
            return wrong(r, "ends in the middle of a line; expected the line \"end\" at last");
        for (r->at = text; r->at < stop; r->at++)
            if ((unsigned char)*r->at < ' ')
                return wrong(r, "byte %u at column %zu; expected text", (unsigned char)*r->at,
                             (size_t)(r->at - text) + 1);
        r->at = text;
        r->end = stop;
        if (!read_line(r))
            return false;
        if (r->at != r->end)
            return wrong(r, "\"%.*s\" after the last word expected",
                         (int)(r->end - r->at > 40 ? 40 : r->end - r->at), r->at);
        text = stop + 1;
    }
    r->line++;
    if (!r->ended)
        return wrong(r, "the file ends here; expected the line \"end\" at last");
    if (text != end)
        return wrong(r, "more lines after \"end\"; expected none");
    if (r->out->ranks == 0 || !r->timed)
        return wrong(r, "no line \"%s\"; expected one",
                     r->timed ? "rank RANK RANKS" : "time OPEN CLOSE");
    return true;
}

bool trace_parse(const char *text, size_t size_bytes, const char *name, trace_rank *out,
                 char error[TRACE_ERROR_BYTES])
{
    reader r = {.name = name, .line = 1, .error = error, .out = out};
    *out = (trace_rank){.present = true};
    bool good = parse(&r, text, text + size_bytes);
    if (!good)
        trace_rank_fini(out);
    return good;
}

void trace_rank_fini(trace_rank *rank)
{
    free(rank->version);
    free(rank->command);
    free(rank->port);
    free(rank->scheduler);
    for (size_t i = 0; i < rank->choice_count; i++)
        free(rank->choices[i]);
    free(rank->choices);
    for (int i = 0; i < TRACE_HANDLERS_MAX; i++)
        free(rank->handlers[i]);
    for (size_t i = 0; i < rank->stat_count; i++)
        free(rank->stats[i].name);
    for (size_t i = 0; i < rank->object_count; i++)
        free(rank->objects[i].type);
    free(rank->stats);
    free(rank->stretches);
    free(rank->moves);
    free(rank->objects);
    free(rank->trail);
    *rank = (trace_rank){0};
}
