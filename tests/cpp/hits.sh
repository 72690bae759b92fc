#!/bin/sh
# A hit by tarn.hpp takes no more instructions than one by C.
#
#   hits.sh PROGRAM
set -eu
program=$1

command -v valgrind >/dev/null || {
  echo 'SKIPPED: instructions of tarn.hpp beside those of C: no valgrind'
  exit 77
}

instructions() { # instructions WAY COUNT
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" \
    2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

of_hits() { # of 10000 of them
  few=$(instructions "$1" 10000)
  many=$(instructions "$1" 20000)
  echo $((many - few))
}

c=$(of_hits c)
cpp=$(of_hits cpp)
echo "10000 hits: $c instructions by C, $cpp by tarn.hpp"
[ "$c" -gt 0 ] && [ "$cpp" -le "$c" ]
