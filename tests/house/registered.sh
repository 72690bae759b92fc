#!/bin/sh
# Every tests/test_*.c is a program that CTest runs: one that nobody registered
# would pass for ever.
#
#   registered.sh SOURCE_DIR
set -u
missing=0
for file in "$1"/tests/test_*.c; do
  name=$(basename "$file" .c)
  name=${name#test_}
  grep -Eq "^ *tarn_[a-z_]*test\(.*\b$name\b|^foreach\(.*\b$name\b" \
    "$1/tests/CMakeLists.txt" && continue
  echo "tests/test_$name.c is not registered in tests/CMakeLists.txt"
  missing=1
done
exit $missing
