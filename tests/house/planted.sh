#!/bin/sh
# Whether each fault of tests/planted can be planted in the tree as it is, and
# says where and by what it is to be found. That it is found is for
# `scripts/check long` to see.
#
#   planted.sh ROOT
set -u
cd "${1:?usage: planted.sh ROOT}" || exit
command -v patch >/dev/null || {
  echo 'SKIPPED: planted faults: there is no patch(1)'
  exit 77
}
bad=0
for fault in tests/planted/*.patch; do
  if ! patch -p1 --fuzz=0 --dry-run <"$fault" >/dev/null 2>&1; then
    echo "$fault: the tree has changed there"
    bad=1
  fi
  for field in stage finds; do
    grep -q "^$field: ." "$fault" || {
      echo "$fault: no line '$field:'"
      bad=1
    }
  done
done
exit "$bad"
