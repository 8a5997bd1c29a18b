#!/bin/sh
# One house rule on one tree: house.sh RULE ROOT BUILD. Prints every violation as file:line: what;
# exits 1 when there is any, 77 when the rule cannot be checked here.
#
# ROOT has include/, src/ and so on; BUILD is where CMake built it. self.sh proves that each rule
# notices a violation. Text rules lean on .clang-format: a function's braces stand in column 0.
set -u
rule=$1 root=$2 build=$3
here=$(cd "$(dirname "$0")" && pwd)
tools=$(cd "$here/../../tools" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
found=$scratch/found
: >"$found"
cd "$root" || exit 1

# Paths without blanks: the names rule of the project's own files.
sources() { find "$@" \( -name '*.c' -o -name '*.h' \) 2>/dev/null | sort; }
code() { sources include src compat examples apps bench tests; }
objects() { find "$build/obj/src" -path '*ferry*_objects.dir/*' -name '*.o' | sort; }
public_functions()
{
    awk '/^FERRY_API/ { text = ""; open = 1 }
        open { text = text " " $0 }
        open && /;/ { open = 0; sub(/\(.*/, "", text); n = split(text, w, /[ *]+/); print w[n] }' \
        include/ferry/*.h
}

# Functions of at most 70 lines, files of at most 1,000; says when 40 or 500 are passed. The page of
# performance has less than 150 lines: what it does not hold is in docs/lab.
rule_lengths()
{
    : >"$scratch/lengths"
    code | xargs awk -v lengths="$scratch/lengths" '
        function file_end() {
            if (lines > 1000) printf "%s:%d: file of %d lines, at most 1000\n", file, lines, lines
            else if (lines > 500) printf "note: %s has %d lines, aim below 500\n", file, lines
        }
        FNR == 1 { file_end(); file = FILENAME }
        { lines = FNR }
        /^[A-Za-z_].*\(/ { head = $0 }
        /^\{/ { open = FNR }
        /^\}/ && open {
            n = FNR - open - 1
            if (FILENAME ~ /^src\//) print n >lengths
            if (n > 70) printf "%s:%d: function of %d lines, at most 70: %s\n", file, open, n, head
            else if (n > 40) printf "note: %s:%d: %d lines, aim below 40: %s\n", file, open, n, head
            open = 0
        }
        END { file_end() }' >"$scratch/out"
    grep '^note:' "$scratch/out"
    grep -v '^note:' "$scratch/out" >"$found"
    # One in two, ten and a hundred of all functions of src may be longer than these.
    sort -n "$scratch/lengths" | awk '
        function most(percent, lines,    n) {
            n = length_of[int((NR * percent + 99) / 100)]
            if (n > lines)
                printf "src: %d%% of the functions have at most %d lines; should be %d\n",
                    percent, n, lines
        }
        { length_of[NR] = $1 }
        END { most(50, 9); most(90, 21); most(99, 34) }' >>"$found"
    [ ! -f docs/performance.md ] || awk 'END {
        if (NR >= 150) printf "%s:%d: page of %d lines, below 150\n", FILENAME, NR, NR
    }' docs/performance.md >>"$found"
}

# 100 columns and no tabs. Lines of data tables in tests are no exception, nor are lists of CMake's.
# 120 columns in the pages that one reads first.
rule_columns()
{
    { code; find CMakeLists.txt cmake src compat examples apps bench tests -name CMakeLists.txt -o \
        -name '*.cmake' 2>/dev/null; } | xargs awk '
        length($0) > 100 { printf "%s:%d: %d columns\n", FILENAME, FNR, length($0) }
        /\t/ { printf "%s:%d: tab\n", FILENAME, FNR }' >"$found"
    awk 'length($0) > 120 { printf "%s:%d: %d columns, at most 120\n", FILENAME, FNR, length($0) }' \
        $(ls README.md CHANGELOG.md CONTRIBUTING.md 2>/dev/null) /dev/null >>"$found"
}

# The height of each layer; layers of one height do not know each other.
levels='base 0 port 1 launch 2 port/nodes 3 port/open 4 core 5 memory 6 object 7 balance 8 mover 8'
levels="$levels cell 8 collection 9 window 9 store 9"
levels="$levels percolation 10"
# The order of the folders within a layer.
inner='mover/geometry 1 mover/plan 2 mover/kernels 3 mover/run 4 mover/bind 5 mover/io 6'

# Includes point only downwards (docs/architecture.md). Each folder under src is a layer.
rule_includes()
{
    sources include src compat | xargs awk -v levels="$levels" -v inner="$inner" '
        BEGIN {
            n = split(levels, pair, " ")
            for (i = 1; i < n; i += 2) level[pair[i]] = pair[i + 1]
            n = split(inner, pair, " ")
            for (i = 1; i < n; i += 2) height[pair[i]] = pair[i + 1]
            # public headers are named after their layer, mover_plan.h too, but for these
            n = split("export base error base trace core member core two core " \
                      "background core collective core group core directory object " \
                      "scheduler object convert cell", pair, " ")
            for (i = 1; i < n; i += 2) public[pair[i]] = pair[i + 1]
        }
        function folder_of(path,    part) {
            sub(/^src\//, "", path); split(path, part, "/")
            return part[1] "/" part[2]
        }
        function layer_of(path,    part) {
            if (path ~ /^include\/ferry\//) {
                sub(/.*\//, "", path); sub(/(_[a-z_]*)?[.]h$/, "", path)
                return (path in public) ? public[path] : path
            }
            sub(/^src\//, "", path); split(path, part, "/")
            if (path ~ /^port\/nodes\//) return "port/nodes" # it starts ranks as the launcher does
            if (path ~ /^port\/open\//) return "port/open" # it alone names ports
            return part[1]
        }
        !/^#include/ { next }
        {
            from = layer_of(FILENAME)
            name = $2; gsub(/[<>"]/, "", name)
            if ($2 ~ /^</ && name !~ /^ferry\//) next
            if (name ~ /^ferry\//) to = layer_of("include/" name)
            else if (name ~ /\//) to = layer_of("src/" name)
            else to = from
            if (from == "ferry") next
            if (from == "compat") { # public headers alone
                if (to != from && name !~ /^ferry\//)
                    printf "%s:%d: %s is inside layer %s\n", FILENAME, FNR, name, to
                next
            }
            if (!(from in level)) { # beside the stack: its own, public headers, base, ports, launch
                if (to != from && name !~ /^ferry\// && to != "base" && to !~ /^port|^launch$/)
                    printf "%s:%d: %s is inside layer %s\n", FILENAME, FNR, name, to
                next
            }
            if (folder_of(FILENAME) in height && height[folder_of(name)] > height[folder_of(FILENAME)])
                printf "%s:%d: %s of folder %s from folder %s\n", FILENAME, FNR, name,
                    folder_of(name), folder_of(FILENAME)
            # the port for several nodes knows no binding
            if (FILENAME ~ /^src\/port\/nodes\/[^\/]*$/ && name ~ /^port\/nodes\/.*\//)
                printf "%s:%d: %s is of a binding\n", FILENAME, FNR, name
            # no layer above port/open knows which ports there are
            if (level[from] > level["port/open"] && name ~ /^(port\/.*\/|launch\/)/ && to != "port/open")
                printf "%s:%d: %s is of one port\n", FILENAME, FNR, name
            if (to == from) next
            if (!(to in level) || level[to] >= level[from])
                printf "%s:%d: %s of layer %s from layer %s\n", FILENAME, FNR, name, to, from
        }' >"$found"
}

# No include lies on a circle of more than three files, where a.c and a.h count as one. Either no
# way leads from what a file includes back to it, or one of at most two more includes.
rule_circles()
{
    sources src | xargs awk '
        function unit(path) { sub(/^src\//, "", path); sub(/[.][ch]$/, "", path); return path }
        /^#include "/ {
            from = unit(FILENAME); to = $2; gsub(/"/, "", to)
            if (to !~ /\//) { at = from; sub(/[^\/]*$/, "", at); to = at to }
            to = unit(to)
            if (from == to || (from, to) in seen) next
            seen[from, to] = 1; next_of[from] = next_of[from] " " to
            if (!(from in line)) line[from] = FILENAME
            where[from, to] = FILENAME ":" FNR
        }
        function length_of(from, to,    list, n, i, name, part, m, head) { # of the circle, 0: none
            split("", far); far[to] = 2; list[n = 1] = to
            for (head = 1; head <= n; head++) {
                name = list[head]
                if (name == from) return far[name] - 1
                m = split(next_of[name], part, " ")
                for (i = 1; i <= m; i++) if (!(part[i] in far)) {
                    far[part[i]] = far[name] + 1; list[++n] = part[i]
                }
            }
            return 0
        }
        END {
            for (key in seen) {
                split(key, pair, SUBSEP); n = length_of(pair[1], pair[2])
                if (n > 3) printf "%s: %s closes a circle of %d files\n", where[key], pair[2], n
            }
        }' | sort >"$found"
}

# A kind of frames, FY_KIND_..., is named in the layer that defines it and in the layers above alone
# (docs/decisions/0019).
rule_kinds()
{
    sources src | grep '[.]h$' | xargs grep -HoE '^( +|enum [{] )FY_KIND_[A-Z_]+' >"$scratch/kinds"
    sources src | xargs awk -v levels="$levels" '
        BEGIN { n = split(levels, pair, " "); for (i = 1; i < n; i += 2) level[pair[i]] = pair[i + 1] }
        FILENAME ~ /kinds$/ { split($1, part, "/"); owner[$NF] = part[2]; next }
        {
            split(FILENAME, part, "/")
            for (rest = $0; match(rest, /FY_KIND_[A-Z_]+/); rest = substr(rest, RSTART + RLENGTH)) {
                kind = substr(rest, RSTART, RLENGTH); of = owner[kind]
                if (of != "" && of != part[2] && level[of] >= level[part[2]])
                    printf "%s:%d: %s is a kind of layer %s\n", FILENAME, FNR, kind, of
            }
        }' "$scratch/kinds" >"$found"
}

# A man page says the truth of its return value, as far as its own text tells. "0 on success" stands
# for no function that returns a number, and for none that does as one that returns a number.
man_values()
{
    awk '
        FNR == 1 { page = FILENAME; sub(/.*[\/]/, "", page); sub(/[.]3$/, "", page) }
        /^[.]SH / { section = $0; sub(/^[.]SH /, "", section); next }
        section == "NAME" { name[page] = $0 }
        section == "SYNOPSIS" && /^int ferry_/ {
            whole[page] = 1
            out[page] = / [*]+[a-z]+[)];$/ && !/const [a-z_]+ [*][a-z]+[)]/
        }
        section == "DESCRIPTION" { text[page] = text[page] " " $0 }
        section == "RETURN VALUE" && !(page in value) { value[page] = $0 }
        function bad(page, why) { print "include/ferry: " page "(3) " why }
        END {
            for (page in value) {
                summary = name[page]; sub(/.* \\- /, "", summary); split(summary, word, /,? /)
                v = value[page]; zero = v ~ /^0 on success/; peer = word[2]
                if (v ~ /^Returns (when|before|immediately)/) bad(page, "says when it returns, not what: " v)
                if (name[page] ~ /, ferry_.* \\- returns when/) bad(page, "says of several functions: " summary)
                if (!(page in whole)) continue
                if (zero && (word[1] !~ /s$/ || word[1] == "this")) bad(page, "says 0 on success of \"" summary "\"")
                if (zero && text[page] ~ /(and|it|call) returns (the|how) /) bad(page, "says 0 on success, but" text[page])
                if (zero && word[1] == "as" && (peer in value) && value[peer] ~ /^Returns /)
                    bad(page, "says 0 on success, and " peer "(3) " value[peer])
                if (out[page] && !zero && v !~ /[Rr]eturns /) bad(page, "does not say what it returns: " v)
            }
        }' "$scratch"/ferry_*.3
}

# Every public function has a comment, and one that names its threads: [...], its own or its
# section's, and is at most 600 characters long without samples. The man pages are made from the
# same comments, so they are the measure.
rule_contracts()
{
    awk -f "$tools/man.awk" -v out="$scratch" -v version=0 include/ferry/*.h
    man_values >"$found"
    awk '
        /\/[*]/ && !open { open = 1; first = FNR; size = 0 }
        open && !/^ [*]     / { text = $0; sub(/^ [*] ?/, "", text); size += length(text) + 1 }
        open && /[*]\// {
            open = 0
            if (size > 603) printf "%s:%d: comment of %d characters, at most 600\n", FILENAME, first, size
        }' include/ferry/*.h >>"$found"
    public_functions | awk -v man="$scratch/" '
        # Reads a page: what it refers to, its first line below DESCRIPTION, and its contract.
        function read_page(path,    line, below) {
            exists = contract = misread = 0; target = first = ""
            while ((getline line <path) > 0) {
                exists = 1
                if (line ~ /^[.]so man3[/]/) target = substr(line, 10)
                if (below) { first = line; below = 0 }
                if (line ~ /^[.]SH DESCRIPTION/) below = 1
                if (line ~ /^[.]SH CONTRACT/) contract = 1
                if (line ~ /^[^.].*[[][a-z][^]]* [|] /) misread = 1
            }
            close(path)
        }
        {
            read_page(man $0 ".3")
            if (exists && target != "") read_page(man target)
            if (!exists) print "include/ferry: " $0 " has no man page"
            else if (length(first) < 10) print "include/ferry: " $0 " has no comment"
            if (exists && !contract) print "include/ferry: " $0 " has no [thread contract]"
            if (misread) print "include/ferry: " $0 " has a [thread contract] that man.awk misreads"
        }' >>"$found"
}

# Each example is a program of less than 120 lines that can be copied out alone. A comment on top says
# how to compile and run it. It includes Ferry and the C library alone, and a guide or the README
# names it.
rule_examples()
{
    for file in $(find examples -name '*.c' | sort); do
        lines=$(wc -l <"$file")
        [ "$lines" -lt 120 ] || echo "$file: $lines lines, expected below 120"
        awk '{ print } /[*]\// { exit }' "$file" | grep -q '^ [*]  *cc ' ||
            echo "$file: no comment on top that says how to compile it"
        grep -Hn '^#include "' "$file"
        grep -qw "${file##*/}" README.md docs/guide/*.md || echo "$file: no guide names it"
    done >"$found"
}

# Every public function is called in a test, and in an example, the tutorial or the README.
rule_used()
{
    sources tests | grep -v '^tests/house/' | xargs cat >"$scratch/tests"
    { sources examples apps bench/papers | xargs cat; cat README.md
        find docs -name '*.md' ! -name coverage.md ! -name functions.md | xargs cat; } \
        >"$scratch/uses" 2>/dev/null
    for text in tests uses; do
        grep -ohE '\bferry_[a-z0-9_]+' "$scratch/$text" | sort -u >"$scratch/names"
        public_functions | sort -u | comm -23 - "$scratch/names" >"$scratch/$text"
    done
    sed 's/$/: no test calls it/' "$scratch/tests" >>"$found"
    sed 's/$/: no example or page uses it/' "$scratch/uses" >>"$found"
}

# Public names begin with ferry_ or FERRY_; what the objects define for others with ferry_ or fy_.
# An error that begins with the name of a function, without ferry_, gives its name of today: no
# string begins with a name of the column 0.1 in docs/porting-to-1.0.md.
rule_names()
{
    awk '
        /^#define/ { name = $2; sub(/\(.*/, "", name); if (name !~ /^FERRY_/) bad(name) }
        /^typedef .*;/ && !/\(/ { name = $NF; sub(/;/, "", name); if (name !~ /^ferry_/) type(name) }
        /^} [a-z_]+;/ { name = $2; sub(/;/, "", name); if (name !~ /^ferry_/) type(name) }
        /^(typedef )?enum/ && !/}/ { inside = 1; next }
        inside && /^}/ { inside = 0 }
        inside && /^    [A-Za-z_]+/ { name = $1; sub(/[,=].*/, "", name)
            if (name !~ /^FERRY_/) bad(name) }
        function type(name) { if (name != "ferry") bad(name) }
        function bad(name) { printf "%s:%d: public name %s\n", FILENAME, FNR, name }
    ' include/ferry/*.h >"$found"
    objects | xargs nm -A --defined-only -g | awk '
        NF == 3 && $3 !~ /^(ferry|fy)_/ && $3 !~ /^_*(asan|ubsan|tsan|odr)_/ {
            sub(/:.*/, "", $1); sub(/.*_objects[.]dir[/]/, "", $1); print $1 ": external name " $3 }' \
        >>"$found"
    [ -f docs/porting-to-1.0.md ] || return 0
    sed -n 's/^| `ferry_\([a-z]*_[a-z_]*\)` | `[fF].*/\1/p' docs/porting-to-1.0.md >"$scratch/old"
    sources src | xargs awk '
        FILENAME ~ /\/old$/ { old[$1]; next }
        match($0, /"[a-z]+_[a-z_]+[":]/) {
            name = substr($0, RSTART + 1, RLENGTH - 2)
            if (name in old) printf "%s:%d: old name in a string: %s\n", FILENAME, FNR, name
        }' "$scratch/old" >>"$found"
}

# Each tag that begins with fy_ has one definition. A binding's network is its own: fy_nodes_net.
rule_tags()
{
    sources src | xargs awk '
        /^(typedef )?(struct|enum|union) (__attribute__[^ ]* )?fy_[a-z_]+ [{]/ {
            name = $(NF - 1)
            for (i = 1; i < NF; i++) if ($(i + 1) ~ /^[{]/) { name = $i; break }
            if (name == "fy_nodes_net") next
            if (name in place) printf "%s:%d: %s is defined in %s too\n", FILENAME, FNR, name, place[name]
            place[name] = FILENAME
        }' >"$found"
}

# A static function whose name stands in four files or more says in which module it is.
rule_statics()
{
    sources src | xargs awk '
        /^static / { gsub(/__attribute__[(][(][^)]*[)]*/, ""); begun = 1 }
        begun && match($0, /^[^=;(]*[(]/) {
            name = substr($0, 1, RLENGTH - 1)
            sub(/.*[ *]/, "", name)
            if (!((name, FILENAME) in seen)) { seen[name, FILENAME]; count[name]++; at[name] = FILENAME ":" FNR }
        }
        !/^static [^=;(]*$/ { begun = 0 }
        END { for (name in count) if (count[name] > 3)
            printf "%s: static %s stands in %d files\n", at[name], name, count[name] }' >"$found"
}

# No unfinished business.
rule_unfinished()
{
    code | grep -v '^tests/house/' |
        xargs grep -nEiw 'TODO|FIXME|XXX|stub|for now|not (yet )?implemented|placeholder' >"$found"
}

# No writable data in the library but two thread-local variables of base, in error.c and alloc.c.
rule_globals()
{
    objects | xargs objdump -t | awk '
        /file format/ { object = $1; sub(/:$/, "", object); sub(/.*_objects[.]dir[/]/, "", object) }
        { section = ""; for (i = 2; i < NF; i++) if ($i ~ /^[.*]/) { section = $i; break } }
        section ~ /^[.]data[.]rel[.]ro/ { next }
        section ~ /^[.]t(bss|data)/ && object ~ /^base\/(error|alloc)/ { next }
        section ~ /^([.]bss|[.]data|[.]tbss|[.]tdata|[*]COM[*])/ && $NF !~ /^[.]/ {
            print object ": writable " $NF " in " section }' >"$found"
}

# Above port, launch and base nobody asks the system for time, randomness, threads, sleep or memory.
rule_symbols()
{
    objects | grep -Ev '_objects.dir/(base|port|launch)/' | xargs nm -A -u | awk '
        { object = $1; sub(/:.*/, "", object); sub(/.*_objects[.]dir[/]/, "", object) }
        { sub(/@.*/, "", $NF) }
        $NF ~ /^(clock|clock_.*|gettimeofday|time|times|getrusage|timer_.*|timerfd_.*|(u|nano)?sleep)$/ ||
        $NF ~ /^((m|c|re|aligned_)alloc|reallocarray|strn?dup|posix_memalign|mmap)$/ ||
        $NF ~ /^(rand|srand|rand_r|random|srandom|random_r|.rand48|getrandom|getentropy)$/ ||
        $NF ~ /^(arc4random.*|pthread_.*|thrd_.*|mtx_.*|cnd_.*|sem_.*|sched_.*|syscall|fork)$/ {
            print object ": calls " $NF }' >"$found"
    sources src | grep -Ev '^src/(base|port|launch)/' | xargs grep -n 'rdtsc' >>"$found"
}

# Each public header compiles alone as C11 and C++17, shmem.h too, each other header as C11. The build
# has shown it of a header of src that a source includes before all others. clang++ finds casts of C in
# public headers, for programs that ask for this warning.
rule_headers()
{
    strict='-Wall -Wextra -Wpedantic -Wno-unused-function -Werror -fsyntax-only -Iinclude -Isrc -Icompat'
    sources src | grep '[.]c$' | xargs awk '
        FNR == 1 { first = 1 }
        first && /^#include/ { first = 0; if (gsub(/"/, "", $2)) print "src/" $2 }' >"$scratch/shown"
    for header in $(sources include src compat | grep '[.]h$' | grep -vxFf "$scratch/shown"); do
        name=${header#include/}
        name=${name#compat/}
        name=${name#src/}
        printf '#include <%s>\nextern int ferry_alone;\n' "$name" >"$scratch/alone.c"
        # shellcheck disable=SC2086
        cc -std=c11 -D_GNU_SOURCE $strict "$scratch/alone.c" 2>&1 || echo "$header: not C11 alone"
        case $header in src/* | compat/*state.h | compat/common.h) continue ;; esac
        # shellcheck disable=SC2086
        c++ -std=c++17 $strict -x c++ "$scratch/alone.c" 2>&1 || echo "$header: not C++17 alone"
        case $header-$(command -v clang++) in compat/* | *-) continue ;; esac
        # shellcheck disable=SC2086
        clang++ -std=c++17 $strict -Wold-style-cast -x c++ "$scratch/alone.c" 2>&1 ||
            echo "$header: has casts of C"
    done >"$found"
}

# Formatted by clang-format 14: other versions differ, so they do not count.
rule_format()
{
    for tool in clang-format-14 clang-format none; do
        "$tool" --version 2>/dev/null | grep -q 'version 14[.]' && break
    done
    [ "$tool" != none ] || { echo "clang-format 14 is not here"; exit 77; }
    code | xargs "$tool" --dry-run 2>&1 |
        awk -F: '/: warning: / && !seen[$1]++ { print $1 ": not formatted (make format)" }' >"$found"
}

# The core library: at most 300 KiB stripped, needs libc alone, exports ferry_ names and what the
# data library and the plug-ins are linked to. The data library needs that and the core library
# alone, exports ferry_ names and its layers, and the man pages of its functions say to link with it.
# Schedulers need public names alone, and memory that a simulation may refuse (base/alloc.h).
rule_library()
{
    strip -o "$scratch/ferry.so" "$build/lib/libferry.so"
    size=$(wc -c <"$scratch/ferry.so")
    [ "$size" -le 307200 ] || echo "libferry.so: $size bytes stripped, at most 307200" >"$found"
    echo "libferry.so: $size bytes stripped"
    readelf -d "$scratch/ferry.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -Ev '^(libc\.so|ld-linux)' | sed 's/^/libferry.so: needs /' >>"$found"
    (cd "$build/lib" &&
        nm -D --undefined-only libferry_data.so ferry/ferry-port-sim.so ferry/ferry-port-nodes.so \
            ferry/ferry-launch.so ferry/ferry-steer.so ferry/ferry-report.so ferry/ferry-why.so) |
        awk '$NF ~ /^fy_/ { print $NF }' | sort -u >"$scratch/needed"
    nm -D --undefined-only "$build/lib/ferry/ferry-schedulers.so" |
        awk '$NF ~ /^fy_/ && $NF !~ /^fy_([a-z_]*alloc|double)$/ {
            print "ferry-schedulers.so: needs " $NF }' >>"$found"
    nm -D --defined-only "$scratch/ferry.so" | awk '$NF !~ /^ferry_/ { print $NF }' | sort |
        comm -23 - "$scratch/needed" | sed 's/^/libferry.so: exports /' >>"$found"
    nm -D --defined-only "$build/lib/libferry_data.so" |
        awk '$NF !~ /^(ferry_|fy_[a-z]*_layer$)/ { print "libferry_data.so: exports " $NF }' >>"$found"
    awk -f "$tools/man.awk" -v out="$scratch" -v version=0 include/ferry/*.h
    nm -D --defined-only "$build/lib/libferry_data.so" | awk '$NF ~ /^ferry_/ { print $NF }' |
        while read -r name; do
            page=$(sed -n 's/^[.]so man3[/]//p' "$scratch/$name.3")
            grep -q 'lferry_data' "$scratch/${page:-$name.3}" ||
                echo "$name(3) does not say -lferry_data; tools/man.awk lists the headers"
        done >>"$found"
}

# Every source is compiled here, or at least named in a build file or script (a peer that is not
# installed is not compiled); every header is included by someone.
rule_dead()
{
    { find . \( -name CMakeLists.txt -o -name '*.cmake' -o -name '*.sh' \) -not -path './build/*' |
        xargs cat; \
        grep '"file":' "$build/compile_commands.json"; } >"$scratch/lists"
    code | xargs grep -h '^#include' >"$scratch/includes"
    code | awk -v lists="$scratch/lists" -v includes="$scratch/includes" '
        BEGIN {
            while ((getline line <lists) > 0) {
                gsub(/[^A-Za-z0-9_.+-]+/, " ", line)
                for (n = split(line, word, " "); n > 0; n--) built[word[n]]
            }
            while ((getline line <includes) > 0) {
                gsub(/[\/<>"]/, " ", line)
                for (n = split(line, word, " "); n > 0; n--) included[word[n]]
            }
        }
        {
            name = $0; sub(/.*[/]/, "", name)
            if (name ~ /[.]c$/ && !(name in built)) print $0 ": is not built"
            if (name ~ /[.]h$/ && name != "ferry.h" && !(name in included))
                print $0 ": nobody includes it"
        }' >>"$found"
}

# Each atomic operation names its memory order: in the call, or as seq_cst in a comment close above.
rule_atomics()
{
    sources src | xargs awk '
        FNR == 1 { named = -9 }
        /seq_cst/ { named = FNR }
        /atomic_(load|store|exchange|fetch_[a-z]+|compare_exchange_[a-z]+) *\(/ {
            if (FNR - named > 8) printf "%s:%d: memory order not named: %s\n", FILENAME, FNR, $0 }' \
        >"$found"
}

# Conditional compilation stays in port, launch, base and the public headers.
rule_conditionals()
{
    sources src | grep -Ev '^src/(port|launch|base)/' |
        xargs awk '/^ *#(if|ifdef|elif)( |$)/ || (/^ *#ifndef/ && $2 !~ /^FY_[A-Z0-9_]+_H$/) {
            printf "%s:%d: %s\n", FILENAME, FNR, $0 }' >"$found"
}

# Every variable of the environment that the library reads, and every option of the command, is in
# ferry(1), and ferry(1) names no other variable. FERRY_JOB_... are exceptions: the launcher sets them for its ranks, and users need not
# know. docs/reference/environment.md has a row for each variable that src/base/env.c knows, with
# the range of its numbers, and no other row.
rule_variables()
{
    sources src | xargs grep -noE '"FERRY_[A-Z_]+"' |
        grep -vE '"FERRY_(OK|E[A-Z]+|JOB_[A-Z_]+)"' | while IFS=: read -r file line name; do
        name=$(echo "$name" | tr -d '"')
        grep -q "$name" docs/man/ferry.1.in || echo "$file:$line: $name is not in ferry(1)"
    done >"$found"
    tr -d '\\' <docs/man/ferry.1.in >"$scratch/man"
    sources src/cmd | xargs grep -HnoE '\{"[a-z-]+", (no|required)_argument' |
        sed 's/{"/--/; s/".*//' | while IFS=: read -r file line name; do
        grep -qE -- "$name([^a-z-]|\$)" "$scratch/man" || echo "$file:$line: $name is not in ferry(1)"
    done >>"$found"
    grep -noE 'FERRY_[A-Z_]+' docs/man/ferry.1.in | grep -vE ':FERRY_E[A-Z]+$' |
        while IFS=: read -r line name; do
        grep -qE "\"$name\"|FY_ENV_${name#FERRY_}[^A-Z_]" src/base/env.c ||
            echo "docs/man/ferry.1.in:$line: no variable $name"
        done >>"$found"
    awk -v page=docs/reference/environment.md '
        # A number of the C source as the page writes it.
        function text(number,    bits) {
            if (number ~ /^BIT/) {
                bits = number; gsub(/[^0-9]/, "", bits)
                return bits >= 60 || bits % 10 > 9 ? "2^" bits \
                    : 2 ^ (bits % 10) substr("KMGT", int(bits / 10), 1)
            }
            return number == "UINT64_MAX" ? "2^64-1" : number == "INT32_MAX" ? 2147483647 : number
        }
        FILENAME == page && /^[|] `FERRY_/ {
            split($0, cell, /[|]/); split(cell[2], word, "`")
            row[word[2]] = cell[3]; at[word[2]] = FNR
        }
        FILENAME != page && /^    [{]("FERRY_|FY_ENV_)/ {
            gsub(/[{},"]/, " "); name = $1; sub(/^FY_ENV_/, "FERRY_", name)
            known[name] = 1
            if (!(name in row)) printf "%s:%d: %s is not in %s\n", FILENAME, FNR, name, page
            else if ($3 != 0 && index(row[name] " ", " " text($2) " to " text($3) " ") == 0 &&
                     index(row[name], " " text($2) " to " text($3) ",") == 0)
                printf "%s:%d: %s is from %s to %s\n", page, at[name], name, text($2), text($3)
        }
        END { for (name in row) if (!(name in known))
                  printf "%s:%d: no variable %s\n", page, at[name], name }
        ' docs/reference/environment.md src/base/env.c >>"$found"
}

# docs/reference/functions.md is what tools/functions.sh prints.
rule_functions()
{
    page=docs/reference/functions.md
    sh "$tools/functions.sh" "$root" | diff "$page" - >"$scratch/out" || {
        sed "s|^|$page: |" "$scratch/out"
        echo "$page: run sh tools/functions.sh >$page"
    } >"$found"
}

# docs/architecture.svg is what tools/architecture.sh draws of the includes.
rule_architecture()
{
    page=docs/architecture.svg
    sh "$tools/architecture.sh" "$root" >"$scratch/drawn" && cmp -s "$page" "$scratch/drawn" ||
        echo "$page: run sh tools/architecture.sh >$page" >"$found"
    # Rows of "Where it happens": what, files below src, functions. Each of them is defined there.
    awk -F '|' '/^## / { on = /Where it happens/ }
        on && /^[|].*`/ {
            files = ""
            for (i = split($3, f, "`") - 1; i > 0; i -= 2) files = files " src/" f[i]
            for (i = split($4, g, "`") - 1; i > 0; i -= 2) print g[i] files
        }' docs/architecture.md | while read -r function files; do
        # shellcheck disable=SC2086
        cat $files 2>&1 | grep -qE "^[a-z_].*[ *]$function\\(" ||
            echo "docs/architecture.md: $function is not defined in$(printf ' %s' $files)"
    done >>"$found"
}

# No test passes by its text alone: CTest's PASS_REGULAR_EXPRESSION ignores the exit status.
rule_statuses()
{
    find tests examples apps bench \( -name CMakeLists.txt -o -name '*.cmake' \) 2>/dev/null |
        xargs awk '/PASS_REGULAR_EXPRESSION/ {
            printf "%s:%d: takes no account of the exit status; use ferry_expect_test\n", FILENAME, FNR
        }' /dev/null >"$found"
}

# English of the pages and folders that tests/house/words.list names: words.awk says what is checked.
rule_words()
{
    while read -r path; do
        case $path in \#* | '') continue ;; esac
        # shellcheck disable=SC2086
        find $path \( -name '*.md' -o -name '*.[ch]' -o -name '*.sh' -o -name '*.cmake' -o \
            -name CMakeLists.txt -o -path 'tools/*' -a -type f \)
    done <tests/house/words.list | sort -u |
        xargs -r awk -f "$here/words.awk" docs/glossary.md >"$found"
}

# Messages of the commits after 8a887d7, as far as the history is there: a subject "area: what
# changes" of at most 72 characters, and a blank line after it.
rule_commits()
{
    git log --format='%x01%h%n%B' "${COMMITS_AFTER-8a887d7}..HEAD" 2>/dev/null | awk '
        BEGIN { RS = "\001"; old = "d84da98" }
        NR > 1 {
            n = split($0, line, "\n")
            if (index(line[1], old) == 1) next
            if (line[2] !~ /^[a-z0-9_., \/-]+: [^ ]/)
                print line[1] ": subject without \"area: \": " line[2]
            if (length(line[2]) > 72) printf "%s: subject of %d characters\n", line[1], length(line[2])
            if (n > 2 && line[3] != "") print line[1] ": no blank line after the subject"
        }' >"$found"
}

# The tests of the build, one in a line: names that CTest knows, and cmocka's test functions in the
# sources of programs that CTest runs.
registered_tests()
{
    find "$build" -name CTestTestfile.cmake -exec grep -h '^add_test(' {} + >"$scratch/added"
    sed 's/^add_test(\(\[=*\[\)\{0,1\}\([A-Za-z0-9_.-]*\).*/\2/' "$scratch/added"
    sed -n 's/.* -o [^ ]*CMakeFiles\/\([^/]*\)\.dir\/.* \([^ ]*\.c\)".*/\1 \2/p' \
        "$build/compile_commands.json" | sort -u >"$scratch/compiled"
    awk 'FILENAME ~ /added$/ {
            for (n = split($0, w, "\""); n > 0; n--)
                if (sub(/.*[/]/, "", w[n])) run[w[n]]
            next
        }
        $1 in run { print $2 }' "$scratch/added" "$scratch/compiled" | sort -u | xargs -r awk '
        FNR == 1 { delete defined }
        match($0, /^static void test_[a-z0-9_]*\(void \*\*/) {
            name = $3; sub(/\(.*/, "", name); defined[name]; next }
        { for (name in defined) if ($0 ~ "[(]" name "[,)]") print name }'
}

# Names in docs/coverage.md exist: functions in the public headers; tests as registered_tests says,
# or models that make verify checks. obj/absent of the build has a line for each optional package
# that is missing: its name, and an expression for the tests that it would have.
rule_coverage()
{
    cat "$build/obj/absent" >"$scratch/absent" 2>/dev/null
    sources include src | xargs cat >"$scratch/functions"
    { registered_tests; sed -n '/^done <<END/,/^END/s/^\([a-z]*\) .*/tests\/models\/\1.pml/p' \
        tests/models/run.sh 2>/dev/null; } >"$scratch/tests"
    grep -ohE '(ferry|fy)_[a-z_]+' "$scratch/functions" | sort -u >"$scratch/known"
    awk -F '|' '
        FILENAME ~ /known$/ { known[$0]; next }
        FILENAME ~ /tests$/ { test[$0]; next }
        FILENAME ~ /absent$/ { sub(/^[^ ]* /, ""); absent[$0]; next }
        function is_absent(name,    pattern) {
            for (pattern in absent)
                if (name ~ pattern) return 1
            return 0
        }
        /^[|] [A-Z][0-9]/ {
            count = split($4, word, "`")
            for (i = 2; i <= count; i += 2)
                if (word[i] ~ /^(ferry|fy)_[a-z_]+$/ && !(word[i] in known))
                    print "coverage:" $2 ": no function " word[i]
            count = split($5, word, "`")
            for (i = 2; i <= count; i += 2)
                if (!(word[i] in test) && !is_absent(word[i]))
                    print "coverage:" $2 ": no registered test " word[i]
            if ($4 ~ /[a-z]/ && $5 !~ /[a-z]/) print "coverage:" $2 ": functions without a test"
        }' "$scratch/known" "$scratch/tests" "$scratch/absent" docs/coverage.md >"$found"
}

"rule_$rule"
[ ! -s "$found" ] && exit 0
cat "$found"
echo "house rule $rule: $(wc -l <"$found") violations"
exit 1
