#!/bin/sh
# Goal: docs/reference/growth.md says of each public struct whether it grows, and each struct has an
# initialiser that C11 and C++17 accept without a warning. Method: compares the structs of the
# headers that do not begin with their size with those in the page's tables, each named once. Makes
# a program that begins one of each by FERRY_ZERO, and one of each struct with a size by its
# FERRY_..._DEFAULTS, after including each header by itself. Compiles it with every compiler of $2...
set -eu
source=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat "$source"/include/ferry/*.h | awk '
    /^typedef struct ferry_[a-z_]+ [{]/ {
        name = $3
        getline
        print (/^ *size_t size;/ ? "sized " : "plain ") name
    }' | sort >"$scratch/structs"
sed -n 's/^plain //p' "$scratch/structs" >"$scratch/plain"
awk -F'|' '/^[|] `ferry_/ { print $2 }' "$source/docs/reference/growth.md" | tr -d '`, ' |
    sed 's/ferry_/\nferry_/g' | sed '/^$/d' | sort >"$scratch/named"
diff "$scratch/plain" "$scratch/named" >"$scratch/difference" || {
    sed -n 's/^</in the headers, not in the page:/p; s/^>/in the page, not in the headers:/p' \
        "$scratch/difference"
    echo "FAILED: docs/reference/growth.md differs from the headers"
    exit 1
}

{
    (cd "$source/include" && ls ferry/*.h) | sed 's/.*/#include <&>/'
    echo 'int main(void)'
    echo '{'
    while read -r kind name; do
        value=FERRY_ZERO
        [ "$kind" = plain ] ||
            value=$(echo "${name}_DEFAULTS" | tr '[:lower:]' '[:upper:]')
        echo "    $name $name$$ = $value;"
        echo "    (void)$name$$;"
    done <"$scratch/structs"
    echo '    return 0;'
    echo '}'
} >"$scratch/program.c"
for compiler; do
    for language in "-std=c11 -x c" "-std=c++17 -x c++"; do
        # shellcheck disable=SC2086
        "$compiler" $language -Wall -Wextra -pedantic -Werror -fsyntax-only \
            "-I$source/include" "$scratch/program.c"
        echo "$compiler $language: ok"
    done
done
echo "$(wc -l <"$scratch/structs") structs"
