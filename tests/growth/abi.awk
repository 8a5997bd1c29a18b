# Prints a C program that prints the binary interface of the public headers, a fact in each line:
# functions and function types as text, structs with the offset and size of each field, enumerators
# and constants with their values. Names of parameters are left out, since they bind nobody.
#
#     awk -v made="STRUCT..." -f abi.awk include/ferry/*.h >program.c
# The size of a struct counts if the struct never grows: it does not begin with its size, and is not
# in `made`, which names those that the library alone makes.
BEGIN {
    RS = "\001"
    count = split(made, names, " ")
    for (i = 1; i <= count; i++) grows[names[i]] = 1
    print "#include <stddef.h>\n#include <stdio.h>\n#include <ferry/ferry.h>"
}

function squeeze(text)
{
    gsub(/[ \t\n]+/, " ", text)
    gsub(/^ | $/, "", text)
    return text
}

function say(text)
{
    gsub(/["\\]/, "\\\\&", text)
    gsub(/%/, "%%", text)
    main = main "    printf(\"" text "\\n\");\n"
}

# "(ferry *f, int rank)" becomes "(ferry *, int)".
function without_names(text,    out)
{
    while (match(text, /[ *][A-Za-z_][A-Za-z_0-9]*(\[[A-Z_0-9]*\])?[,)]/)) {
        out = out substr(text, 1, RSTART)
        text = substr(text, RSTART + RLENGTH - 1)
        sub(/ $/, "", out)
    }
    return out text
}

function say_field(struct, field,    name)
{
    field = squeeze(field)
    if (field == "") return
    if (match(field, /[(][*][a-z_0-9]+[)]/)) name = substr(field, RSTART + 2, RLENGTH - 3)
    else {
        name = field
        sub(/\[.*/, "", name)
        sub(/.*[ *]/, "", name)
    }
    gsub(/%/, "%%", field)
    main = main "    printf(\"" struct "." name " at %zu, %zu bytes: " without_names(field) \
        "\\n\",\n        offsetof(" struct ", " name "), sizeof(((" struct " *)0)->" name "));\n"
}

function say_struct(name, body,    parts, names, type, n, i, k, j)
{
    if (body !~ /^ *size_t size *;/ && !(name in grows))
        main = main "    printf(\"" name ": %zu bytes\\n\", sizeof(" name "));\n"
    n = split(body, parts, ";")
    for (i = 1; i < n; i++) {
        k = parts[i] ~ /[(]/ ? 1 : split(parts[i], names, ",")
        if (k == 1) { say_field(name, parts[i]); continue }
        type = names[1]
        sub(/[*]*[A-Za-z_0-9]+(\[[A-Z_0-9]*\])?[ ]*$/, "", type)
        say_field(name, names[1])
        for (j = 2; j <= k; j++) say_field(name, type names[j])
    }
}

function say_statement(text,    name, body, parts, n, i)
{
    name = text
    if (text ~ /^FERRY_API /) {
        sub(/^FERRY_API (FERRY_MUST_USE )?/, "", text)
        say("function " without_names(text))
    } else if (text ~ /^typedef struct [a-z_]+ [{]/ || text ~ /^(typedef )?enum [a-z_]+ [{]/) {
        sub(/ [{].*/, "", name)
        sub(/.* /, "", name)
        body = text
        sub(/^[^{]*[{]/, "", body)
        sub(/[}][^}]*$/, "", body)
        if (text ~ /^typedef struct/) { say_struct(name, body); return }
        n = split(body, parts, ",")
        for (i = 1; i <= n; i++) {
            sub(/=.*/, "", parts[i])
            parts[i] = squeeze(parts[i])
            if (parts[i] != "")
                main = main "    printf(\"" name " " parts[i] " = %d\\n\", (int)" parts[i] ");\n"
        }
    } else if (text ~ /^typedef /) say(without_names(text))
}

{
    while (match($0, /\/[*]([^*]|[*]+[^*\/])*[*]+\//))
        $0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + RLENGTH)
    gsub(/[ \t]*\\\n[ \t]*/, " ")
    n = split($0, line, "\n")
    rest = ""
    for (i = 1; i <= n; i++) {
        if (line[i] !~ /^#/) { rest = rest " " line[i]; continue }
        if (line[i] ~ /^#define FERRY_[A-Z_0-9]+ / && line[i] !~ /_DEFAULTS |VERSION|attribute/)
            say(squeeze(substr(line[i], 2)))
    }
    gsub(/extern "C" [{]/, "", rest)
    # Statements end at a semicolon outside braces. A function's body ends at its brace.
    depth = 0
    text = ""
    for (i = 1; i <= length(rest); i++) {
        c = substr(rest, i, 1)
        if (c == "{") depth++
        if (c == "}" && depth > 0) depth--
        text = text c
        if (depth > 0 || (c != ";" && !(c == "}" && squeeze(text) ~ /^(static|[}])/))) continue
        say_statement(squeeze(substr(text, 1, length(text) - (c == ";"))))
        text = ""
    }
}

END { printf "int main(void)\n{\n%s    return 0;\n}\n", main }
