#!/bin/sh
# reuse.sh BUILD COMMAND...: a launcher of the compiler for another build of the same sources. If
# BUILD has compiled the same object by the same command, its object is copied.
build=$1
shift
object= words= skip=
for word; do
    case $skip in
    -o) object=$word ;;
    -MT | -MF) skip= && continue ;;
    esac
    skip=
    case $word in
    -MD) continue ;;
    -MT | -MF) skip=$word && continue ;;
    -o) skip=$word ;;
    esac
    words="$words $word"
done
if [ -f "$build/$object" ] && grep -qF "\"command\": \"${words# }\"," "$build/compile_commands.json"
then
    cp "$build/$object" "$object"
    : >"$object.d" # who asks for dependencies finds none: the build is thrown away
    exit 0
fi
exec "$@"
