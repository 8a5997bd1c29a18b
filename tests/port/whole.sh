#!/bin/sh
# whole.sh ROOT: Goal: the conformance suite calls every operation of a port's tables. Method: reads
# the members of the tables from port.h, and looks for each in the suite, as table.operation.
set -u
cd "$1" || exit 1
# A case cannot call this, which ends the job. tests/core/CMakeLists.txt has tests of it (abort).
except=' members.abort '
missing=0 count=0
for table in transport host heap members diagnosis; do
    operations=$(awk -v type="fy_$(echo $table | sed 's/members/member/')_ops" '
        /^typedef struct/ { on = $3 == type }
        /^}/ { on = 0 }
        on && match($0, /\(\*[a-z_]+\)\(/) { print substr($0, RSTART + 2, RLENGTH - 4) }' \
        src/port/port.h)
    [ -n "$operations" ] || { echo "port.h has no table $table"; exit 1; }
    for operation in $operations; do
        count=$((count + 1))
        case $except in *" $table.$operation "*) continue ;; esac
        grep -q "ops->$table\.$operation(" tests/port/*conformance*.c && continue
        echo "no case of the conformance suite calls $table.$operation"
        missing=1
    done
done
echo "$count operations"
exit $missing
