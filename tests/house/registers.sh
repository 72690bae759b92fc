#!/bin/sh
# A program with a device of its own is written without a cast, in C and in
# C++: examples/own_device.c as either, and what C++ has besides. device.h itself
# has no name of the plug-in ABI but that of a struct.
#
#   registers.sh SOURCE_DIR LIBRARY CC CXX
set -eu
source=$1 library=$2 cc=$3 cxx=${4-}

case $cxx in
  *NOTFOUND | '')
    echo 'SKIPPED: registering from C++: no C++ compiler here'
    exit 77
    ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags="-Wall -Wextra -Wpedantic -Wconversion -Werror -I$source/include"
says='mine:0: hello from a pool'

runs() { # runs PROGRAM
  LD_LIBRARY_PATH=$(dirname "$library") "$1" | grep -qxF "$says" || {
    echo "${1##*/} does not say: $says"
    exit 1
  }
}

# shellcheck disable=SC2086  # flags
"$cc" -std=c11 $flags "$source/examples/own_device.c" "$library" -o "$work/c"
runs "$work/c"
# shellcheck disable=SC2086
"$cxx" -x c++ -std=c++17 $flags "$source/examples/own_device.c" -x none \
  "$library" -o "$work/cxx"
runs "$work/cxx"

cat >"$work/more.cc" <<'END'
#include <tarn/device.h>  // before the headers that say what the types are
#include <tarn/device_abi.h>
#include <tarn/device_ext.h>

namespace runtime {
class context {
 public:
  static void init(CustomRuntimeParams *params) { params->device_type = name; }
  static const tarn_device_ext *ext() { return nullptr; }

 private:
  static inline char name[] = "mine";
};
}  // namespace runtime

int main() {
  using runtime::context;
  const auto none = TARN_E_UNSUPPORTED;  // for want of functions
  if (tarn_plugin_register(context::init, context::ext, "one") != none) return 1;
  if (tarn_plugin_register([](CustomRuntimeParams *) {},
                           []() -> const tarn_device_ext * { return nullptr; },
                           "two") != none)
    return 2;
  return tarn_plugin_register(nullptr, nullptr, "three") != TARN_E_INVALID;
}
END
# shellcheck disable=SC2086
"$cxx" -std=c++17 $flags "$work/more.cc" "$library" -o "$work/more"
LD_LIBRARY_PATH=$(dirname "$library") "$work/more"

# The prototype has no name of the ABI that a vendor's header might mean
# otherwise.
if grep -nE '\bC_[A-Z]' "$source/include/tarn/device.h"; then
  echo 'include/tarn/device.h has names of the plug-in ABI: see above'
  exit 1
fi
