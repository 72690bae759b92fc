#!/bin/sh
# Each program with tests over the list of devices has a run of its own on real
# devices (tests/drivers.cmake), and no other program has one.
#
#   drivers.sh BINARY_DIR FILE    FILE names the programs that have such a run
set -u
wrong=0
for program in "$1"/tests/test_*; do
  if [ ! -x "$program" ] || [ -d "$program" ]; then continue; fi
  name=${program##*/}
  # A program with something to do before its tests may skip itself.
  count=$(TARN_TEST_DEVICE=count "$program" </dev/null 2>&1 | tail -n 1)
  case $count in
    '' | *[!0-9]*) count=0 ;;
  esac
  run=no
  grep -qx "$name" "$2" && run=yes
  [ "$count" -gt 0 ] && [ "$run" = no ] &&
    echo "$name: $count tests over devices, and no run on them" && wrong=1
  [ "$count" -eq 0 ] && [ "$run" = yes ] &&
    echo "$name: a run on real devices, and no test over devices" && wrong=1
done
exit $wrong
