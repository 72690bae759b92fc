#!/bin/sh
# Runs a test that is written in Python, where there is one.
#
#   python.sh SCRIPT argument...
set -eu
if ! command -v python3 >/dev/null; then
  echo "SKIPPED: ${1##*/}: no python3 here"
  exit 77
fi
exec env -u TARN_POOL -u TARN_POOL_DEBUG PYTHONDONTWRITEBYTECODE=1 \
  python3 "$@"
