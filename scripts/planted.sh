# shellcheck shell=bash disable=SC2154  # variables of scripts/check
# The stage of `scripts/check long` that checks the check: it plants each fault
# of tests/planted in a copy of the tree, and the stage of the whole check that
# is named in the fault's file has to fail. A file there is a patch below a few
# lines of text:
#
#   stage: asan            a preset whose tests find it, or fuzz, or clang-tidy
#   finds: pool_reserve    a test, a fuzzer, or the source that is looked at
#   needs: chromium        a program without which that test is skipped
#
#   What is wrong with it, and what has found one of its kind before.

readonly planted=$PWD/build/planted

# field NAME PATCH
field() {
  sed -n "s/^$1: //p" "$2" | head -n 1
}

# The tree as it is now. An earlier copy goes with all that was built in it: its
# objects may have a fault, and be newer than the sources.
copy_tree() {
  rm -rf "$planted"
  mkdir -p "$planted"
  tar -c --exclude './build*' --exclude ./.git . | tar -x -C "$planted"
}

# find_by STAGE NAME: builds what finds a fault in the copy, and runs it. Its
# status is that of the finder; 2 if that could not be built.
find_by() {
  local stage=$1 name=$2
  case $stage in
    fuzz)
      cmake --build --preset fuzz --target "fuzz_$name" || return 2
      mkdir -p "$logs" && run_fuzzer "$logs" 5 "build-fuzz/fuzz/fuzz_$name"
      ;;
    clang-tidy)
      clang-tidy -p build --quiet --extra-arg=-UNDEBUG \
        --extra-arg=-Xclang --extra-arg=-analyzer-config \
        --extra-arg=-Xclang --extra-arg=max-nodes=20000 "$name"
      ;;
    *)
      cmake --build --preset "$stage" --target "test_$name" || return 2
      ctest --preset "$stage" -R "^$name\$" --no-tests=error
      ;;
  esac
}

# find_planted PATCH: succeeds if the tree as it is passes what is to find the
# fault, and with the fault does not.
find_planted() (
  patch=$1 result=0
  stage=$(field stage "$patch") name=$(field finds "$patch")
  cd "$planted" || exit
  find_by "$stage" "$name" || fail "$name fails without the fault."
  patch -p1 --fuzz=0 --dry-run <"$patch" || fail 'The tree has changed here.'
  patch -p1 --fuzz=0 <"$patch"
  find_by "$stage" "$name" || result=$?
  patch -p1 -R <"$patch" || fail 'The fault stays in the copy.'
  ((result != 2)) || fail 'It does not compile with the fault.'
  ((result != 0)) || fail "$name passes with the fault."
)

fail() {
  echo "$1"
  exit 1
}

configure_planted() (
  cd "$planted" || exit
  for preset in release asan tsan; do
    cmake --preset "$preset" -DTARN_BUILD_TESTS=ON || exit
  done
  cmake --preset fuzz -DTARN_BUILD_TESTS=OFF
)

planted_stages() {
  local patch name need
  if ! clang_sanitizes || ! has_llvm clang-tidy; then
    skip 'planted faults' "needs clang-tidy $llvm and clang's sanitizers"
    return
  fi
  copy_tree
  quiet 'planted faults, configure' configure_planted || return
  for patch in "$PWD"/tests/planted/*.patch; do
    name="planted: $(basename "$patch" .patch)"
    need=$(field needs "$patch")
    if [[ -n $need ]] && ! command -v "$need" >/dev/null; then
      skip "$name" "needs $need"
    else
      quiet "$name" find_planted "$patch"
    fi
  done
}
