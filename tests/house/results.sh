#!/bin/sh
# Fails where the tool writes to stdout by itself: results go to tool_out(),
# since stdout is that of plug-ins and strategies once one is loaded.
#
#   results.sh ROOT    checks the tool in the tree at ROOT; prints FILE:LINE
set -eu

cd "$1"
found=$(grep -nE '(^|[^A-Za-z0-9_"])(v?printf|puts|putchar)\(|(^|[^A-Za-z0-9_"/ ])stdout[^A-Za-z0-9_"]|[,:?] stdout[^A-Za-z0-9_"]' \
  kit/*.c tool/*.c /dev/null | grep -vE '^kit/tool\.c:|^[^:]*:[0-9]*: *(//|")' || true)
test -z "$found" && exit 0
printf '%s\n' "$found"
echo "results of the tool are written to tool_out()" >&2
exit 1
