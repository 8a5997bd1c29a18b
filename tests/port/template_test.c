/* Goal: no message from another node crashes a node of port template, or changes anything there
 * unless it makes sense. Method: send each wrong head, then a right one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "port/template/node.h"

typedef struct two_nodes {
    fy_template_job *job;
    fy_port *here, *there; /* ranks 0 and 1 */
} two_nodes;

static int open_nodes(void **state)
{
    static two_nodes n;
    n.job = fy_template_job_create(2, 2);
    assert_non_null(n.job);
    assert_int_equal(fy_template_join(n.job, 0, &n.here), 0);
    assert_int_equal(fy_template_join(n.job, 1, &n.there), 0);
    *state = &n;
    return 0;
}

static int close_nodes(void **state)
{
    two_nodes *n = *state;
    n->here->ops->transport.close(n->here);
    n->there->ops->transport.close(n->there);
    fy_template_job_destroy(n->job);
    return 0;
}

/* Gives node 0 a message of rank 1. */
static int arrive(two_nodes *n, fy_template_head head, size_t size_bytes)
{
    char bytes[sizeof(head) + 64] = {0};
    memcpy(bytes, &head, sizeof(head));
    return fy_template_arrive(n->job, &n->job->nodes[0], bytes, size_bytes);
}

static fy_verdict count(void *context, int source, const fy_frame *frame)
{
    assert_int_equal(source, 1);
    assert_int_equal(frame->size_bytes, 8);
    ++*(int *)context;
    return FY_TAKEN;
}

static void test_node_drops_frames_that_make_no_sense(void **state)
{
    two_nodes *n = *state;
    const fy_template_head right = {.source = 1, .frame.size_bytes = 8};
    const size_t size = sizeof(right) + 8;
    fy_template_head wrong[] = {right, right, right, right, right, right, right, right};
    wrong[0].kind = FY_TEMPLATE_KINDS;
    wrong[1].lane = FY_LANES;
    wrong[2].source = 2;
    wrong[3].source = -1;
    wrong[4].target = 1;
    wrong[5].frame.word_count = FY_FRAME_WORDS + 1;
    wrong[6].frame.size_bytes = SIZE_MAX;
    wrong[7].source = 0;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(arrive(n, wrong[i], size), FERRY_EINVAL);
    assert_int_equal(arrive(n, right, sizeof(right) - 1), FERRY_EINVAL);
    assert_int_equal(arrive(n, right, sizeof(right)), FERRY_EINVAL);
    assert_false(n->here->ops->transport.pending(n->here, FY_DATA));
    int taken = 0;
    assert_int_equal(arrive(n, right, size), 0);
    /* The credit that goes back is for a frame that rank 1 has not sent: it is dropped there. */
    assert_int_equal(n->here->ops->transport.poll(n->here, FY_DATA, 16, count, &taken), 1);
    assert_int_equal(taken, 1);
}

static void test_node_takes_credit_only_for_what_it_sent(void **state)
{
    two_nodes *n = *state;
    const fy_frame frame = {.data = n, .size_bytes = 8};
    fy_template_head head = {.kind = FY_TEMPLATE_CREDIT, .target = 1, .frame.size_bytes = 8};
    assert_int_equal(arrive(n, head, sizeof(head)), FERRY_EINVAL);
    assert_int_equal(n->here->ops->transport.send(n->here, FY_APP, FY_DATA, 1, &frame), 0);
    head.frame.size_bytes = 9;
    assert_int_equal(arrive(n, head, sizeof(head)), FERRY_EINVAL);
    head.frame.size_bytes = 8;
    assert_int_equal(arrive(n, head, sizeof(head)), 0);
    assert_int_equal(arrive(n, head, sizeof(head)), FERRY_EINVAL);
}

static void test_ranks_of_different_nodes_share_no_board(void **state)
{
    two_nodes *n = *state;
    assert_non_null(n->here->ops->heap.board(n->here, 0));
    assert_null(n->here->ops->heap.board(n->here, 1));
    assert_null(n->there->ops->heap.board(n->there, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_node_drops_frames_that_make_no_sense, open_nodes,
                                        close_nodes),
        cmocka_unit_test_setup_teardown(test_node_takes_credit_only_for_what_it_sent, open_nodes,
                                        close_nodes),
        cmocka_unit_test_setup_teardown(test_ranks_of_different_nodes_share_no_board, open_nodes,
                                        close_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
