/* Parser of network files: lines of words; '#' starts a comment. Every key at most once, except
 * `pair`. Nothing is guessed: what is not understood is an error with its line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ferry/error.h>

#include "base/error.h"
#include "port/sim/net.h"

enum { WORDS_MAX = 8, LINE_BYTES = 256, FILE_BYTES_MAX = 1 << 20 };

typedef struct parser {
    const char *name;
    int line, ranks;
    fy_net *net;
    uint32_t seen; /* bits by key */
    size_t pair_capacity;
} parser;

bool fy_net_time(const char *text, uint64_t *ps, const char **end)
{
    static const struct unit {
        const char *name;
        uint64_t ps;
    } units[] = {{"ps", 1},          {"ns", 1000},          {"us", 1000000},
                 {"ms", 1000000000}, {"s", 1000000000000u}, {"", 1000}};
    const uint64_t limit = UINT64_MAX / 16;
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *at = text;
    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (whole > limit / 10)
            return false;
        whole = whole * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        at++;
        if (*at < '0' || *at > '9')
            return false;
        for (; *at >= '0' && *at <= '9'; at++) {
            if (scale >= 1000000)
                return false;
            fraction = fraction * 10 + (uint64_t)(*at - '0');
            scale *= 10;
        }
    }
    const struct unit *unit = units;
    while (strncmp(at, unit->name, strlen(unit->name)) != 0)
        unit++;
    if (whole > limit / unit->ps)
        return false;
    *ps = whole * unit->ps + fraction * unit->ps / scale;
    *end = at + strlen(unit->name);
    return true;
}

static int net_fail(const parser *p, const char *what, const char *word)
{
    return fy_error_set(FERRY_EINVAL, "%s:%d: %s: \"%s\"", p->name, p->line, what, word);
}

static int time_word(const parser *p, const char *word, uint64_t unit_ps, uint64_t *out)
{
    uint64_t ps;
    const char *end;
    if (!fy_net_time(word, &ps, &end) || *end != '\0')
        return net_fail(p, "not a time (such as 1.5us)", word);
    *out = ps / unit_ps;
    return 0;
}

static int number_word(const parser *p, const char *word, long min, long max, int *out)
{
    char *end;
    long value = strtol(word, &end, 10);
    if (end == word || *end != '\0' || *word < '0' || *word > '9' || value < min || value > max)
        return net_fail(p, "not a number in range", word);
    *out = (int)value;
    return 0;
}

/* The field of `link` called `key`; NULL when there is none. */
static uint64_t *link_field(fy_sim_link *link, const char *key, uint64_t *unit_ps)
{
    *unit_ps = 1000;
    if (strcmp(key, "latency") == 0)
        return &link->latency_ns;
    if (strcmp(key, "send") == 0)
        return &link->send_ns;
    if (strcmp(key, "receive") == 0)
        return &link->receive_ns;
    if (strcmp(key, "gap") == 0)
        return &link->gap_ns;
    *unit_ps = 1;
    return strcmp(key, "byte") == 0 ? &link->byte_ps : NULL;
}

/* The least cube of torus positions with room for all ranks. */
static void torus_default(fy_net *net, int ranks)
{
    int side = 1;
    while (side * side * side < ranks)
        side++;
    for (int axis = 0; axis < 3; axis++)
        net->extent[axis] = side;
}

static int topology(parser *p, char **words, int count)
{
    fy_net *net = p->net;
    if (count == 2 && strcmp(words[1], "flat") == 0) {
        net->topology = FY_FLAT;
        return 0;
    }
    if (count == 3 && strcmp(words[1], "nodes") == 0) {
        net->topology = FY_NODES;
        return number_word(p, words[2], 1, 1 << 20, &net->node_ranks);
    }
    if ((count != 2 && count != 5) || strcmp(words[1], "torus") != 0)
        return net_fail(p, "expected flat, nodes N, torus or torus X Y Z", words[count - 1]);
    net->topology = FY_TORUS;
    torus_default(net, p->ranks);
    for (int axis = 0; count == 5 && axis < 3; axis++) {
        int error = number_word(p, words[2 + axis], 1, 1024, &net->extent[axis]);
        if (error != 0)
            return error;
    }
    if ((long)net->extent[0] * net->extent[1] * net->extent[2] < p->ranks)
        return net_fail(p, "torus with fewer places than ranks", words[count - 1]);
    return 0;
}

static int memory(parser *p, char **words, int count)
{
    bool direct = count == 2 && strcmp(words[1], "direct") == 0;
    bool shared = direct || (count == 2 && strcmp(words[1], "shared") == 0);
    if (count != 2 || (!shared && strcmp(words[1], "private") != 0))
        return net_fail(p, "expected shared, direct or private", words[count - 1]);
    p->net->shared = shared;
    p->net->direct = direct;
    return 0;
}

/* pair SOURCE TARGET KEY TIME: starts from the link that the pair has so far. */
static int pair(parser *p, char **words, int count)
{
    fy_net *net = p->net;
    fy_net_pair new = {0};
    uint64_t unit_ps;
    if (count != 5)
        return net_fail(p, "expected pair SOURCE TARGET KEY TIME", words[count - 1]);
    int error = number_word(p, words[1], 0, (1 << 20) - 1, &new.source);
    if (error == 0)
        error = number_word(p, words[2], 0, (1 << 20) - 1, &new.target);
    if (error != 0)
        return error;
    fy_net_pair *at = NULL;
    for (size_t i = 0; i < net->pair_count; i++)
        if (net->pairs[i].source == new.source && net->pairs[i].target == new.target)
            at = &net->pairs[i];
    if (at == NULL) {
        if (net->pair_count == p->pair_capacity) {
            size_t capacity = p->pair_capacity * 2 + 8;
            fy_net_pair *pairs = realloc(net->pairs, capacity * sizeof(*pairs));
            if (pairs == NULL)
                return fy_error_set(FERRY_ENOMEM, "%s:%d: no memory", p->name, p->line);
            net->pairs = pairs;
            p->pair_capacity = capacity;
        }
        bool near = net->topology == FY_NODES &&
                    new.source / net->node_ranks == new.target / net->node_ranks;
        new.link = near ? net->near : net->far;
        at = &net->pairs[net->pair_count++];
        *at = new;
    }
    uint64_t *field = link_field(&at->link, words[3], &unit_ps);
    if (field == NULL)
        return net_fail(p, "expected latency, send, receive, gap or byte", words[3]);
    return time_word(p, words[4], unit_ps, field);
}

static int once(parser *p, uint32_t bit, const char *key)
{
    if ((p->seen & bit) != 0)
        return net_fail(p, "given twice", key);
    p->seen |= bit;
    return 0;
}

static int scalar(parser *p, char **words, int count)
{
    static const char *const keys[] = {
        "latency",      "send",     "receive",   "gap", "byte", "near.latency", "near.send",
        "near.receive", "near.gap", "near.byte", "hop", "wake", "look"};
    const char *key = words[0];
    uint32_t index = 0;
    while (index < 13 && strcmp(key, keys[index]) != 0)
        index++;
    if (index == 13)
        return net_fail(p, "unknown key", key);
    if (count != 2)
        return net_fail(p, "expected one time after", key);
    int error = once(p, 1u << index, key);
    if (error != 0)
        return error;
    uint64_t unit_ps = 1000;
    uint64_t *field = index == 10   ? &p->net->hop_ns
                      : index == 11 ? &p->net->wake_ns
                      : index == 12 ? &p->net->look_ns
                      : index >= 5  ? link_field(&p->net->near, key + 5, &unit_ps)
                                    : link_field(&p->net->far, key, &unit_ps);
    return time_word(p, words[1], unit_ps, field);
}

/* Lines that are for `ferry model` alone, in a file of `ferry calibrate`. */
static bool of_model(const char *key)
{
    static const char *const keys[] = {
        "startup",       "poll",       "switch",   "reply",        "decide",     "uninstall",
        "pack",          "unpack",     "install",  "quantum",      "task-bytes", "request-bytes",
        "message-bytes", "neighbours", "messages", "message-work", "overlap"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static int statement(parser *p, char **words, int count)
{
    int error = 0;
    if (strcmp(words[0], "topology") == 0) {
        error = once(p, 1u << 30, words[0]);
        return error != 0 ? error : topology(p, words, count);
    }
    if (strcmp(words[0], "memory") == 0) {
        error = once(p, 1u << 31, words[0]);
        return error != 0 ? error : memory(p, words, count);
    }
    if (count == 2 && of_model(words[0]))
        return 0;
    if (strcmp(words[0], "pair") == 0)
        return pair(p, words, count);
    if (p->net->pair_count > 0)
        return net_fail(p, "must come before the first pair", words[0]);
    return scalar(p, words, count);
}

static int line_parse(parser *p, char *line)
{
    char *words[WORDS_MAX], *rest = NULL;
    int count = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, " \t\r", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (count == WORDS_MAX)
            return net_fail(p, "too many words, from", word);
        words[count++] = word;
    }
    return count == 0 ? 0 : statement(p, words, count);
}

static int pair_compare(const void *a, const void *b)
{
    const fy_net_pair *x = a, *y = b;
    return x->source != y->source ? (x->source < y->source ? -1 : 1)
                                  : (x->target > y->target) - (x->target < y->target);
}

static int complete(const parser *p)
{
    if ((p->seen & 1) == 0)
        return fy_error_set(FERRY_EINVAL, "%s: no line gives the latency", p->name);
    if (p->net->topology == FY_NODES && (p->seen & 1u << 5) == 0)
        return fy_error_set(FERRY_EINVAL, "%s: nodes without near.latency", p->name);
    if (p->net->topology == FY_NODES && p->net->shared && p->ranks > p->net->node_ranks)
        return fy_error_set(FERRY_EINVAL, "%s: %d ranks on nodes of %d cannot share memory",
                            p->name, p->ranks, p->net->node_ranks);
    const fy_sim_link *link = &p->net->far;
    if (p->net->direct && (p->net->topology != FY_FLAT || p->net->pair_count > 0 ||
                           link->latency_ns > 0 || link->gap_ns > 0 || link->byte_ps > 0))
        return fy_error_set(FERRY_EINVAL,
                            "%s: with memory direct, expected topology flat, latency 0ns and "
                            "neither gap, byte nor pairs",
                            p->name);
    return 0;
}

int fy_net_parse(const char *name, const char *text, int ranks, fy_net *net)
{
    *net = (fy_net){.topology = FY_FLAT};
    parser p = {.name = name, .ranks = ranks, .net = net};
    int error = 0;
    while (*text != '\0' && error == 0) {
        char line[LINE_BYTES];
        size_t length = strcspn(text, "\n");
        p.line++;
        if (length >= sizeof(line)) {
            error = net_fail(&p, "line too long", "");
            break;
        }
        memcpy(line, text, length);
        line[length] = '\0';
        error = line_parse(&p, line);
        text += length + (text[length] == '\n');
    }
    if (error == 0)
        error = complete(&p);
    if (error != 0)
        fy_net_fini(net);
    else if (net->pair_count > 0)
        qsort(net->pairs, net->pair_count, sizeof(*net->pairs), pair_compare);
    return error;
}

int fy_net_open(const char *name, int ranks, fy_net *net)
{
    const char *preset = fy_net_preset(name, 0, NULL);
    if (preset != NULL)
        return fy_net_parse(name, preset, ranks, net);
    FILE *file = fopen(name, "r");
    if (file == NULL && errno == ENOENT && strpbrk(name, "/.") == NULL)
        return fy_error_set(FERRY_EINVAL,
                            "\"%s\" is no network; expected a file, shm, memory, "
                            "ethernet-100m, ethernet-1g, infiniband-hdr, cloud or torus",
                            name);
    if (file == NULL)
        return fy_error_set(FERRY_ESYSTEM, "cannot open the network file \"%s\": %s", name,
                            strerror(errno));
    char *text = malloc(FILE_BYTES_MAX);
    size_t bytes = text == NULL ? 0 : fread(text, 1, FILE_BYTES_MAX - 1, file);
    int error = text == NULL   ? fy_error_set(FERRY_ENOMEM, "%s: no memory", name)
                : ferror(file) ? fy_error_set(FERRY_ESYSTEM, "%s: %s", name, strerror(errno))
                : !feof(file)  ? fy_error_set(FERRY_EINVAL, "%s: longer than 1 MiB", name)
                               : 0;
    fclose(file);
    if (error == 0) {
        text[bytes] = '\0';
        error = strlen(text) == bytes ? fy_net_parse(name, text, ranks, net)
                                      : fy_error_set(FERRY_EINVAL, "%s: has a zero byte", name);
    }
    free(text);
    return error;
}
