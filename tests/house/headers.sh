#!/bin/sh
# Every public header compiles alone, twice over, without a warning.
#
#   headers.sh INCLUDE_DIR LANGUAGE STANDARD COMPILER
set -eu
include=$1 language=$2 standard=$3 compiler=${4-}

case $compiler in
  *NOTFOUND | '')
    echo "SKIPPED: public headers as $standard: no $language compiler here"
    exit 77
    ;;
esac

count=0
headers=$(cd "$include" && echo tarn/*.h)
[ "$language" = c ] || headers="$headers tarn.hpp"
for name in $headers; do
  printf '#include <%s>\n#include <%s>\nint nothing;\n' "$name" "$name" |
    "$compiler" -x "$language" -std="$standard" -Wall -Wextra -Wpedantic \
      -Wconversion -Werror -I "$include" -fsyntax-only - || {
    echo "$name does not compile alone as $standard"
    exit 1
  }
  count=$((count + 1))
done
echo "$count headers as $standard by $compiler"
[ "$count" -ge 5 ]
