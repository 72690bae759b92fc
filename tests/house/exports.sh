#!/bin/sh
# The library exports what its headers declare: each TARN_API function, with
# the version TARN_0, and nothing else.
#
#   exports.sh INCLUDE_DIR LIBRARY NM
set -eu
include=$1 library=$2 nm=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The identifier before the first '(' behind each TARN_API.
declared() {
  sed -e 's,//.*,,' -e '/^[ \t]*#/d' "$include"/tarn/*.h | tr '\n' ' ' |
    sed 's/TARN_API/\n&/g' |
    sed -n 's/^TARN_API[^(]*[^A-Za-z0-9_(]\([A-Za-z0-9_]*\) *(.*/\1/p'
}

exported() {
  "$nm" -D --defined-only "$library" |
    sed -e 's/^[0-9a-f]* *//' -e '/^A TARN_0\(@@TARN_0\)*$/d'
}

exported >"$work/symbols"
if grep -v '^T tarn_[a-z][a-z0-9_]*@@TARN_0$' "$work/symbols"; then
  echo 'not functions tarn_<name>, version TARN_0: see above'
  exit 1
fi
sed 's/^T \(.*\)@@TARN_0$/\1/' "$work/symbols" | sort >"$work/exported"
declared | sort >"$work/declared"

if ! diff -u "$work/declared" "$work/exported"; then
  echo 'lines with -: declared with TARN_API, but not exported'
  echo 'lines with +: exported, but no public header declares them'
  exit 1
fi
count=$(wc -l <"$work/declared")
echo "$count functions"
[ "$count" -ge 20 ]
