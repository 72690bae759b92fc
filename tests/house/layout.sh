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

# refuses WHAT SED...: after changes of a header in a copy of the tree the check
# fails. Each SED is a header and what is done to it.
refuses() {
  what=$1
  shift
  rm -rf "$work/tree"
  mkdir -p "$work/tree/scripts" "$work/tree/src"
  cp -R "$root/include" "$work/tree/include"
  cp -R "$root/src/layout" "$work/tree/src/layout"
  cp "$root/scripts/layout" "$work/tree/scripts/layout"
  while [ $# -gt 0 ]; do
    sed -i "$2" "$work/tree/include/tarn/$1"
    shift 2
  done
  if "$work/tree/scripts/layout" --check >"$work/said" 2>&1; then
    echo "not seen: $what"
    exit 1
  fi
}

# says WORDS: what was said then has these.
says() {
  grep -qF -e "$1" "$work/said" || {
    echo "$what is refused without the words: $1"
    cat "$work/said"
    exit 1
  }
}

refuses 'a header with more, less and other than the lists' \
  base.h 's/^TARN_API const char \*tarn_version.*/TARN_API int tarn_more(void);/' \
  pool.h 's/^  size_t size;  \/\/ usable bytes.*/  uint32_t size;/' \
  pool.h 's/^#define TARN_POOL_DEFER .*/&\n#define TARN_POOL_MORE (1u << 2)/'
says '+TEXT("tarn_more":{"returns":"int","arguments":[],"names":[]}) COMMA'
says '-TEXT("tarn_version":'
says '+FIELD(tarn_block, size, "type":"uint32_t") COMMA'
says '+NUMBER(TARN_POOL_MORE, 4) COMMA'
says 'run scripts/layout'

refuses 'an enumerator without a number' \
  model.h 's/TARN_BACKWARD = 1/TARN_BACKWARD/'
says 'TARN_BACKWARD of tarn_pass has no number of its own'

refuses 'a field that may grow' \
  base.h 's/^  tarn_reference table;/&\n  tarn_host_allocator more;/'
says 'tarn_rows has tarn_host_allocator by value'

refuses 'an argument that may grow' \
  base.h 's/^TARN_API size_t tarn_host_memory.*/&\nTARN_API int tarn_more(tarn_host_allocator a);/'
says 'tarn_more has tarn_host_allocator by value'

refuses 'a typedef of a pointer' \
  base.h 's/^typedef void tarn_log_fn(/typedef void (*tarn_log_fn)(/'
says 'tarn_log_fn is a pointer to a function'

refuses 'a header that is wrong' base.h 's/^typedef enum/x/'
says 'do not compile'
echo 'lists as the headers'
