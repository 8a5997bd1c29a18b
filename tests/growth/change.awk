# Changes one header as a later or an earlier version of Ferry would: adds a field to the end of
# each struct that begins with its size (how=more), or takes the last one away (how=fewer), and does
# the same to the struct's initialiser. Prints the header without comments.
BEGIN { RS = "\001" }

# The declarations of a struct, one each: "int a, b" becomes "int a" and "int b".
function split_fields(body, fields,    parts, n, i, j, k, names, type, count)
{
    n = split(body, parts, ";")
    for (i = 1; i < n; i++) {
        k = parts[i] ~ /[(]/ ? 1 : split(parts[i], names, ",")
        if (k == 1) {
            fields[++count] = parts[i]
            continue
        }
        type = names[1]
        sub(/[A-Za-z_0-9]+(\[[A-Z_0-9]*\])?[ ]*$/, "", type)
        fields[++count] = names[1]
        for (j = 2; j <= k; j++)
            fields[++count] = type names[j]
    }
    return count
}

# Where the comma before the last value of an initialiser stands; inner braces hold commas too.
function last_comma(values,    depth, i, c, at)
{
    for (i = 1; i <= length(values); i++) {
        c = substr(values, i, 1)
        if (c == "{" || c == "(")
            depth++
        else if (c == "}" || c == ")")
            depth--
        else if (c == "," && depth == 0)
            at = i
    }
    return at
}

function changed_struct(text,    name, body, fields, count, i, out)
{
    name = text
    sub(/^typedef struct /, "", name)
    sub(/ [{].*/, "", name)
    body = text
    sub(/^[^{]*[{]/, "", body)
    sub(/[}][^}]*$/, "", body)
    count = split_fields(body, fields)
    out = "typedef struct " name " {"
    for (i = 1; i <= count - (how == "fewer"); i++)
        out = out fields[i] ";"
    if (how == "more")
        out = out " uint64_t added_later;"
    return out " } " name ";"
}

function changed_values(text,    start, values)
{
    start = index(text, "{")
    values = substr(text, start + 1)
    sub(/[}][ \n]*$/, "", values)
    if (how == "more")
        values = values ", 0"
    else
        values = substr(values, 1, last_comma(values) - 1)
    return substr(text, 1, start) values "}\n"
}

{
    while (match($0, /\/[*]([^*]|[*]+[^*\/])*[*]+\//))
        $0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + RLENGTH)
    gsub(/[ \t]*\\\n[ \t]*/, " ")
    if (how == "same") {
        printf "%s", $0
        exit
    }
    rest = $0
    done = ""
    while (match(rest, /typedef struct [a-z_]+ [{][ \n]*size_t size;[^}]*[}] [a-z_]+;/)) {
        done = done substr(rest, 1, RSTART - 1) changed_struct(substr(rest, RSTART, RLENGTH))
        rest = substr(rest, RSTART + RLENGTH)
    }
    rest = done rest
    while (match(rest, /#define FERRY_[A-Z_]+_DEFAULTS [{] sizeof[^\n]*\n/)) {
        printf "%s%s", substr(rest, 1, RSTART - 1), changed_values(substr(rest, RSTART, RLENGTH))
        rest = substr(rest, RSTART + RLENGTH)
    }
    printf "%s", rest
}
