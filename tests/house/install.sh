#!/bin/sh
# Installs, moves the installed tree elsewhere, and builds a program against
# it as a user would: find_package and pkg-config, shared and static. Plug-ins
# that are not in the library are installed, and found from there.
#
#   install.sh SOURCE_DIR BUILD_DIR CMAKE GENERATOR CC [CXX]
set -eu
source=$1 build=$2 cmake=$3 generator=$4 cc=$5 cxx=${6-}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/moved

unset DESTDIR LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH \
  TARN_PLUGIN_DIR || :

says_hello() { # says_hello HOW PROGRAM LIBRARY_PATH [DEVICE]
  device=${4:-cpu:0}
  case $(LD_LIBRARY_PATH=$3 "$2" "$device") in
    "hello from $device:"*) echo "$1: runs" ;;
    *)
      echo "$1: does not say hello"
      exit 1
      ;;
  esac
}

wants() { # wants shared|static PROGRAM
  linked=static
  if ldd "$2" | grep -q libtarn; then linked=shared; fi
  [ "$linked" = "$1" ] || { echo "$2 is linked $linked"; exit 1; }
}

try() { # a command whose output matters only if it fails
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
}

# What is installed can be removed again. The list of it is the folder's own.
try env DESTDIR="$work/gone" "$cmake" --install "$build"
try env DESTDIR="$work/gone" "$cmake" -DMANIFEST="$build/install_manifest.txt" \
  -P "$source/cmake/uninstall.cmake"
left=$(find "$work/gone" ! -type d)
[ -z "$left" ] || { echo "uninstall leaves $left"; exit 1; }

try "$cmake" --install "$build" --prefix "$work/first"
mv "$work/first" "$prefix"
libdir=$(dirname "$(find "$prefix" -name libtarn.so)")

if grep -rl -e "$source" -e "$work/first" "$libdir/cmake" "$libdir/pkgconfig"; then
  echo 'the files above hold a path of the machine that built them'
  exit 1
fi
[ -f "$libdir/libtarn.so.0" ] || { echo 'no libtarn.so.0'; exit 1; }
torch=$libdir/libtarn_torch.so # where there is a compiler for C++
[ ! -f "$torch" ] || ldd "$torch" | grep -q "=> $libdir/libtarn.so.0 " || {
  echo 'libtarn_torch.so does not find libtarn.so.0 beside it'
  exit 1
}
[ -x "$prefix/bin/tarn" ] || { echo 'no bin/tarn'; exit 1; }
"$prefix/bin/tarn" --version >/dev/null
for completion in bash-completion/completions/tarn zsh/site-functions/_tarn; do
  [ -f "$prefix/share/$completion" ] || { echo "no share/$completion"; exit 1; }
done
heap=$libdir/libtarn-malloc.so # a build with a sanitizer has none
[ ! -f "$heap" ] || ! ldd "$heap" | grep -q libtarn || {
  echo 'libtarn-malloc.so needs a library of Tarn'
  exit 1
}
# shellcheck disable=SC2016  # for the program
[ ! -f "$heap" ] ||
  [ "$("$prefix/bin/tarn" preload sh -c 'echo "$LD_PRELOAD"')" = \
    "$(realpath "$heap")" ] || {
  echo 'tarn preload does not find libtarn-malloc.so where it is installed'
  exit 1
}

try "$cmake" -S "$source/tests/house/consumer" -B "$work/consumer" \
  -G "$generator" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" \
  -DHELLO="$source/examples/hello.c"
try "$cmake" --build "$work/consumer"
says_hello 'find_package, tarn::tarn' "$work/consumer/hello_shared" ''
says_hello 'find_package, tarn::tarn_static' "$work/consumer/hello_static" ''
wants shared "$work/consumer/hello_shared"
wants static "$work/consumer/hello_static"

# A module in LIBDIR/tarn is found, and only those are there that are not built
# in.
for module in "$build"/plugins/tarn_*.so; do
  name=$(basename "$module")
  there=no
  [ ! -f "$libdir/tarn/$name" ] || there=yes
  case $name in
    tarn_cpu.so | tarn_sim.so) wanted=no ;;
    *) wanted=yes ;;
  esac
  [ "$there" = "$wanted" ] || { echo "$name is installed: $there"; exit 1; }
done
cp "$build/tests/libtarn_small_plugin.so" "$libdir/tarn/tarn_small.so"
"$prefix/bin/tarn" devices -o csv | grep -q '^small:0,' || {
  echo 'bin/tarn does not find a module'
  exit 1
}
cp "$work/consumer/hello_static" "$prefix/bin/hello_static"
says_hello 'a module, beside libtarn.so' "$work/consumer/hello_shared" '' small:0
says_hello 'a module, from bin' "$prefix/bin/hello_static" '' small:0

if ! command -v pkg-config >/dev/null; then
  echo 'SKIPPED: install by pkg-config: no pkg-config here'
  exit 0
fi
export PKG_CONFIG_PATH="$libdir/pkgconfig"
# shellcheck disable=SC2046  # flags
"$cc" -std=c11 "$source/examples/hello.c" \
  $(pkg-config --cflags --libs tarn) -o "$work/hello_shared"
# shellcheck disable=SC2046
"$cc" -std=c11 "$source/examples/hello.c" $(pkg-config --cflags tarn) \
  $(pkg-config --static --libs tarn | sed 's/-ltarn/-l:libtarn.a/') \
  -o "$work/hello_static"
says_hello 'pkg-config' "$work/hello_shared" "$libdir"
says_hello 'pkg-config --static' "$work/hello_static" ''
wants shared "$work/hello_shared"
wants static "$work/hello_static"
if [ -z "$cxx" ]; then
  echo 'SKIPPED: install of tarn.hpp: no compiler for C++17 here'
  exit 0
fi
# shellcheck disable=SC2046
"$cxx" -std=c++17 "$source/examples/hello.cc" \
  $(pkg-config --cflags --libs tarn) -o "$work/hello_cpp"
says_hello 'pkg-config, tarn.hpp' "$work/hello_cpp" "$libdir"
