#!/bin/sh
# libtarn-malloc.so exports the functions of the heap and nothing else: a program
# that uses libtarn.so must not get the copy of it that is inside.
#
#   heap.sh LIBRARY NM
set -eu
library=$1 nm=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sort >"$work/wanted" <<'END'
aligned_alloc
calloc
cfree
free
malloc
malloc_usable_size
memalign
posix_memalign
pvalloc
realloc
reallocarray
valloc
END
"$nm" -D --defined-only "$library" | sed 's/^[0-9a-f]* T //' |
  sort >"$work/exported"
diff -u "$work/wanted" "$work/exported"
