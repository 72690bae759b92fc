#!/bin/sh
# No module has variables of threads in static memory, of which a process sets
# little aside: with a driver's they would not fit, and one would not load.
#
#   modules.sh MODULE...
set -u
command -v readelf >/dev/null || { echo 'skipped: no readelf'; exit 77; }
bad=0
for module; do
  readelf -d "$module" | grep -q STATIC_TLS || continue
  echo "$module: STATIC_TLS"
  bad=1
done
[ $# -ge 3 ] || bad=1
exit $bad
