#include "cmd/report/draw.h"

#include <math.h>
#include <string.h>

const char *const draw_share_names[DRAW_SHARES] = {
    "in tasks", "in tasks, without the processor", "program",
    "runtime",  "runtime, without the processor",  "idle"};
const char *const draw_share_colours[DRAW_SHARES] = {"#0b6fa8", "#9cc9e3", "#7d8794",
                                                     "#e08a00", "#f3d29b", "#eceff2"};

draw_shares draw_shares_of(const trace_rank *rank)
{
    draw_shares s = {{0}};
    for (size_t i = 0; i < rank->stretch_count; i++) {
        const trace_stretch *v = &rank->stretches[i];
        uint64_t ns = trace_stretch_end(rank, i) - v->start_ns;
        uint64_t cpu = (uint64_t)((double)ns * draw_processor_part(rank, i) + 0.5);
        s.ns[DRAW_TASK] += v->kind == TRACE_TASK ? cpu : 0;
        s.ns[DRAW_WAITING] += v->kind == TRACE_TASK ? ns - cpu : 0;
        s.ns[DRAW_PROGRAM] += v->kind == TRACE_MAIN ? ns : 0;
        s.ns[DRAW_RUNTIME] += v->kind == TRACE_RUNTIME ? cpu : 0;
        s.ns[DRAW_DELAYED] += v->kind == TRACE_RUNTIME ? ns - cpu : 0;
        s.ns[DRAW_IDLE] += v->kind == TRACE_IDLE ? ns : 0;
    }
    return s;
}

double draw_share_keys(FILE *out, double x)
{
    static const double widths[DRAW_SHARES] = {85, 230, 90, 90, 225, 60};
    for (int share = 0; share < DRAW_SHARES; x += widths[share++])
        fprintf(out,
                "<rect x=\"%.1f\" y=\"22\" width=\"14\" height=\"14\" rx=\"2\" fill=\"%s\"/><text "
                "x=\"%.1f\" y=\"34\">%s</text>\n",
                x, draw_share_colours[share], x + 20, draw_share_names[share]);
    return x;
}

const trace_rank *draw_told(const trace_run *run)
{
    for (int rank = 0; rank < run->ranks; rank++)
        if (run->rank[rank].present)
            return &run->rank[rank];
    return NULL;
}

/* The bytes of the character at `text`, in UTF-8; 0 if that is none. */
static size_t character_bytes(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t bytes = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    if (c[0] > 0xf4 || (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0; /* too large, longer than needed, or half of a pair */
    for (size_t i = 1; i < bytes; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    /* XML has neither control characters nor U+FFFE and U+FFFF. */
    bool none = bytes == 1 ? c[0] < ' ' || c[0] == 0x7f
                           : bytes == 3 && c[0] == 0xef && c[1] == 0xbf && c[2] > 0xbd;
    return none ? 0 : bytes;
}

const char *draw_character(FILE *out, const char *text)
{
    size_t bytes = character_bytes(text);
    if (bytes == 0)
        fputc('?', out);
    else
        (void)fwrite(text, 1, bytes, out);
    return text + (bytes == 0 ? 1 : bytes);
}

void draw_text(FILE *out, const char *text)
{
    while (*text != '\0') {
        const char *entity = *text == '<'   ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '&' ? "&amp;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        if (entity != NULL)
            fputs(entity, out);
        text = entity != NULL ? text + 1 : draw_character(out, text);
    }
}

void draw_text_end(FILE *out, const char *text, size_t room)
{
    size_t length = strlen(text);
    const char *shown = length > room ? text + (length - room + 1) : text;
    while ((*shown & 0xc0) == 0x80) /* the middle of a character */
        shown++;
    if (shown != text)
        fputs("\xe2\x80\xa6", out);
    draw_text(out, shown);
    fputs("<title>", out);
    draw_text(out, text);
    fputs("</title>", out);
}

const char *draw_handler_name(const trace_rank *rank, uint32_t index, char buffer[32])
{
    if (rank->handlers[index] != NULL)
        return rank->handlers[index];
    (void)snprintf(buffer, 32, "handler %u", index);
    return buffer;
}

void draw_duration(char buffer[32], double ns)
{
    if (ns >= 1e9)
        (void)snprintf(buffer, 32, "%.4g s", ns / 1e9);
    else if (ns >= 1e6)
        (void)snprintf(buffer, 32, "%.4g ms", ns / 1e6);
    else if (ns >= 1e3)
        (void)snprintf(buffer, 32, "%.4g us", ns / 1e3);
    else
        (void)snprintf(buffer, 32, "%.0f ns", ns);
}

double draw_step(double end_ns)
{
    double step = pow(10, floor(log10(end_ns > 1 ? end_ns : 1)));
    if (end_ns / step < 2)
        return step / 5;
    return end_ns / step < 5 ? step / 2 : step;
}
