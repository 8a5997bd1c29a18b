# Writes a man page for each public function and type, from the comments of the headers.
#
#   awk -f tools/man.awk -v out=DIR -v version=0.1.0 include/ferry/*.h
#
# A comment belongs to the declarations that follow it without a blank line. A comment that stands
# alone introduces a section. Its text and its errors belong to each function of the section, and
# its contract in brackets to those that have none of their own. Functions that share a comment
# share a page. Error codes have a page, ferry_errors(3), and explain errors that a comment only
# names.

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

# The papers by the short names that the comments have for them.
BEGIN {
    paper["dmcs.txt"] = "K. Barker, N. Chrisochoides, J. Dobbelaere, D. Nave, K. Pingali: Data Movement and Control Substrate"
    paper["prema.txt"] = "K. Barker: Runtime support for load balancing of parallel adaptive and irregular applications (2004)"
    paper["kelp-data-mover.txt"] = "S. Baden, S. Fink: A data mover for block-structured calculations (KeLP)"
    paper["progressive-messages.txt"] = "C. Aycock: Progressive Messages (2011)"
    paper["cds.txt"] = "D. DiNucci: Cooperative Data Sharing (CDS)"
}

# "dmcs.txt 3.1, prema.txt B.2.1." as a list of titles with sections; what stands in a sentence, as
# its author's name.
function cite(s, list,    name, at)
{
    for (name in paper)
        while ((at = index(s, name)) > 0)
            s = substr(s, 1, at - 1) (list ? "\n.PP\n" paper[name] ", section" : short(name)) \
                substr(s, at + length(name))
    if (list) {
        gsub(/, *\n/, ".\n", s)
        sub(/^\n.PP\n/, "", s)
    }
    return s
}

function short(name)
{
    name = paper[name]
    sub(/:.*/, "", name)
    sub(/.*[.] /, "", name)
    return name
}

function add_error(name, text)
{
    errors++
    error_name[errors] = name
    error_text[errors] = trim(text)
}

# A sentence that only tells errors: "FERRY_EINVAL: why; FERRY_EPEER: why." or a list of names. False
# when it is another one.
function read_errors(one,    n, part, i, at)
{
    if (one ~ /^(Other e|E)rrors as /) {
        errors_as = errors_as (errors_as == "" ? "" : " ") one
        return 1
    }
    sub(/^(Errors of all( calls)?: |Also |So too )/, "", one)
    if (one !~ /^FERRY_E[A-Z]+/)
        return 0
    gsub(/; *(so too )?FERRY_E/, "\001FERRY_E", one)
    n = split(one, part, "\001")
    for (i = 1; i <= n; i++) {
        match(part[i], /^FERRY_E[A-Z]+((,| and| or) FERRY_E[A-Z]+)*( \([^)]*\))?((,| and| or) FERRY_E[A-Z]+)*/)
        at = RLENGTH
        one = substr(part[i], at + 1)
        sub(/^[:;.,] */, "", one)
        add_error(substr(part[i], 1, at), one)
    }
    return 1
}

# Splits a comment into contract, errors, references and the rest.
function dissect(s,    k, one)
{
    contract = ""
    body = ""
    references = ""
    errors_as = ""
    errors = 0
    if (match(s, /\[(as|app|any|main|the|either|handlers,) [^\]]*\]/)) {
        contract = substr(s, RSTART + 1, RLENGTH - 2)
        s = trim(substr(s, 1, RSTART - 1)) " " trim(substr(s, RSTART + RLENGTH))
        s = trim(s)
        sub(/^[.] */, "", s)
    }
    while (s != "") {
        k = sentence_length(s)
        one = trim(substr(s, 1, k))
        s = trim(substr(s, k + 1))
        if (read_errors(one))
            continue
        if (one ~ /^[a-z-]+[.]txt /)
            references = references (references == "" ? "" : " ") one
        else
            body = body (body == "" ? "" : " ") cite(one, 0)
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

# A value that fills a type is on that type's page.
!in_comment && /^#define FERRY_[A-Z_]*DEFAULTS/ && types > 0 {
    type_macros[type[types]] = type_macros[type[types]] "\n#define " $2 "\n"
}

# The codes of error.h, each with its comment, and what a group of them has in common.
header == "error.h" && /^    \/\*.*\*\// {
    group = trim($0)
    gsub(/^\/\* | \*\/$|[.] \*\/$/, "", group)
    next
}

header == "error.h" && /^    FERRY_E[A-Z]+ =/ {
    code[++codes] = $1
    code_number[codes] = $3
    sub(/,$/, "", code_number[codes])
    code_group[codes] = group
    group = ""
    text = $0
    sub(/.*\/\* */, "", text)
    sub(/ *\*\/.*/, "", text)
    code_text[$1] = text
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
    return list ".BR ferry (7),\n.BR ferry (1)"
}

# The text of a section beyond its title, which is one short sentence.
function preamble(    k)
{
    k = sentence_length(body)
    return k < 40 && k == length(body) ? "" : body
}

# Errors that the section names for all its functions come after the function's own.
function join_errors(p,    own, i, names)
{
    dissect(page_section[p])
    common = preamble()
    common_contract = contract
    own = errors
    for (i = 1; i <= own; i++) {
        common_name[i] = error_name[i]
        common_text[i] = error_text[i]
    }
    dissect(page_comment[p])
    names = " "
    for (i = 1; i <= errors; i++)
        names = names error_name[i] " "
    for (i = 1; i <= own; i++)
        if (index(names, common_name[i]) == 0)
            add_error(common_name[i], common_text[i])
    if (contract == "")
        contract = common_contract
}

function meaning(name, text)
{
    sub(/[^A-Z_].*/, "", name)
    return text != "" ? text : code_text[name] "."
}

# Whether a summary begins with a verb: it says what the function does, not what it returns.
function is_act(summary)
{
    return summary ~ /^[A-Za-z]+s / && summary !~ /^([Rr]uns|[Tt]his) /
}

# Whether a sentence says what a function returns. "Returns when every rank has called it" does not.
function is_value(one)
{
    if (one ~ /^Returns (when|before|immediately)/)
        return 0
    return one ~ /^(Returns|Gives back|True|False|Whether) / ||
           one ~ / returns (-?[0-9]|true|false|NULL|how) /
}

# The return value of a function: what its comment says of it, else what its kind of function gives.
function print_value(p, file, summary,    type, n, one, i, said)
{
    type = page_synopsis[p]
    sub(/[a-z_0-9]*\(.*/, "", type)
    if (type ~ /^void *$/)
        return
    n = split(body, one, /[.] /)
    said = ""
    for (i = 1; i <= n; i++)
        if (is_value(one[i]))
            said = said trim(one[i]) (one[i] ~ /[.]$/ ? " " : ". ")
    printf ".SH RETURN VALUE\n" > file
    if (said != "")
        printf "%s\n", troff(trim(said)) > file
    else if (type !~ /^int *$/ || (errors == 0 && errors_as == "" && !is_act(summary)))
        printf "%s.\n", troff(toupper(substr(summary, 1, 1)) substr(summary, 2)) > file
    else
        printf "0 on success.\n" > file
    if (type ~ /^int *$/ && said == "" && errors == 0 && errors_as == "" && is_act(summary))
        printf "On failure a code of\n%s\n",
            ".BR ferry_errors (3),\nwhich is negative;\n.BR ferry_error_message (3)\nsays what was wrong." > file
    if (type ~ /^int *$/ && (errors > 0 || errors_as != ""))
        printf "On failure one of the errors below, which are negative;\n%s\n",
            ".BR ferry_error_message (3)\nsays what was wrong and names the values." > file
}

# "Errors as x." is "As x." below the title ERRORS.
function sentence_case(s)
{
    gsub(/(^|[.] )Errors as /, "&\001", s)
    gsub(/Errors as \001/, "As ", s)
    return s
}

function print_errors(file,    i)
{
    if (errors == 0 && errors_as == "")
        return
    printf ".SH ERRORS\n" > file
    for (i = 1; i <= errors; i++)
        printf ".TP\n.B %s\n%s\n", troff(error_name[i]), troff(meaning(error_name[i], error_text[i])) > file
    if (errors_as != "")
        printf ".PP\n%s\n", troff(sentence_case(errors_as)) > file
}

function print_references(file)
{
    if (references != "")
        printf ".SH REFERENCES\n%s\n", troff(cite(references, 1)) > file
}

function write_page(p,    names, n, i, file, summary, k, parts, m)
{
    join_errors(p)
    n = split(page_names[p], names, ", ")
    file = out "/" names[1] ".3"
    k = sentence_length(body)
    summary = substr(body, 1, k)
    sub(/[.]$/, "", summary)
    summary = tolower(substr(summary, 1, 1)) substr(summary, 2)

    printf ".TH %s 3 \"\" \"Ferry %s\" \"Ferry Programmer's Manual\"\n", toupper(names[1]), version > file
    printf ".SH NAME\n%s \\- %s\n", page_names[p], troff(summary) > file
    printf ".SH SYNOPSIS\n.nf\n.B #include <ferry/%s>\n.PP\n", page_header[p] > file
    printf "%s.fi\n.PP\nLink with \\fI%s\\-lferry\\fR.\n", troff(page_synopsis[p]),
        page_header[p] ~ /^(cell|collection|convert|mover|percolation|store|window)/ ? "\\-lferry_data " : "" > file
    printf ".SH DESCRIPTION\n%s\n", troff(body) > file
    if (common != "")
        printf ".PP\n%s\n", troff(common) > file
    if (contract != "") {
        printf ".SH CONTRACT\n" > file
        m = split(contract, parts, "|")
        for (i = 1; i <= m; i++)
            printf ".IP \\(bu 2\n%s\n", troff(trim(parts[i])) > file
    }
    print_value(p, file, summary)
    print_errors(file)
    print_references(file)
    printf ".SH SEE ALSO\n%s\n", see_also(p, page_comment[p] " " page_synopsis[p]) > file
    close(file)
    for (i = 2; i <= n; i++)
        write_alias(names[i], names[1])
}

function write_alias(name, page)
{
    printf ".so man3/%s.3\n", page > (out "/" name ".3")
    close(out "/" name ".3")
}

# ferry_errors(3): every code with what it means, in the groups of error.h.
function write_codes(    file, i)
{
    file = out "/ferry_errors.3"
    printf ".TH FERRY_ERRORS 3 \"\" \"Ferry %s\" \"Ferry Programmer's Manual\"\n", version > file
    printf ".SH NAME\nferry_errors \\- error codes of Ferry's functions\n" > file
    printf ".SH SYNOPSIS\n.nf\n.B #include <ferry/error.h>\n.fi\n.SH DESCRIPTION\n" > file
    printf "A function that can fail returns int: 0 or a count on success, and on failure one of these\n" > file
    printf "codes, which are negative.\n.BR ferry_strerror (3)\nnames a code;\n" > file
    printf ".BR ferry_error_message (3)\nsays what was wrong and names the values.\n" > file
    for (i = 1; i <= codes; i++) {
        if (code_group[i] != "")
            printf ".SS %s\n", troff(code_group[i]) > file
        printf ".TP\n.BR %s \" (%s)\"\n%s.\n", code[i], troff(code_number[i]), troff(code_text[code[i]]) > file
    }
    printf ".SH SEE ALSO\n.BR ferry_strerror (3),\n.BR ferry_error_message (3),\n.BR ferry (7)\n" > file
    close(file)
}

function write_type(name,    file, text, p, list, k, summary, n, word)
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
    printf "%s.fi\n", troff(type_synopsis[name] type_macros[name]) > file
    printf ".SH DESCRIPTION\n%s\n", troff(body) > file
    if (contract != "")
        printf ".SH CONTRACT\n%s\n", troff(contract) > file
    print_references(file)
    list = see_also("type " name, text " " type_synopsis[name])
    for (p = 1; p <= pages; p++)
        if (page_synopsis[p] ~ ("(^|[^A-Za-z_0-9])" name "([^A-Za-z_0-9]|$)")) {
            split(page_names[p], called, ", ")
            if (!(("type " name, called[1]) in mentioned))
                list = ".BR " called[1] " (3),\n" list
        }
    printf ".SH SEE ALSO\n%s\n", list > file
    close(file)
    n = split(type_macros[name], word, /[ \n]+/)
    for (k = 1; k <= n; k++)
        if (word[k] ~ /^FERRY_/)
            write_alias(word[k], name)
}

END {
    remember()
    for (p = 1; p <= types; p++)
        write_type(type[p])
    for (p = 1; p <= pages; p++)
        write_page(p)
    write_codes()
}
