/* Goal: a program can start jobs itself. Method: ferry_launch of programs that end well, badly, by
 * a signal, or are not there; and options that cannot be. */
#include <stdio.h>

#include <ferry/launch.h>

static int count_wrong;

static void expect(const char *what, int status, int expected)
{
    if (status == expected)
        return;
    fprintf(stderr, "launch of %s: %d, expected %d\n", what, status, expected);
    count_wrong++;
}

static int launch(int ranks, const char *script)
{
    ferry_launch_options options = FERRY_LAUNCH_OPTIONS_DEFAULTS;
    options.ranks = ranks;
    char text[64];
    (void)snprintf(text, sizeof text, "%s", script);
    char *const argv[] = {"sh", "-c", text, NULL};
    return ferry_launch(&options, argv);
}

int main(void)
{
    char *const nothing[] = {NULL};
    char *const absent[] = {"/nowhere/program", NULL};
    ferry_launch_options options = FERRY_LAUNCH_OPTIONS_DEFAULTS;
    expect("true", launch(3, "true"), 0);
    expect("exit 7", launch(2, "exit 7"), 7);
    expect("a signal", launch(2, "kill -TERM $$"), 128 + 15);
    expect("no ranks", launch(0, "true"), FERRY_EINVAL);
    expect("no program", ferry_launch(&options, nothing), FERRY_EINVAL);
    expect("an absent program", ferry_launch(&options, absent), 127);
    char *const program[] = {"true", NULL};
    options.label = options.threads = true;
    expect("labels of threads", ferry_launch(&options, program), FERRY_EINVAL);
    return count_wrong != 0;
}
