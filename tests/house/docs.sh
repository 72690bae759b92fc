#!/bin/sh
# The documents agree with the code: each verb has a manual page, the
# programs in README.md and docs/whole.md are examples, the version is one and
# has its place in CHANGELOG.md, no link leads nowhere, each picture is shown,
# and what a queued copy asks of memory is said in bold.
#
#   docs.sh SOURCE_DIR TARN VERSION
set -eu
cd "$1"
tarn=$2 version=$3
failed=0

complain() {
  echo "$*"
  failed=1
}

# The verbs that `tarn --help` lists: two blanks, a word, two blanks.
verbs() {
  "$tarn" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'
}

check_manual() {
  count=0
  for verb in $(verbs); do
    count=$((count + 1))
    grep -q "^\*$verb\*" docs/man/tarn.1.scd ||
      complain "docs/man/tarn.1.scd does not list $verb"
    [ -f "docs/man/tarn-$verb.1.scd" ] ||
      complain "no docs/man/tarn-$verb.1.scd"
  done
  [ "$count" -ge 2 ] || complain "tarn --help lists only $count verbs"
}

# The C blocks of a page on standard input.
# shellcheck disable=SC2016  # backquotes of Markdown
programs() {
  sed -n '/^```c$/,/^```$/{/^```/d;p}'
}

check_programs() {
  programs <README.md | cmp -s - examples/hello.c ||
    complain 'the program in README.md is not examples/hello.c'
  sed -n '/^## On disk$/,/^## When/p' docs/whole.md | programs |
    cmp -s - examples/disk.c ||
    complain 'the program in docs/whole.md, "On disk", is not examples/disk.c'
}

check_queued_copies() {
  for page in include/tarn/device.h include/tarn/rows.h include/tarn/whole.h \
    examples/hello.c docs/contracts.md; do
    tr '\n' ' ' <"$page" | grep -q '\*\*[^*]*until[^*]*\*\*' ||
      complain "$page does not say how long a queued copy uses memory"
  done
}

check_version() {
  grep -q "^## \[\{0,1\}\(Unreleased \)\{0,1\}$version\b" CHANGELOG.md ||
    complain "CHANGELOG.md has no heading for $version"
  [ "$("$tarn" --version | grep -o '[0-9][0-9.]*' | head -n 1)" = "$version" ] ||
    complain "tarn --version is not $version"
}

# Relative links of a Markdown file, without the part behind '#'.
# shellcheck disable=SC2016
links() {
  sed 's/`[^`]*`//g' "$1" | grep -o '](\([^)]*\))' |
    sed 's/^](\(.*\))$/\1/; s/#.*//; /^http/d; /^$/d'
}

check_links() {
  for page in *.md docs/*.md docs/decisions/*.md; do
    for link in $(links "$page"); do
      [ -e "$(dirname "$page")/$link" ] || complain "$page: no $link"
    done
  done
}

# A picture that no page shows gets old unseen.
check_pictures() {
  for picture in docs/pictures/*; do
    grep -qF "pictures/${picture##*/}" README.md docs/*.md ||
      complain "no page shows $picture"
  done
}

check_manual
check_pictures
check_programs
check_queued_copies
check_version
check_links
exit "$failed"
