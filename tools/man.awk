# Writes a man page for each public function and type, from the comments of the headers.
#
#   awk -f tools/man.awk -v out=DIR -v version=0.1.0 include/ferry/*.h
#
# A comment belongs to the declarations that follow it without a blank line. A comment that stands
# alone introduces a section; when it has a contract in brackets, the section's functions that have
# none of their own inherit it. Functions that share a comment share a page.

function trim(s)
{
    sub(/^[ \t]+/, "", s)
    sub(/[ \t]+$/, "", s)
    return s
}

# `names` and lone identifiers in the comment become bold; troff's own characters are escaped.
function troff(s,    n, part, i, r)
{
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    n = split(s, part, "`")
    r = ""
    for (i = 1; i <= n; i++)
        r = r (i % 2 == 0 ? "\\fI" part[i] "\\fR" : part[i])
    if (r ~ /^[.']/)
        r = "\\&" r
    return r
}

# Length of the sentence at the start of `s`, with its full stop.
function sentence_length(s)
{
    if (match(s, /[.]( |$)/))
        return RSTART
    return length(s)
}

# Splits a comment into contract, errors, references and the rest.
function dissect(s,    k, one, at, end)
{
    contract = ""
    body = ""
    references = ""
    errors = 0
    if (match(s, /\[(as|app|any|main|the|either) [^\]]*\]/)) {
        contract = substr(s, RSTART + 1, RLENGTH - 2)
        s = trim(substr(s, 1, RSTART - 1)) " " trim(substr(s, RSTART + RLENGTH))
        s = trim(s)
        sub(/^[.] */, "", s)
    }
    while (s != "") {
        k = sentence_length(s)
        one = trim(substr(s, 1, k))
        s = trim(substr(s, k + 1))
        if (one ~ /^FERRY_E[A-Z]+(, [^:]*)?:/) {
            errors++
            at = index(one, ":")
            error_name[errors] = troff(substr(one, 1, at - 1))
            error_text[errors] = trim(substr(one, at + 1))
        } else if (one ~ /^[a-z-]+[.]txt /) {
            references = one
        } else {
            body = body (body == "" ? "" : " ") one
        }
    }
    return errors
}

function name_of(declaration)
{
    sub(/\(.*/, "", declaration)
    if (match(declaration, /[A-Za-z_0-9]+$/))
        return substr(declaration, RSTART, RLENGTH)
    return ""
}

function remember(    i)
{
    if (declarations == 0)
        return
    pages++
    page_comment[pages] = comment
    page_section[pages] = section
    page_header[pages] = header
    page_module[pages] = module
    page_names[pages] = ""
    page_synopsis[pages] = ""
    for (i = 1; i <= declarations; i++) {
        page_names[pages] = page_names[pages] (i > 1 ? ", " : "") name_of(declaration[i])
        page_synopsis[pages] = page_synopsis[pages] declaration[i] ";\n"
        owner[name_of(declaration[i])] = pages
    }
    declarations = 0
}

# Name of the type whose declaration ends with `line`.
function type_name(line)
{
    sub(/\(.*/, "", line)
    sub(/;.*/, "", line)
    sub(/[ \t]+$/, "", line)
    return match(line, /[A-Za-z_0-9]+$/) ? substr(line, RSTART, RLENGTH) : ""
}

# A type with a comment of its own; those without are said with their functions.
function remember_type(    name)
{
    name = type_name(type_text ~ /{/ ? $0 : type_first)
    in_type = 0
    if (comment == "" || name == "")
        return
    types++
    type[types] = name
    type_synopsis[name] = type_text
    type_comment[name] = comment
    type_header[name] = header
    owner[name] = "type " name
}

FNR == 1 {
    remember()
    header = FILENAME
    sub(/.*\//, "", header)
    comment = section = module = ""
    in_comment = in_declaration = in_type = in_inline = 0
}

!in_comment && /^static inline/ {
    in_inline = 1
    text = ""
}

# The head is the declaration; the body is passed over.
in_inline == 1 {
    text = text (text == "" ? "" : " ") trim($0)
    if ($0 ~ /\)$/) {
        sub(/^static inline */, "", text)
        declaration[++declarations] = text
        in_inline = 2
    }
    next
}

in_inline == 2 {
    if ($0 ~ /^}/)
        in_inline = 0
    next
}

!in_comment && /^typedef/ {
    remember()
    in_type = typed = 1
    type_first = $0
    type_text = ""
}

in_type {
    type_text = type_text $0 "\n"
    if ($0 ~ /^}.*;/ || (type_text !~ /{/ && $0 ~ /;/))
        remember_type()
    next
}

!in_comment && /^\/\*/ {
    remember()
    in_comment = 1
    typed = 0
    comment = ""
}

in_comment {
    line = $0
    last = line ~ /\*\//
    sub(/^\/\*/, "", line)
    sub(/^ \*( |$)/, "", line)
    sub(/\*\/.*/, "", line)
    comment = comment (comment == "" ? "" : " ") trim(line)
    comment = trim(comment)
    if (last) {
        in_comment = 0
        if (module == "")
            module = comment
    }
    next
}

/^FERRY_API/ {
    in_declaration = 1
    text = ""
}

in_declaration {
    text = text (text == "" ? "" : " ") trim($0)
    if ($0 ~ /;/) {
        in_declaration = 0
        sub(/^FERRY_API */, "", text)
        sub(/^FERRY_MUST_USE */, "", text)
        sub(/;.*/, "", text)
        declaration[++declarations] = text
    }
    next
}

/^[ \t]*$/ {
    if (declarations > 0)
        remember()
    else if (comment != "" && !typed)
        section = comment
    comment = ""
    next
}

# Anything else, such as a type: its comment introduces no section.
{
    remember()
    typed = 1
}

function see_also(p, text,    n, word, i, w, list, seen)
{
    list = ""
    n = split(text, word, /[^A-Za-z_0-9]+/)
    for (i = 1; i <= n; i++) {
        w = word[i]
        if ((w in owner) && owner[w] != p && !((p, w) in mentioned)) {
            mentioned[p, w] = 1
            list = list ".BR " w " (3),\n"
        }
    }
    return list ".BR ferry (1)"
}

function write_page(p,    names, n, i, file, summary, inherited, text, k, parts, m, upper)
{
    dissect(page_section[p])
    inherited = contract
    inherited_errors = errors
    text = page_comment[p]
    own_errors = dissect(text)
    if (contract == "")
        contract = inherited
    if (own_errors == 0 && text !~ /\[/)
        errors = inherited_errors
    n = split(page_names[p], names, ", ")
    file = out "/" names[1] ".3"
    upper = toupper(names[1])
    k = sentence_length(body)
    summary = substr(body, 1, k)
    sub(/[.]$/, "", summary)
    summary = tolower(substr(summary, 1, 1)) substr(summary, 2)

    printf ".TH %s 3 \"\" \"Ferry %s\" \"Ferry Programmer's Manual\"\n", upper, version > file
    printf ".SH NAME\n%s \\- %s\n", page_names[p], troff(summary) > file
    printf ".SH SYNOPSIS\n.nf\n.B #include <ferry/%s>\n.PP\n", page_header[p] > file
    printf "%s.fi\n.PP\nLink with \\fI%s\\-lferry\\fR.\n", troff(page_synopsis[p]),
        page_header[p] ~ /^(cell|mover)/ ? "\\-lferry_data " : "" > file
    printf ".SH DESCRIPTION\n%s\n", troff(body) > file
    if (contract != "") {
        printf ".SH CONTRACT\n" > file
        m = split(contract, parts, "|")
        for (i = 1; i <= m; i++)
            printf ".IP \\(bu 2\n%s\n", troff(trim(parts[i])) > file
    }
    if (errors > 0) {
        printf ".SH ERRORS\n" > file
        for (i = 1; i <= errors; i++)
            printf ".TP\n.B %s\n%s\n", error_name[i], troff(error_text[i]) > file
    }
    if (references != "")
        printf ".SH REFERENCES\n%s\n", troff(references) > file
    printf ".SH SEE ALSO\n%s\n", see_also(p, text " " page_synopsis[p]) > file
    close(file)
    for (i = 2; i <= n; i++) {
        printf ".so man3/%s.3\n", names[1] > (out "/" names[i] ".3")
        close(out "/" names[i] ".3")
    }
}

function write_type(name,    file, text, p, list, k, summary)
{
    file = out "/" name ".3"
    text = type_comment[name]
    dissect(text)
    k = sentence_length(body)
    summary = substr(body, 1, k)
    sub(/[.]$/, "", summary)
    summary = tolower(substr(summary, 1, 1)) substr(summary, 2)
    printf ".TH %s 3 \"\" \"Ferry %s\" \"Ferry Programmer's Manual\"\n", toupper(name), version > file
    printf ".SH NAME\n%s \\- %s\n", name, troff(summary) > file
    printf ".SH SYNOPSIS\n.nf\n.B #include <ferry/%s>\n.PP\n", type_header[name] > file
    printf "%s.fi\n", troff(type_synopsis[name]) > file
    printf ".SH DESCRIPTION\n%s\n", troff(body) > file
    if (contract != "")
        printf ".SH CONTRACT\n%s\n", troff(contract) > file
    if (references != "")
        printf ".SH REFERENCES\n%s\n", troff(references) > file
    list = see_also("type " name, text " " type_synopsis[name])
    for (p = 1; p <= pages; p++)
        if (page_synopsis[p] ~ ("(^|[^A-Za-z_0-9])" name "([^A-Za-z_0-9]|$)")) {
            split(page_names[p], called, ", ")
            if (!(("type " name, called[1]) in mentioned))
                list = ".BR " called[1] " (3),\n" list
        }
    printf ".SH SEE ALSO\n%s\n", list > file
    close(file)
}

END {
    remember()
    for (p = 1; p <= types; p++)
        write_type(type[p])
    for (p = 1; p <= pages; p++)
        write_page(p)
}
