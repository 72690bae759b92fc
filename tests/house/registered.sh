#!/bin/sh
# Every source below tests/ is named in the CMakeLists.txt of its folder: a
# test that CTest does not run would pass for ever.
#
#   registered.sh SOURCE_DIR
set -u
missing=0
for file in "$1"/tests/*/*.c "$1"/tests/*/*.cc; do
  [ -e "$file" ] || continue
  folder=$(dirname "$file")
  name=$(basename "$file")
  name=${name%%.*}
  list=$folder/CMakeLists.txt
  [ "$(basename "$folder")" = support ] && list=$1/tests/CMakeLists.txt
  sed 's/#.*//' "$list" | grep -Eq "(^|[ (/])$name(\.cc?)?([ )]|\$)" && continue
  echo "${file#"$1"/} is not named in ${list#"$1"/}"
  missing=1
done
exit $missing
