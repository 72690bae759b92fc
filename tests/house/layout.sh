#!/bin/sh
# The lists behind tarn_layout_json() are what the public headers declare, and
# scripts/layout says so when they are not.
#
#   layout.sh ROOT
set -eu
root=$1

for program in python3 clang; do
  if ! command -v "$program" >/dev/null; then
    echo "SKIPPED: lists of the layout against the headers: no $program here"
    exit 77
  fi
done

"$root/scripts/layout" --check

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refuses WHAT PATTERN HEADER SED: after a change of a header in a copy of the
# tree the check fails, and its text has the pattern.
refuses() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/scripts" "$work/tree/src"
  cp -R "$root/include" "$work/tree/include"
  cp -R "$root/src/layout" "$work/tree/src/layout"
  cp "$root/scripts/layout" "$work/tree/scripts/layout"
  sed -i "$4" "$work/tree/include/tarn/$3"
  if "$work/tree/scripts/layout" --check >"$work/said" 2>&1; then
    echo "not seen: $1"
    exit 1
  fi
  grep -q -e "$2" "$work/said" || {
    echo "$1 is refused in other words:"
    cat "$work/said"
    exit 1
  }
}

refuses 'a function more' '^+TEXT("tarn_more":{"returns":"int"' base.h \
  's/^TARN_API const char \*tarn_version.*/&\nTARN_API int tarn_more(void);/'
refuses 'what to do about it' 'run scripts/layout' base.h \
  's/^TARN_API size_t tarn_host_memory.*//'
refuses 'a field of another type' '^+FIELD(tarn_block, size, "type":"uint32_t")' \
  pool.h 's/^  size_t size;  \/\/ bytes that may.*/  uint32_t size;/'
refuses 'a flag more' '^+NUMBER(TARN_POOL_MORE, 4)' pool.h \
  's/^#define TARN_POOL_DEFER .*/&\n#define TARN_POOL_MORE (1u << 2)/'
refuses 'an enumerator without a number' 'TARN_BACKWARD of tarn_pass has no' \
  model.h 's/TARN_BACKWARD = 1/TARN_BACKWARD/'
refuses 'a typedef of a pointer' 'tarn_log_fn is a pointer to a function' \
  base.h 's/^typedef void tarn_log_fn(/typedef void (*tarn_log_fn)(/'
refuses 'a header that is wrong' 'do not compile' base.h 's/^typedef enum/x/'
echo 'lists as the headers'
