# shellcheck shell=bash disable=SC2154  # variables of scripts/check
# The stages of `scripts/check long` that build packages of the tree, in a copy:
# Debian's, which lintian looks at; by the recipe for conda; and by the port for
# vcpkg. What the last two build is installed into empty folders. Neither conda
# nor vcpkg is run: packaging/README.md. Then the library's binary interface
# against that of the last tag.

readonly packaging=$PWD/build/packaging

# fresh NAME: a copy of the tree, and in it from then on.
fresh() {
  rm -rf "${packaging:?}/$1"
  mkdir -p "$packaging/$1/tarn"
  tar -c --exclude './build*' --exclude ./.git . |
    tar -x -C "$packaging/$1/tarn"
  cd "$packaging/$1/tarn"
}

# has PREFIX PATH...: all of them are there.
has() {
  local path result=0
  for path in "${@:2}"; do
    compgen -G "$1/$path" >/dev/null ||
      { echo "$1/$path is not there" && result=1; }
  done
  return "$result"
}

# Errors and warnings of lintian both count.
build_deb() (
  set -e
  fresh deb
  dpkg-buildpackage -us -uc -b -j2
  cd ..
  ls -l ./*.deb
  lintian --allow-root --fail-on error,warning --info ./*.changes
  for deb in ./*.deb; do
    dpkg-deb -x "$deb" installed
  done
  has installed usr/bin/tarn 'usr/lib/*/libtarn.so.0' \
    'usr/lib/*/tarn/libtarn-record.so' usr/include/tarn/tarn.h \
    usr/share/man/man1/tarn.1.gz
  LD_LIBRARY_PATH=$PWD/$(dirname installed/usr/lib/*/libtarn.so.0)
  export LD_LIBRARY_PATH
  installed/usr/bin/tarn --version
  PATH=$PWD/installed/usr/bin:$PATH \
    PYTHONPATH=installed/usr/lib/python3/dist-packages /usr/bin/python3 -c '
import libtarn
with libtarn.pool("host").alloc(64) as block:
    print("libtarn", libtarn.version(), block.size)
print(libtarn.why("@bert-layer").peak_bytes)'
)

build_conda() (
  set -e
  fresh conda
  PREFIX=$packaging/conda/prefix packaging/conda/build.sh
  has ../prefix bin/tarn lib/libtarn.so.0 include/tarn/tarn.h
  ../prefix/bin/tarn why @bert-layer >/dev/null
)

build_vcpkg() (
  set -e
  fresh vcpkg
  cmake -DPREFIX="$packaging/vcpkg/prefix" -P scripts/vcpkg-stand-in.cmake
  has ../prefix tools/tarn/tarn lib/libtarn.a include/tarn/tarn.h \
    share/tarn/tarn-config.cmake share/tarn/copyright
)

# library REF: builds the library of that commit, and prints where it is.
library() {
  rm -rf "${packaging:?}/$1"
  mkdir -p "$packaging/$1/tree"
  git archive "$1" | tar -x -C "$packaging/$1/tree"
  cmake -S "$packaging/$1/tree" -B "$packaging/$1/build" -G Ninja \
    -DTARN_BUILD_TESTS=OFF -DTARN_BUILD_EXAMPLES=OFF -DTARN_WITH_MPI=OFF >&2
  cmake --build "$packaging/$1/build" -j 2 --target tarn >&2
  echo "$packaging/$1"
}

# compare_abi REF: exit status 0, nothing that a program could rely on has
# changed; functions may have come.
compare_abi() (
  set -e
  before=$(library "$1")
  now=$(library HEAD)
  status=0
  abidiff --headers-dir1 "$before/tree/include" \
    --headers-dir2 "$now/tree/include" \
    "$before/build/libtarn.so" "$now/build/libtarn.so" || status=$?
  # Bits: 1 misuse, 2 an error, 4 a change, 8 one that is incompatible.
  ((status == 0 || status == 4))
)

abi_stage() {
  local tag
  if ! command -v abidiff >/dev/null; then
    skip 'ABI' 'needs abidiff (abigail-tools)'
  elif ! tag=$(git describe --tags --abbrev=0 2>/dev/null); then
    skip 'ABI' 'there is no tag yet: house_symbols compares the names'
  else
    quiet "ABI since $tag" compare_abi "$tag"
  fi
}

packaging_stages() {
  scripts/packages debian
  if command -v dpkg-buildpackage >/dev/null && command -v lintian >/dev/null &&
    command -v dh >/dev/null; then
    quiet 'packages for Debian' build_deb
  else
    skip 'packages for Debian' 'needs debhelper, dpkg-dev and lintian'
  fi
  quiet 'recipe for conda' build_conda
  quiet 'port for vcpkg' build_vcpkg
  abi_stage
}
