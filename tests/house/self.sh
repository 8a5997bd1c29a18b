#!/bin/sh
# Goal: no house rule is dead. Method: self.sh RULE builds a small tree that keeps all rules, on
# which the rule must be silent, then spoils it in the ways that the rule forbids: it must notice
# each.
set -u
rule=$1
here=$(cd "$(dirname "$0")" && pwd)
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
root=$top/root build=$top/build
objects=$build/obj/src/ferry_objects.dir

# Makes the tree once; clean copies it.
make_tree()
{
    mkdir -p "$root/include/ferry" "$root/src/core" "$root/src/base" "$root/tests" "$root/docs/man" \
        "$objects/core" "$objects/base" "$build/lib"
    cp "$here/../../.clang-format" "$root"
    cat >"$root/include/ferry/core.h" <<'END'
/* Core: a sample. */
#ifndef FERRY_CORE_H
#define FERRY_CORE_H

#define FERRY_API
typedef struct ferry ferry;

/* Answers for the rank. [app thread | never blocks] */
FERRY_API int ferry_sample(const ferry *f);

#endif
END
    printf '#ifndef FY_A_H\n#define FY_A_H\n\nenum fy_a { FY_A };\n\n#endif\n' >"$root/src/core/a.h"
    cat >"$root/src/core/a.c" <<'END'
#include "core/a.h"

#include <ferry/core.h>

#include "base/b.h"

int ferry_sample(const ferry *f)
{
    return f ? fy_b() : 0;
}
END
    printf '#ifndef FY_B_H\n#define FY_B_H\n\nint fy_b(void);\n\n#endif\n' >"$root/src/base/b.h"
    cat >"$root/src/base/b.c" <<'END'
#include "base/b.h"

int fy_b(void)
{
    return 1;
}
END
    printf '#include <ferry/core.h>\n\nint main(void)\n{\n    return ferry_sample(0);\n}\n' \
        >"$root/tests/a_test.c"
    echo 'sources(core/a.c base/b.c base/env.c)' >"$root/src/CMakeLists.txt"
    echo "  \"file\": \"$root/tests/a_test.c\"" >"$build/compile_commands.json"
    echo "add_test([=[a_test]=] \"$build/tests/a_test\")" >"$build/CTestTestfile.cmake"
    echo 'Use ferry_sample.' >"$root/docs/tutorial.md"
    echo 'FERRY_KNOWN' >"$root/docs/man/ferry.1.in"
    echo '| D1 | a row | `ferry_sample` | `a_test` |' >"$root/docs/coverage.md"
    mkdir -p "$root/docs/reference"
    echo '| `FERRY_KNOWN` | 1 to 64T bytes | 1 |' >"$root/docs/reference/environment.md"
    printf '/* known\n    {"FERRY_KNOWN", 1, BIT(46)},\n */\n' >"$root/src/base/env.c"
    sh "$here/../../tools/functions.sh" "$root" >"$root/docs/reference/functions.md"
    sh "$here/../../tools/architecture.sh" "$root" >"$root/docs/architecture.svg"
    mkdir -p "$root/tests/house"
    printf '# paths\ndocs/page.md\nsrc/core\ntests\n' >"$root/tests/house/words.list"
    printf '## Retired words\n| wish | work request |\n| kind (of) | type |\n| sort | kind |\n' >"$root/docs/glossary.md"
    printf '# A page\n\nWhat is it? `wish` is code, of a kind.\n' >"$root/docs/page.md"
    touch "$root/README.md"
    mkdir "$top/clean"
    mv "$root" "$build" "$top/clean/"
}

clean()
{
    rm -rf "$root" "$build"
    cp -a "$top/clean/." "$top/"
}

# The rules that read objects and libraries need them.
compile()
{
    case $rule in globals | symbols | names | library) ;; *) return 0 ;; esac
    for file in core/a base/b; do
        cc -std=c11 -D_GNU_SOURCE -fPIC "-I$root/include" "-I$root/src" -c "$root/src/$file.c" \
            -o "$objects/$file.c.o" || exit 1
    done
    # A version script hides what is not ferry_, as visibility does in the real build.
    echo "{ global: ferry_*; $exported local: *; };" >"$top/map"
    # shellcheck disable=SC2086
    cc -shared -o "$build/lib/libferry.so" "$objects"/*/*.o $linked "-Wl,--version-script=$top/map"
}

check() { sh "$here/house.sh" "$rule" "$root" "$build" >"$top/log" 2>&1; }

# spoil WHAT COMMAND...: after the command, the rule must fail.
spoil()
{
    what=$1
    shift
    clean
    "$@"
    compile
    check && { echo "house rule $rule does not notice $what"; exit 1; }
    tried=1
}

to() { printf '%b' "$2" >>"$root/$1"; }
lines() { awk -v n="$1" 'BEGIN { while (n-- > 0) print "    (void)0;" }'; }
four_times() { for file in a b c d; do to "src/base/$file.c" "$1\n{\n    return 0;\n}\n"; done; }
long_function() { { printf '\nvoid fy_long(void)\n{\n'; lines "$1"; echo '}'; } >>"$root/src/base/b.c"; }
# One function of ten lines more than the tree has of others.
ten_lines()
{
    count=$(cat "$root"/src/*/*.c | grep -c '^{')
    while [ "$((count -= 1))" -ge -1 ]; do long_function 10; done
}
replace() { sed -i "$2" "$root/$1"; }
old_name()
{
    echo '| `ferry_cell_enq` | `ferry_cell_enqueue` |' >"$root/docs/porting-to-1.0.md"
    printf 'const char *fy_e(void) { return "cell_enq: full"; }\n' >>"$root/src/base/b.c"
}
export_b() { exported='fy_b;'; }
link_m() { linked='-Wl,--no-as-needed -lm'; }
need_b()
{
    mkdir -p "$build/lib/ferry"
    echo 'int fy_b(void); int ferry_s(void) { return fy_b(); }' |
        cc -shared -fPIC -x c - -o "$build/lib/ferry/ferry-schedulers.so"
}
big() { to src/base/b.c 'const char fy_big[400000] = {1};\n'; }

tried=0 exported= linked=
make_tree
clean
compile
check
silent=$?
[ "$silent" -eq 77 ] && { cat "$top/log"; exit 77; }
[ "$silent" -eq 0 ] || { cat "$top/log"; echo "house rule $rule complains of a clean tree"; exit 1; }

case $rule in
lengths)
    spoil 'a function of 71 lines' long_function 71
    spoil 'a function of 35 lines in less than a hundred' long_function 35
    spoil 'functions of ten lines, more than half of all' ten_lines
    spoil 'a file of 1,001 lines' to src/base/b.c "$(lines 1001)"
    spoil 'a page of performance of 150 lines' to docs/performance.md "$(lines 150)"
    ;;
columns)
    spoil 'a line of 101 columns' to src/base/b.c "/* $(printf '%096d' 0) */\n"
    spoil 'a list of 101 columns' to src/CMakeLists.txt "# $(printf '%099d' 0)\n"
    spoil 'a tab' to src/base/b.c '\tint x;\n'
    spoil 'a page of 121 columns' to README.md "$(printf '%0121d' 0)\n"
    ;;
includes)
    spoil 'base including core' to src/base/b.c '#include <ferry/core.h>\n'
    spoil 'core including object' to src/core/a.c '#include "object/object.h"\n'
    mkdir_cell() { mkdir "$root/src/cell"; to src/cell/c.c '#include "mover/mover.h"\n'; }
    spoil 'two layers of one rank' mkdir_cell
    plan_and_io() { mkdir -p "$root/src/mover/plan"; to src/mover/plan/p.c '#include "mover/io/disk.h"\n'; }
    spoil 'a folder of movers that knows a later one' plan_and_io
    in_nodes() { mkdir -p "$root/src/port/nodes"; to src/port/nodes/n.c '#include "port/nodes/mpi/find.h"\n'; }
    spoil 'the port for several nodes that knows a binding' in_nodes
    core_shm() { mkdir -p "$root/src/port/shm"; to src/core/a.c '#include "port/shm/shm.h"\n'; }
    spoil 'core that knows one port' core_shm
    core_launch() { to src/core/a.c '#include "launch/launch.h"\n'; }
    spoil 'core that knows the launcher' core_launch
    mkdir_cmd() { mkdir "$root/src/cmd"; to src/cmd/c.c '#include "core/a.h"\n'; }
    spoil 'the command inside a layer' mkdir_cmd
    mkdir_compat() { mkdir "$root/compat"; to compat/c.c '#include "base/b.h"\n'; }
    spoil 'another interface inside a layer' mkdir_compat
    ;;
circles)
    circle_of()
    {
        for i in $(seq "$1"); do
            echo "#include \"base/c$((i % $1 + 1)).h\"" >"$root/src/base/c$i.h"
        done
    }
    circle_of 3
    check || { cat "$top/log"; echo 'house rule circles rejects a circle of three files'; exit 1; }
    spoil 'a circle of four files' circle_of 4
    ;;
kinds)
    object_kind() { mkdir -p "$root/src/object"; echo 'enum { FY_KIND_X = 3 };' >"$root/src/object/k.h"; }
    named_in_core() { object_kind; to src/core/a.c 'int fy_kind = FY_KIND_X;\n'; }
    spoil 'a kind of object in core' named_in_core
    named_beside() { object_kind; mkdir "$root/src/memory"; to src/memory/m.h '/* FY_KIND_X */\n'; }
    spoil 'a kind of object in memory' named_beside
    ;;
contracts)
    spoil 'a function without thread contract' replace include/ferry/core.h 's/\[app.*\]//'
    spoil 'a comment of 604 characters' to include/ferry/core.h "/* $(printf '%0601d' 0) */\n"
    spoil 'a function without comment' replace include/ferry/core.h '/Answers/d'
    spoil 'a number below "0 on success"' replace include/ferry/core.h \
        's/Answers for the rank/The rank. FERRY_EINVAL: none/'
    spoil 'a call whose value the comment does not say' to include/ferry/core.h \
        '\n/* Number of the rank. [app thread] */\nFERRY_API int ferry_x(ferry *f, int *rank);\n'
    ;;
used)
    spoil 'a function that no test calls' replace tests/a_test.c 's/ferry_sample/ferry_other/'
    spoil 'a function that no page uses' replace docs/tutorial.md 's/ferry_sample//'
    ;;
names)
    spoil 'a public macro without prefix' to include/ferry/core.h '#define SAMPLE 1\n'
    spoil 'a public type without prefix' to include/ferry/core.h 'typedef int sample;\n'
    spoil 'a public constant without prefix' to include/ferry/core.h 'enum ferry_e {\n    SAMPLE,\n};\n'
    spoil 'an external function without prefix' to src/base/b.c 'int sample(void) { return 1; }\n'
    spoil 'an old name in an error' old_name
    ;;
tags)
    spoil 'a tag with two definitions' to src/base/b.c \
        'struct fy_s {\n    int a;\n};\nenum fy_s { FY_S };\n'
    ;;
statics)
    spoil 'a static name of four files' four_times 'static int again(void)'
    spoil 'a long declaration' four_times 'static __attribute__((noinline)) int\nagain(int a,\n          int b)'
    ;;
unfinished)
    for word in TODO FIXME XXX 'a stub' 'good enough for now'; do
        spoil "$word" to src/base/b.c "/* $word */\n"
    done
    ;;
globals)
    spoil 'a static counter' to src/base/b.c 'static int n;\nint fy_n(void) { return n++; }\n'
    spoil 'an initialised global' to src/core/a.c 'int fy_n = 1;\n'
    spoil 'thread-local data' to src/core/a.c '_Thread_local int fy_n;\n'
    ;;
symbols)
    spoil 'a clock' to src/core/a.c '#include <time.h>\nlong fy_t(void) { return time(0); }\n'
    spoil 'randomness' to src/core/a.c '#include <stdlib.h>\nint fy_r(void) { return rand(); }\n'
    spoil 'memory' to src/core/a.c '#include <stdlib.h>\nvoid *fy_m(void) { return malloc(8); }\n'
    spoil 'a thread' to src/core/a.c '#include <pthread.h>\nint fy_l(pthread_mutex_t *m) { return pthread_mutex_lock(m); }\n'
    ;;
headers)
    spoil 'a header that needs another' to include/ferry/core.h 'size_t ferry_x(void);\n'
    spoil 'a header that C++ refuses' to include/ferry/core.h 'int ferry_x(int class);\n'
    alone() { to src/base/alone.h 'size_t fy_x(void);\n'; }
    spoil 'an inner header that needs another, and that no source includes first' alone
    ;;
format) spoil 'bad indentation' to src/base/b.c 'int fy_f(void) {\n  return 1; }\n' ;;
library)
    spoil 'a big library' big
    spoil 'another library' link_m
    linked=
    spoil 'an inner name exported' export_b
    exported=
    spoil 'a scheduler that needs an inner name' need_b
    ;;
dead)
    spoil 'a source that is not built' to src/base/lost.c 'int fy_lost;\n'
    spoil 'a header that nobody includes' to src/base/lost.h 'int fy_lost(void);\n'
    ;;
atomics) spoil 'an atomic without order' to src/base/b.c 'int fy_a(void) { return atomic_load(&x); }\n' ;;
conditionals) spoil 'an #ifdef in core' to src/core/a.c '#ifdef __linux__\n#endif\n' ;;
coverage)
    spoil 'a function that is not there' replace docs/coverage.md 's/ferry_sample/ferry_other/'
    spoil 'a test that is not there' replace docs/coverage.md 's/a_test/no_such_test/'
    comment() { replace docs/coverage.md 's/a_test/a_word/'; to tests/a_test.c '/* a_word */\n'; }
    spoil 'a test that a comment names' comment
    program() { replace docs/coverage.md 's/a_test/a_program/'; to tests/a_program 'a_program\n'; }
    spoil 'a program that is not registered' program
    unit()
    {
        replace docs/coverage.md 's/a_test/test_a/'
        to tests/a_test.c "static void test_a(void **state)\n{\n}\nX(test_a),\n"
        echo "  \"command\": \"cc -o obj/CMakeFiles/$1.dir/a_test.c.o -c $root/tests/a_test.c\"," \
            >>"$build/compile_commands.json"
    }
    spoil 'a test function of a program that is not registered' unit another_test
    clean
    unit a_test
    check || { cat "$top/log"; echo "house rule coverage overlooks a test function"; exit 1; }
    absent() { replace docs/coverage.md "$1"; echo 'mpi ^mpi_' >"$build/obj/absent"; }
    spoil 'a test that no missing package has' absent 's/a_test/no_such_test/'
    clean
    absent 's/a_test/mpi_such/'
    check || { cat "$top/log"; echo "house rule coverage wants tests of a missing package"; exit 1; }
    rm "$build/obj/absent"
    spoil 'a row without test' replace docs/coverage.md 's/`a_test`//'
    ;;
variables)
    spoil 'an undocumented variable' to src/core/a.c '/* */ char *v = "FERRY_UNKNOWN";\n'
    option() { mkdir "$root/src/cmd"; to src/cmd/c.c '    {"unknown", no_argument, NULL, 0},\n'; }
    spoil 'an undocumented option' option
    spoil 'a variable of the man page that is unknown' to docs/man/ferry.1.in 'FERRY_GONE\n'
    page=docs/reference/environment.md
    spoil 'a variable without a row' replace "$page" '/FERRY_KNOWN/d'
    spoil 'a row with another range' replace "$page" 's/64T/32T/'
    spoil 'a row for no variable' to "$page" '| `FERRY_GONE` | 0 to 1 | 0 |\n'
    ;;
words)
    long=$(awk 'BEGIN { for (i = 0; i < 36; i++) printf "word " }')
    page() { to docs/page.md "\n$1\n"; }
    spoil 'a retired word' page 'It sends a wish.'
    spoil 'a retired word in the plural, in a table' page '| a | wishes or Wishs |'
    spoil 'a sort that is a kind' page 'It is another sort of message.'
    spoil 'a retired word in a heading' page '## The wish'
    spoil 'a long sentence' page "$long."
    spoil 'a long sentence over two lines' page "Short. $(echo "$long" | sed 's/ /\\n/18')."
    spoil 'a sentence without a head' page 'It is. Who asks waits.'
    spoil 'a statement that begins with what' page '- What is left is sent.'
    spoil 'a page of 101 columns' page "$(printf '%0101d' 0)"
    spoil 'a comment with a retired word' to src/core/a.c '/* Sends\n * a wish. */\n'
    spoil 'a long sentence in a comment' to src/core/a.c "/* $long. */\n"
    spoil 'a retired word in a script' to tests/a.sh '#!/bin/sh\n# Sends\n# a wish.\n'
    spoil 'a long sentence in a build file' to tests/CMakeLists.txt "# $long.\n"
    spoil "a row of a comment's table that is no sentence" to src/core/a.c \
        "/* Rows:\n *   one    $long.\n */\n"
    ;;
commits)
    commit() { git -C "$root" -c user.name=a -c user.email=a@b commit -qm "$1" --allow-empty; }
    history()
    {
        git -C "$root" init -q
        commit 'core: begin'
        commit "$1"
    }
    export COMMITS_AFTER=HEAD~1
    spoil 'a subject without area' history 'Change it'
    spoil 'a subject of 73 characters' history "core: $(printf '%067d' 0)"
    spoil 'a body without a blank line' history 'core: change
it'
    clean
    history 'core: change it

why'
    check || { cat "$top/log"; echo "house rule commits complains of a right message"; exit 1; }
    ;;
architecture)
    spoil 'an include that the picture lacks' to src/core/a.c '#include "object/object.h"\n'
    folder() { mkdir "$root/src/new"; to src/new/n.c '#include "base/b.h"\n'; }
    spoil 'a folder without a place' folder
    spoil 'a function that is not where the page says' to docs/architecture.md \
        '## Where it happens\n| what | file | functions |\n|---|---|---|\n| it | `core/a.c` | `fy_b` |\n'
    ;;
statuses)
    spoil 'a test that looks at the text alone' to tests/CMakeLists.txt \
        'set_tests_properties(a PROPERTIES PASS_REGULAR_EXPRESSION right)\n'
    ;;
examples)
    example()
    {
        mkdir -p "$root/examples" "$root/docs/guide"
        printf '/* One.\n *\n *     cc one.c */\n#include <stdio.h>\n' >"$root/examples/one.c"
        echo 'Take one.c.' >"$root/docs/guide/one.md"
        [ $# -eq 0 ] || "$@"
    }
    clean
    example
    check || { cat "$top/log"; echo "house rule examples complains of a right one"; exit 1; }
    spoil 'an example of 120 lines' example to examples/one.c "$(lines 117)"
    spoil 'an example without a comment' example replace examples/one.c '1,3d'
    spoil 'an example with a header of its own' example to examples/one.c '#include "two.h"\n'
    spoil 'an example that no guide names' example replace docs/guide/one.md d
    ;;
functions)
    spoil 'a function that the list lacks' to include/ferry/core.h 'FERRY_API int ferry_x(void);\n'
    spoil 'a function that is gone' to docs/reference/functions.md '- `ferry_gone`\n'
    ;;
esac
[ "$tried" -eq 1 ] || { echo "house rule $rule has no sample"; exit 1; }
