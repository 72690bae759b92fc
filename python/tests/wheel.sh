#!/usr/bin/env bash
# Installs the wheel in a fresh environment of each Python that the package
# supports, and runs the tests there.
#
#   wheel.sh FOLDER [VERSION...]    FOLDER has one wheel; versions: 3.9 ... 3.13
#
# A Python that is not here is a line with SKIPPED. So is NumPy where it cannot
# be had; the tests then skip what needs it.
set -euo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
versions=("${@:-}")
[[ -n ${versions[0]} ]] || versions=(3.9 3.10 3.11 3.12 3.13)
wheels=("$folder"/libtarn-*.whl)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH TARN_LIBRARY TARN_PLUGIN_DIR

# find_python VERSION: one that can make environments, of PATH or of pyenv.
find_python() {
  local found
  for found in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
    "$found" -c "import sys, venv, ensurepip
sys.exit(sys.version_info[:2] != tuple(map(int, '$1'.split('.'))))" \
      >/dev/null 2>&1 && echo "$found" && return
  done
  return 1
}

# try VERSION PYTHON: the tests in an environment of that Python.
try() {
  local env=$work/$1 test status=0 result
  "$2" -m venv "$env"
  "$env/bin/pip" install --quiet --disable-pip-version-check --no-index \
    --no-deps "${wheels[0]}"
  "$env/bin/pip" install --quiet --disable-pip-version-check numpy ml_dtypes \
    >/dev/null 2>&1 </dev/null ||
    echo "SKIPPED: wheel on Python $1: tests that need NumPy: it cannot be had"
  [[ $("$env/bin/tarn" --version) == tarn* ]]
  for test in "$tests"/test_*.py; do
    result=0
    (cd "$work" && "$env/bin/python" -X dev "$test") >"$work/log" 2>&1 ||
      result=$?
    ((result == 0 || result == 77)) || status=1
    ((result == 0 || result == 77)) || cat "$work/log"
    echo "Python $1: $(basename "$test"): exit status $result"
  done
  return "$status"
}

python3 "$tests/wheel_files.py" "${wheels[0]}"
failed=0
for version in "${versions[@]}"; do
  if python=$(find_python "$version"); then
    try "$version" "$python" || failed=1
  else
    echo "SKIPPED: wheel on Python $version: there is none here"
  fi
done
exit "$failed"
