/* Payloads that follow their frame at the receiver: in one message, or in pieces. */
#include "port/nodes/port_state.h"

#include <stdlib.h>

/* Whether blocks of a heap can be allocated and released. */
static bool is_open(const nodes_port *p, const fy_port *heap)
{
    return heap != p->near || !p->closed;
}

bool fy_nodes_payload_room(nodes_port *p, const endpoint *to, slot *s, size_t size_bytes)
{
    if (s->payload != NULL)
        return true;
    s->heap = is_open(p, to->heap) ? to->heap : NULL;
    if (s->heap != NULL)
        s->payload = s->heap->ops->heap.alloc(s->heap, size_bytes, -1);
    if (s->payload == NULL) {
        s->heap = NULL;
        s->payload = malloc(size_bytes);
    }
    return s->payload != NULL;
}

void fy_nodes_payload_put(nodes_port *p, slot *s, bool kept)
{
    if (s->payload == NULL || kept)
        return;
    if (s->heap == NULL)
        free(s->payload);
    else if (is_open(p, s->heap))
        (void)s->heap->ops->heap.release(s->heap, s->payload);
}

void fy_nodes_payload_receive(nodes_port *p, fy_lane lane, slot *s, bool in_pieces)
{
    bool started = true;
    s->pieces = in_pieces ? fy_nodes_pieces(s->data_bytes) : 0;
    s->piece = 0;
    if (!in_pieces)
        started = p->binding->receive(p->net, s->payload, s->data_bytes, s->source,
                                      TAG_PAYLOAD + (int)lane, &s->request) == 0;
    for (uint32_t i = 0; i < s->pieces && started; i++) {
        unsigned char *at = (unsigned char *)s->payload + i * fy_nodes_piece_size(s->data_bytes);
        started = p->binding->receive(p->net, at, fy_nodes_piece_bytes(s->data_bytes, i), s->source,
                                      TAG_PAYLOAD + (int)lane, &slot_requests(s)[i]) == 0;
        s->pieces = started ? s->pieces : i;
    }
    s->waiting = started || s->pieces > 0;
    if (!started)
        fy_nodes_cut_off(p, s->source, "the receive of its payload failed");
}

/* Tests a message of a payload that shall have `size_bytes`. Returns whether it has ended. */
static bool payload_test(nodes_port *p, const slot *s, fy_nodes_request *request, size_t size_bytes)
{
    bool done = false;
    size_t came = size_bytes;
    bool failed = p->binding->test(request, &done, NULL, &came) != 0;
    if (failed || came != size_bytes)
        fy_nodes_cut_off(p, s->source,
                         failed ? "the test of a payload failed"
                                : "a payload is not as long as said");
    return done || failed;
}

bool fy_nodes_payload_came(nodes_port *p, slot *s)
{
    if (s->pieces == 0 && !payload_test(p, s, &s->request, s->data_bytes))
        return false;
    for (; s->piece < s->pieces; s->piece++)
        if (!payload_test(p, s, &slot_requests(s)[s->piece],
                          fy_nodes_piece_bytes(s->data_bytes, s->piece)))
            return false;
    s->waiting = false;
    return true;
}

void fy_nodes_payload_cancel(nodes_port *p, slot *s)
{
    if (s->pieces == 0)
        p->binding->cancel(&s->request);
    for (; s->piece < s->pieces; s->piece++)
        p->binding->cancel(&slot_requests(s)[s->piece]);
}
