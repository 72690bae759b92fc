#!/bin/sh
# Completion in shells offers what the tool has.
#
#   completion.sh SOURCE_DIR TOOL
set -eu
source=$1 tool=$2

command -v bash >/dev/null || {
  echo 'SKIPPED: completion: no bash here'
  exit 77
}

# shellcheck disable=SC2016  # for the other shell
offers='. "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _tarn; printf "%s\n" "${COMPREPLY[@]}"'

# offered WANTED WORD...: whether WANTED is offered for the last word.
offered() {
  wanted=$1
  shift
  bash -c "$offers" - "$source/packaging/completion/tarn.bash" "$tool" "$@" |
    grep -qx -e "$wanted" || {
    echo "bash: '$*': $wanted is not offered"
    exit 1
  }
}

offered why ''
offered new-plugin n
offered --version --
offered record help r
offered --top why --t
offered -o why -
offered --help plan --
cd "$source"
offered README.md why READ
verbs=$("$tool" help | grep -c '^  [a-z-]*  ')
count=$(bash -c "$offers" - "$source/packaging/completion/tarn.bash" "$tool" '' |
  wc -l)
[ "$count" = $((verbs + 2)) ] || {
  echo "bash: $count words for $verbs verbs"
  exit 1
}

if ! command -v zsh >/dev/null; then
  echo 'SKIPPED: completion in zsh: no zsh here'
  exit 0
fi
# A terminal of zsh's own: what is there after a word and a tab.
# shellcheck disable=SC2016
screen=$(zsh -f -c 'zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \$fpath); path=(${2:h} \$path); autoload -U compinit"
zpty -w shell "compinit -u -D; print read\"\"y"
until [[ $out == *ready* ]]; do zpty -r shell more; out+=$more; done
zpty -w -n shell $'"'tarn why --cap\t'"'
until [[ $out == *"--capacity"* ]] || ((++tries > 100)); do
  sleep .1; while zpty -r -t shell more; do out+=$more; done
done
print -r -- "$out"' - "$source/packaging/completion" "$tool")
case $screen in
  *'tarn why --capacity'*) ;;
  *)
    echo 'zsh: tarn why --cap: --capacity is not offered'
    exit 1
    ;;
esac
