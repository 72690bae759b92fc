#!/bin/sh
# Explores models with spin: what a model asserts has to hold in every state,
# and each of its mutants, which has one mistake, has to be found out.
#
#   check.sh MODEL...    CC is another compiler than cc
#
# The opening comment of a model says with which macros it runs, one line a run,
# and how many mutants it has. Mutants run with the macros of the first line and
# MUTANT=1, 2, ...
#
#   * mutants: 2
#   * run: THREADS=2 STEPS=2
#   * run: THREADS=3
set -eu
LC_ALL=C
export LC_ALL
if ! command -v spin >/dev/null; then
  echo 'SKIPPED: models: no spin here'
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

complain() {
  echo "$*"
  sed 's/^/  /' "$work/output"
  failed=1
}

# explore OPTIMIZATION MACRO=VALUE...: all states of the model, with a report in
# |output|. False: there is none.
explore() {
  optimization=$1
  shift
  rm -f "$work"/pan*
  (
    cd "$work"
    # shellcheck disable=SC2046  # one word a macro
    spin $(printf ' -D%s' "$@") -a model.pml &&
      "${CC:-cc}" -w "$optimization" -DSAFETY -DMEMLIM=1024 -o pan pan.c &&
      ./pan -m100000 -n
  ) >"$work/output" 2>&1 </dev/null || true
  grep -q 'errors: [0-9]' "$work/output"
}

states() {
  sed -n 's/^ *\([0-9]*\) states, stored.*/\1 states/p' "$work/output"
}

# A search that was cut off shows nothing.
holds() {
  grep -q 'errors: 0$' "$work/output" &&
    ! grep -qiE 'not completed|too small' "$work/output"
}

# check_run NAME MACRO=VALUE...
check_run() {
  name=$1
  shift
  if explore -O1 "$@" && holds; then
    echo "$name, $*: holds in $(states)"
  else
    complain "$name, $*: does not hold, or not all was explored:"
  fi
}

# check_mutant NAME MACRO=VALUE...: it is not worth optimizing.
check_mutant() {
  name=$1
  shift
  if explore -O0 "$@" && grep -q 'errors: 1$' "$work/output"; then
    echo "$name, $*: found, $(sed -n 's/^pan:1: //p' "$work/output")"
  else
    complain "$name, $*: not found:"
  fi
}

# check_model MODEL
check_model() {
  cp "$1" "$work/model.pml"
  name=${1##*/}
  sed -n 's/^ \* run: //p' "$1" >"$work/runs"
  mutants=$(sed -n 's/^ \* mutants: //p' "$1")
  [ -s "$work/runs" ] && [ "$mutants" -gt 0 ]
  while read -r macros; do
    # shellcheck disable=SC2086  # words
    check_run "$name" $macros
  done <"$work/runs"
  read -r macros <"$work/runs"
  mutant=0
  while [ $((mutant += 1)) -le "$mutants" ]; do
    # shellcheck disable=SC2086  # words
    check_mutant "$name" $macros "MUTANT=$mutant"
  done
}

for model; do check_model "$model"; done
exit "$failed"
