#!/bin/sh
# scripts/packages with an apt that does as this test tells it: which names are
# installed, offered and refused. An optional package that cannot be installed
# is a line of text, a mandatory one is the end.
#
#   packages.sh PACKAGES
set -u
packages=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
PATH=$work/bin:$PATH
export PATH work
unset LC_ALL
mkdir "$work/bin"

# A command of the made-up apt, from its text.
command_is() {
  { echo '#!/bin/sh' && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

command_is dpkg-query <<'END'
for name; do :; done
grep -qx "$name" "$work/installed" && echo installed
END
# As apt does: a name that another package mentions has an entry without a
# candidate, also in `apt-cache show`, which exits with 0. It prints more than
# a pipe holds, for a reader that does not read all of it, and in the language of
# the user unless it is told otherwise.
command_is apt-cache <<'END'
[ "$1" = policy ] || exit 0
if [ $# = 1 ]; then
  echo ' 100 /var/lib/dpkg/status'
  [ -e "$work/empty" ] || echo ' 500 http://deb.example.org x/main Packages'
  exit
fi
word=Installationskandidat
[ "${LC_ALL-}" != C ] || word=Candidate
if [ -e "$work/empty" ]; then
  :
elif grep -qx "$2" "$work/offered"; then
  echo "  $word: 1.0"
elif grep -qx "$2" "$work/mentioned"; then
  echo "  $word: (none)"
fi
seq 20000
END
command_is apt-get <<'END'
echo "$*" >>"$work/calls"
if [ "$1" = update ]; then
  [ "$(cat "$work/update")" != 0 ] || rm -f "$work/empty"
  exit "$(cat "$work/update")"
fi
[ ! -e "$work/empty" ] || exit 100
shift
for name; do
  case $name in -*) continue ;; esac
  grep -qx "$name" "$work/offered" || exit 100
  grep -qx "$name" "$work/broken" && exit 100
done
for name; do echo "$name" >>"$work/installed"; done
END
command_is sudo <<'END'
exec "$@"
END

# begin OFFERED...: a machine on which nothing is installed.
begin() {
  for list in installed mentioned broken calls; do
    : >"$work/$list"
  done
  echo 0 >"$work/update"
  rm -f "$work/empty"
  printf '%s\n' "$@" >"$work/offered"
}

# expect NAME STATUS LINE...: runs it; its output has to hold each line.
expect() {
  name=$1 status=$2
  shift 2
  bash "$packages" demo >"$work/output" 2>&1
  result=$?
  [ "$result" = "$status" ] || complain "exit $result"
  for line; do
    grep -qF "$line" "$work/output" || complain "'$line' is not said"
  done
}

complain() {
  echo "$name: $*"
  sed 's/^/  /' "$work/output"
  failed=1
}

installed() {
  grep -qx "$1" "$work/installed" || complain "$1 is not installed"
}

mandatory='gcc libc6-dev cmake ninja-build'
# shellcheck disable=SC2086  # words
{
  begin $mandatory libmimalloc3 libjemalloc2
  echo libmimalloc2.0 >"$work/mentioned"
  expect 'a mentioned name' 0 \
    'Going on without libopenblas-dev: not offered here.' \
    'Going on without libtcmalloc-minimal4 or libtcmalloc-minimal4t64: not offered here.'
  installed libmimalloc3
  installed libjemalloc2
  [ "$(grep -c update "$work/calls")" = 1 ] || complain 'more than one update'

  : >"$work/calls"
  expect 'a second run' 0
  [ ! -s "$work/calls" ] || complain "$(cat "$work/calls")"

  begin $mandatory libmimalloc2.0 libjemalloc2
  echo libmimalloc2.0 >"$work/broken"
  expect 'a broken optional package' 0 \
    'Going on without libmimalloc2.0: apt-get install failed.'
  installed libjemalloc2

  begin gcc libc6-dev ninja-build libjemalloc2
  expect 'no mandatory package' 1 'apt-get install failed.' \
    "Please install: $mandatory"

  begin $mandatory libjemalloc2
  printf '%s\n' $mandatory >"$work/installed"
  echo 100 >"$work/update"
  expect 'no network' 0 'Going on without libjemalloc2: apt-get update failed.'

  # As in images of containers: the compilers are there, but no lists.
  begin $mandatory libjemalloc2
  printf '%s\n' $mandatory >"$work/installed"
  : >"$work/empty"
  expect 'empty lists' 0 'Installing: libjemalloc2'
  installed libjemalloc2
  [ "$(grep -c update "$work/calls")" = 1 ] || complain 'not one update'

  begin $mandatory libjemalloc2
  printf '%s\n' $mandatory >"$work/installed"
  : >"$work/empty"
  echo 100 >"$work/update"
  expect 'empty lists and no network' 0 \
    'Going on without libjemalloc2: apt-get update failed.'
}
exit $failed
