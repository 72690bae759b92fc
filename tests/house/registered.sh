#!/bin/sh
# Every source below tests/, and every test of the Python package, is named in
# the CMakeLists.txt of its folder: a test that CTest does not run would pass for
# ever.
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
for file in "$1"/python/tests/test_*.py; do
  name=$(basename "$file" .py)
  sed 's/#.*//' "$1/python/tests/CMakeLists.txt" |
    grep -Eq "(^|[ (])${name#test_}([ )]|\$)" && continue
  echo "${file#"$1"/} is not named in python/tests/CMakeLists.txt"
  missing=1
done
exit $missing
