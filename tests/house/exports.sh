#!/bin/sh
# A library exports what its headers declare: each function with API in front,
# with its version, and nothing else.
#
#   exports.sh HEADER_DIR LIBRARY NM API VERSION LEAST
set -eu
headers=$1 library=$2 nm=$3 api=$4 version=$5 least=$6

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The identifier before the first '(' behind each $api.
declared() {
  sed -e 's,//.*,,' -e '/^[ \t]*#/d' "$headers"/*.h | tr '\n' ' ' |
    sed "s/$api/\\n&/g" |
    sed -n "s/^${api}[^(]*[^A-Za-z0-9_(]\([A-Za-z0-9_]*\) *(.*/\1/p"
}

exported() {
  "$nm" -D --defined-only "$library" |
    sed -e 's/^[0-9a-f]* *//' -e "/^A $version\\(@@$version\\)*\$/d"
}

exported >"$work/symbols"
if grep -v "^T tarn_[a-z][a-z0-9_]*@@$version\$" "$work/symbols"; then
  echo "not functions tarn_<name>, version $version: see above"
  exit 1
fi
sed "s/^T \(.*\)@@$version\$/\1/" "$work/symbols" | sort >"$work/exported"
declared | sort >"$work/declared"

if ! diff -u "$work/declared" "$work/exported"; then
  echo "lines with -: declared with $api, but not exported"
  echo 'lines with +: exported, but no public header declares them'
  exit 1
fi
count=$(wc -l <"$work/declared")
echo "$count functions"
[ "$count" -ge "$least" ]
