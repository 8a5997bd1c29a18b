# Words: checks the English of pages (.md) and of comments (.c, .h; lines that begin with # in other
# files: scripts, CMake) by docs/glossary.md.
#
#     awk -f words.awk docs/glossary.md FILE...
#
# Prints FILE:LINE: what. A retired word: the first column of the glossary's table "Retired words";
# an entry with parentheses has a second meaning, which a program cannot tell, so it is skipped. A
# sentence of more than 35 words. A sentence without a head: it begins with Who, What, Which, Whose,
# Whoever or Of, and does not end with a question mark. A line of a page with more than 100 columns,
# tables and links excepted. Code, in fences or backticks, is not looked at; LINE is the block's first.

FNR == 1 {
    flush()
    fenced = comment = retiring = 0
    page = FILENAME ~ /[.]md$/
    script = FILENAME !~ /[.](md|c|h|in)$/
}

# The glossary, when it comes first.
FNR == NR && /^## Retired words/ { retiring = 1 }
FNR == NR && retiring && /^[|] [a-z]/ {
    split($0, cell, / *[|] */)
    if (cell[2] !~ /\(/ && cell[2] != "not") {
        count = split(cell[2], part, /, */)
        for (i = 1; i <= count; i++) retired[tolower(part[i])] = cell[3]
    }
}
FNR == NR { next }
FNR == 1 { skipped = 0 }
/^## Retired words/ { skipped = 1 } # the table itself
skipped { next }

script {
    if ($0 !~ /^ *# /) { flush(); next }
    text = $0
    sub(/^ *# /, "", text)
    if (text ~ /^  / || text ~ /^- /) flush() # a sample or a list
    add(text, FNR)
    next
}

!page {
    text = $0
    if (!comment) {
        if (!match(text, /\/[*]/)) next
        text = substr(text, RSTART + 2)
        comment = 1
        start = FNR
    }
    ends = index(text, "*/")
    if (ends) text = substr(text, 1, ends - 1)
    sub(/^ *[*] ?/, "", text)
    if (text ~ /^ *$/ || text ~ /^     /) flush() # a blank line or a sample ends a paragraph
    else {
        if (text ~ /^ *- / || text ~ /^  +[^ ].*[^.;:?!]  +[^ ]/) flush() # a list, or a table's row
        add(text, FNR)
    }
    if (ends) { comment = 0; flush() }
    next
}

/^```/ { flush(); fenced = !fenced; next }
fenced { next }
/^    / && block == "" { next }
length($0) > 100 && !/^[|]/ && !/^ *[-*]? *\[?!?\[[^ ]*$/ {
    width = $0
    gsub(/[^\001-\177]+/, "x", width)
    if (length(width) > 100) printf "%s:%d: %d columns\n", FILENAME, FNR, length(width)
}
/^ *$/ { flush(); next }
/^[|]/ {
    flush()
    if ($0 ~ /^[|][-|: ]+$/) next
    line = $0
    gsub(/\\[|]/, "/", line)
    count = split(code(line), cell, /[|]/)
    for (c = 1; c <= count; c++) { add(cell[c], FNR); flush() }
    next
}
/^#/ { flush(); text = $0; sub(/^#+ */, "", text); heading = 1; add(text, FNR); flush(); heading = 0; next }
/^ *([-*]|[0-9]+[.]) / { flush(); sub(/^ *([-*]|[0-9]+[.]) +/, "") }
{ add($0, FNR) }

END { flush() }

# Without what is not English.
function code(text)
{
    gsub(/`[^`]*`/, "X", text)
    return text
}

function add(text, at)
{
    if (block == "") { first = at; of = FILENAME }
    block = block (block == "" ? "" : " ") text
}

function flush(    text, n, i, sentence, rest)
{
    if (block == "") return
    text = code(block)
    block = ""
    gsub(/!?\[/, "", text)
    gsub(/\]\([^)]*\)/, "", text)
    gsub(/[*]/, "", text)
    say_retired(text)
    if (heading) return
    rest = text
    while (rest != "") {
        if (match(rest, /[.!?]["')]*( |$)/)) {
            sentence = substr(rest, 1, RSTART + RLENGTH - 1)
            rest = substr(rest, RSTART + RLENGTH)
        } else { sentence = rest; rest = "" }
        say_sentence(sentence)
    }
}

function say_sentence(sentence,    n, i, word, words)
{
    n = split(sentence, word, / +/)
    for (i = 1; i <= n; i++) words += word[i] ~ /[A-Za-z0-9]/
    sub(/^ +/, "", sentence)
    if (words > 35)
        printf "%s:%d: sentence of %d words: %s...\n", of, first, words, substr(sentence, 1, 60)
    if (sentence ~ /^(Who|What|Which|Whose|Whoever|Of) / && sentence !~ /[?]["')]* *$/ && words > 2 &&
        sentence ~ /[.;:]["')]* *$/)
        printf "%s:%d: sentence without a head: %s...\n", of, first, substr(sentence, 1, 60)
}

# Words that stand alone, in the singular or plural.
function say_retired(text,    lower, word)
{
    lower = " " tolower(text) " "
    gsub(/[^a-z0-9' -]+/, " ", lower)
    # A sort of things is a kind; to sort is to order.
    gsub(/ sorts? of chunks /, " ", lower)
    gsub(/ sorts? of /, " SORT OF ", lower)
    gsub(/ sorts? /, " ", lower)
    gsub(/ SORT OF /, " sort of ", lower)
    for (word in retired)
        if (index(lower, " " word " ") || index(lower, " " word "s "))
            printf "%s:%d: \"%s\" is retired; the word is %s\n", of, first, word, retired[word]
}

