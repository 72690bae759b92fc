#!/bin/sh
# debian/libtarn0.symbols, by which Debian's packages depend on a version, has
# the functions that the library exports: one that is gone, or has come, is a
# change of the binary interface.
#
#   symbols.sh SYMBOLS LIBRARY NM VERSION [--write]
set -eu
symbols=$1 library=$2 nm=$3 version=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

exported() {
  "$nm" -D --defined-only "$library" |
    sed -n 's/^[0-9a-f]* *[A-Z] \(\(tarn_\|TARN_\)[^@]*\)\(@@\(TARN_[0-9]*\)\)*$/\1@\4/p' |
    sed 's/^\(TARN_[0-9]*\)@$/\1@\1/' | LC_ALL=C sort
}
exported >"$work/exported"
[ "$(wc -l <"$work/exported")" -ge 200 ] || { echo 'few symbols'; exit 1; }

if [ "${5-}" = --write ]; then
  { # a symbol that is listed keeps the version that it came with
    echo 'libtarn.so.0 libtarn0 #MINVER#'
    while read -r symbol; do
      since=$(sed -n "s/^ $symbol //p" "$symbols" 2>/dev/null || :)
      echo " $symbol ${since:-$version}"
    done <"$work/exported"
  } >"$work/new"
  cp "$work/new" "$symbols"
  exit
fi
sed -n 's/^ \([^ ]*\) .*/\1/p' "$symbols" >"$work/listed"
diff -u "$work/listed" "$work/exported" || {
  echo "lines with -: in $symbols, but gone: programs that use it break"
  echo 'lines with +: exported, and not listed yet'
  echo 'CONTRIBUTING.md says how to list them.'
  exit 1
}
