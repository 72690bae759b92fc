#!/bin/sh
# Runs a test that is written in Python, where there is one.
#
#   python.sh SCRIPT argument...
#
# TARN_PYTHON is another than python3, such as one that has PyTorch.
set -eu
python=${TARN_PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  echo "SKIPPED: ${1##*/}: no $python here"
  exit 77
fi
exec env -u TARN_POOL -u TARN_POOL_DEBUG PYTHONDONTWRITEBYTECODE=1 \
  "$python" "$@"
