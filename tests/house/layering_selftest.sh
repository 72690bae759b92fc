#!/bin/sh
# Plants one violation after the other and wants layering.sh to name it: a
# check that cannot fail counts for nothing.
set -eu

check=${1:?usage: layering_selftest.sh LAYERING.SH}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

put() { # put FILE LINE...
  mkdir -p "$tree/$(dirname "$1")"
  file=$tree/$1
  shift
  printf '%s\n' "$@" >"$file"
}

clean_tree() {
  rm -rf "${tree:?}"/*
  put include/tarn/base.h '#include <stddef.h>'
  put include/tarn/device.h '#include "tarn/base.h"'
  put include/tarn/pool.h '#include "tarn/base.h"' '#include "tarn/device.h"'
  put include/tarn/tarn.h '#include "tarn/pool.h"'
  put src/base/os.h '#include "tarn/base.h"'
  put src/device/device.h '#include "tarn/device_abi.h"' '#include "base/os.h"'
  put src/pool/front.c '#include "tarn/pool.h"' '#  include "base/os.h"' \
    '#include "device/memory.h"'
  put plugins/cpu/cpu.c '#include "tarn/device_abi.h"' '#include "base/os.h"'
  put torch/torch.cc '#include <mutex>' '#include "tarn/pool.h"'
  put tool/main.h '#include <tarn/tarn.h>'
  put tool/main.c '#include "main.h"' '// #include "pool/front.h"'
  put tests/pool/x.c '#include "support/run.h"' '#include "pool/front.h"'
}

allowed() {
  if ! output=$("$check" "$tree"); then
    printf 'a clean tree is refused:\n%s\n' "$output"
    failed=1
  fi
}

caught() { # caught WHAT FILE LINE
  clean_tree
  put "$2" '' "$3"
  if output=$("$check" "$tree"); then
    printf 'not caught: %s\n' "$1"
    failed=1
  elif [ "${output#"$2:2: "}" = "$output" ]; then
    printf '%s: caught, but not as %s:2:\n%s\n' "$1" "$2" "$output"
    failed=1
  fi
}

clean_tree
allowed
caught 'base sees pool' src/base/list.c '#include "tarn/pool.h"'
caught 'base sees a private header above' src/base/list.c '#include "pool/front.h"'
caught 'trace sees its neighbour' src/trace/trace.c '#include "tarn/device.h"'
caught 'pool sees what it may not of plan' src/pool/pool.c '#include "plan/search.h"'
caught 'pool reads tables of buffers' src/pool/pool.c ' # include <tarn/plan_csv.h>'
caught 'plan sees device' src/plan/plan.c '#include <tarn/device.h>'
caught 'plan sees pool' src/plan/plan.c '#include "pool/front.h"'
caught 'pool sees the ABI' src/pool/pool.c '#include "tarn/device_abi.h"'
caught 'pool sees all of it' src/pool/pool.c '#include "tarn/tarn.h"'
caught 'pool sees the device room' src/pool/pool.c '#include "device/device.h"'
caught 'pool goes around by a path' src/pool/pool.c '#include "../device/device.h"'
caught 'a plug-in sees the pool' plugins/cpu/cpu.c '#include "tarn/pool.h"'
caught 'a plug-in sees the device room' plugins/cpu/cpu.c '#include "device/device.h"'
caught 'C++ sees a private header' torch/torch.cc '#include "base/os.h"'
caught 'the tool sees a private header' tool/main.c '#include "base/os.h"'
caught 'the tool sees the ABI' tool/main.c '#include <tarn/device_abi.h>'
caught 'a public header sees upward' include/tarn/device.h '#include "tarn/pool.h"'
caught 'a public header sees a private one' include/tarn/pool.h '#include "base/os.h"'
caught 'an include by a macro' src/base/list.c '#include HEADER'
caught 'a header that is not beside' src/base/list.c '#include "front.h"'

clean_tree
put src/attic/a.c ''
if "$check" "$tree" >/dev/null; then
  echo 'not caught: a room without a row'
  failed=1
fi
exit "$failed"
