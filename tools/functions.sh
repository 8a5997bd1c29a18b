#!/bin/sh
# functions.sh [ROOT] prints docs/reference/functions.md: every function, type and macro of the
# public headers, by header and section. A section begins with a comment of one line that has no
# function after it.
# tests/house compares. To write the page: sh tools/functions.sh >docs/reference/functions.md
set -eu
cd "${1:-$(dirname "$0")/..}"
cat <<'END'
# Functions and types

Each name has a man page, such as `man ferry_barrier`. Its text is the comment in the header. This
list is made from the headers by `sh tools/functions.sh >docs/reference/functions.md`.
END
for header in error core member collective two_sided background memory object balance mover_region \
    mover_plan mover \
    mover_blocks mover_file cell collection window window_blocks store trace launch; do
    [ -f "include/ferry/$header.h" ] || continue
    order="${order-} include/ferry/$header.h"
done
for header in include/ferry/*.h; do
    case " $order " in *" $header "*) ;; *) order="$order $header" ;; esac
done
# shellcheck disable=SC2086
awk '
    # A name belongs to the section that is open; the first of a section prints its heading.
    function add(name) {
        if (name in seen) return
        seen[name] = 1
        if (!headed) printf "\n## %s\n", title
        headed = 1
        line = line (line == "" ? "" : ", ") "`" name "`"
    }
    function flush(    n, words, i, out) {
        if (line == "") return
        out = "- " (section == "" ? "" : section ": ")
        n = split(line, words, " ")
        for (i = 1; i <= n; i++) {
            if (length(out) + length(words[i]) > 99) { print out; out = "  " }
            out = out (out ~ /[- ] $/ || out == "  " || out ~ /: $/ ? "" : " ") words[i]
        }
        print out
        line = ""
    }
    FNR == 1 {
        flush(); headed = 0; section = ""; name = FILENAME; sub(/.*\//, "", name); title = name
        blank = 0
    }
    /^$/ {
        if (held != "") { flush(); section = held; held = "" }
        blank = 1; next
    }
    blank && /^\/[*] [A-Z][^[]*[.] [*]\/$/ {
        held = $0; gsub(/^\/[*] |[.]( .*)? [*]\/$/, "", held)
        if (length(held) > 60 || held ~ /^A /) held = ""
        blank = 0; next
    }
    held != "" { # a section if a comment or nothing follows it
        if (/^\/[*]/) { flush(); section = held }
        held = ""
    }
    { blank = 0 }
    /^FERRY_API/ { text = ""; open = 1 }
    open { text = text " " $0 }
    open && /;/ { open = 0; sub(/\(.*/, "", text); n = split(text, w, /[ *]+/); add(w[n]) }
    /^static inline/ { text = $0; sub(/\(.*/, "", text); n = split(text, w, /[ *]+/); add(w[n]) }
    /^} ferry_[a-z_]+;/ { sub(/;/, "", $2); add($2) }
    /^typedef .*\(.*ferry_|^typedef [a-z_ ]+ ferry_[a-z_]+\(/ {
        text = $0; sub(/\(.*/, "", text); n = split(text, w, /[ *]+/); if (w[n] ~ /^ferry_/) add(w[n]) }
    /^#define FERRY_[A-Z_]+[ (]/ && !/_H$/ { name = $2; sub(/\(.*/, "", name); add(name) }
    END { flush() }' $order
