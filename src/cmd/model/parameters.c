/* The costs of a machine: defaults, NAME VALUE lines, and the network files of `ferry
 * calibrate`. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/model/model.h"

typedef enum unit { TIME, BYTES, COUNT, NEIGHBOURS } unit;

static const struct parameter {
    const char *name;
    size_t offset;
    unit unit;
} parameters[] = {
    {"quantum", offsetof(model_parameters, quantum), TIME},
    {"poll", offsetof(model_parameters, poll), TIME},
    {"switch", offsetof(model_parameters, change), TIME},
    {"startup", offsetof(model_parameters, startup), TIME},
    {"byte", offsetof(model_parameters, byte), TIME},
    {"reply", offsetof(model_parameters, reply), TIME},
    {"decide", offsetof(model_parameters, decide), TIME},
    {"uninstall", offsetof(model_parameters, uninstall), TIME},
    {"pack", offsetof(model_parameters, pack), TIME},
    {"unpack", offsetof(model_parameters, unpack), TIME},
    {"install", offsetof(model_parameters, install), TIME},
    {"message-work", offsetof(model_parameters, message_work), TIME},
    {"overlap", offsetof(model_parameters, overlap), TIME},
    {"request-bytes", offsetof(model_parameters, request_bytes), BYTES},
    {"task-bytes", offsetof(model_parameters, task_bytes), BYTES},
    {"message-bytes", offsetof(model_parameters, message_bytes), BYTES},
    {"messages", offsetof(model_parameters, messages), COUNT},
    {"neighbours", offsetof(model_parameters, neighbours), NEIGHBOURS},
};

enum { PARAMETER_COUNT = sizeof parameters / sizeof *parameters, WORD_BYTES = 64 };

model_parameters model_parameters_default(void)
{
    return (model_parameters){.poll = 1e-6,
                              .change = 2e-6,
                              .startup = 2e-6,
                              .byte = 0.1e-9,
                              .reply = 1e-6,
                              .decide = 1e-6,
                              .uninstall = 1e-6,
                              .pack = 1e-6,
                              .unpack = 1e-6,
                              .install = 1e-6,
                              .request_bytes = 64,
                              .task_bytes = 1024,
                              .neighbours = 4};
}

static bool read_count(const char *text, double least, double *out)
{
    char *end;
    if (strspn(text, "0123456789.") != strlen(text) || *text == '\0')
        return false;
    double value = strtod(text, &end);
    if (*end != '\0' || !(value >= least) || value > 1e15)
        return false;
    *out = value;
    return true;
}

static bool unknown(const char *name, char *error)
{
    int used = snprintf(error, MODEL_ERROR_BYTES, "\"%.64s\" is not a parameter; expected", name);
    for (int i = 0; i < PARAMETER_COUNT && used > 0 && used < MODEL_ERROR_BYTES; i++)
        used += snprintf(error + used, MODEL_ERROR_BYTES - (size_t)used, "%s %s",
                         i == 0                    ? ""
                         : i + 1 < PARAMETER_COUNT ? ","
                                                   : " or",
                         parameters[i].name);
    return false;
}

bool model_parameter_set(model_parameters *p, const char *name, const char *value,
                         char error[MODEL_ERROR_BYTES])
{
    static const char *const wanted[] = {
        [TIME] = "a time with its unit, such as 2us",
        [BYTES] = "a number of bytes, 0 or more",
        [COUNT] = "a number, 0 or more",
        [NEIGHBOURS] = "a number of ranks, 1 or more",
    };
    for (int i = 0; i < PARAMETER_COUNT; i++) {
        if (strcmp(parameters[i].name, name) != 0)
            continue;
        double *out = (double *)(void *)((char *)p + parameters[i].offset);
        bool fits = parameters[i].unit == TIME
                        ? model_time_read(value, false, out)
                        : read_count(value, parameters[i].unit == NEIGHBOURS, out);
        if (!fits)
            (void)snprintf(error, MODEL_ERROR_BYTES, "%s \"%.64s\": expected %s", name, value,
                           wanted[parameters[i].unit]);
        return fits;
    }
    return unknown(name, error);
}

/* In a network file `startup` is the sum of three lines. Lines about other things are ignored. */
typedef struct network {
    double parts; /* the sum so far of latency, send and receive */
    bool present; /* one of them was read */
    bool startup; /* a line gives `startup` itself */
} network;

static bool set_line(model_parameters *p, network *net, const char *name, const char *value,
                     char *error)
{
    double seconds;
    net->startup = net->startup || strcmp(name, "startup") == 0;
    if (strcmp(name, "topology") == 0 || strcmp(name, "memory") == 0 || strcmp(name, "gap") == 0)
        return true;
    if (strcmp(name, "latency") != 0 && strcmp(name, "send") != 0 && strcmp(name, "receive") != 0)
        return model_parameter_set(p, name, value, error);
    if (!model_time_read(value, false, &seconds)) {
        (void)snprintf(error, MODEL_ERROR_BYTES,
                       "%s \"%.64s\": expected a time with its unit, such as 2us", name, value);
        return false;
    }
    net->parts += seconds;
    net->present = true;
    return true;
}

bool model_parameters_parse(FILE *file, const char *name, model_parameters *p,
                            char error[MODEL_ERROR_BYTES])
{
    char *line = NULL, why[MODEL_ERROR_BYTES];
    size_t room = 0, number = 0;
    network net = {0};
    bool good = true;
    while (good && getline(&line, &room, file) >= 0) {
        char key[WORD_BYTES] = "", value[WORD_BYTES] = "";
        number++;
        line[strcspn(line, "#\r\n")] = '\0';
        int words = sscanf(line, "%63s %63s", key, value);
        if (words <= 0)
            continue;
        if (words == 1)
            (void)snprintf(why, sizeof why, "\"%s\": expected a name and a value", key);
        good = words == 2 && set_line(p, &net, key, value, why);
        if (!good)
            (void)snprintf(error, MODEL_ERROR_BYTES, "%.512s:%zu: %.3900s", name, number, why);
    }
    free(line);
    if (good && ferror(file)) {
        (void)snprintf(error, MODEL_ERROR_BYTES, "%.512s: %s; expected a file of parameters", name,
                       strerror(errno));
        good = false;
    }
    if (good && net.present && !net.startup)
        p->startup = net.parts;
    return good;
}
