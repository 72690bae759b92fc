#!/bin/sh
# Fails on an #include that runs upward or sideways.
#
#   layering.sh ROOT    checks the tree at ROOT; prints FILE:LINE for each
#
# Each row: files below a path; the public headers they may include
# (tarn/NAME.h); the folders, of src/ or of the root, whose private headers, or
# the single private headers, they may include. The longest path that fits
# decides. "-": none. "*": any. "users": what programs that use the library
# see, which is every public header but those for plug-ins. A file without a
# folder in its #include is looked for beside the includer.
#
#        floor 7         layout
#        floor 6              disk
#        floor 5              embedding
#        floor 4   model      table      cache
#        floor 3   synced     whole
#        floor 2          pool
#        floor 1  trace  plan  device  comm  format
#        floor 0          base
set -eu

table='
include/tarn/arena.h       base                                -
include/tarn/base.h        -                                   -
include/tarn/counted.h    base                                -
include/tarn/trace.h       base                                -
include/tarn/trace_build.h base,trace                          -
include/tarn/trace_write.h base,trace                          -
include/tarn/snapshot.h    pool,trace,trace_write              -
include/tarn/plan.h        base                                -
include/tarn/plan_csv.h    base,plan                           -
include/tarn/device.h      base,stream                         -
include/tarn/stream.h      base                                -
include/tarn/device_abi.h  -                                   -
include/tarn/device_ext.h  base                                -
include/tarn/range.h       base,device                         -
include/tarn/rows.h        base,device                         -
include/tarn/sim.h         base                                -
include/tarn/pool.h        base,device                         -
include/tarn/account.h     pool                                -
include/tarn/alloc.h       pool                                -
include/tarn/capture.h     pool                                -
include/tarn/misuse.h      pool                                -
include/tarn/share.h       pool                                -
include/tarn/sleep.h       pool                                -
include/tarn/strategy.h    base,device                         -
include/tarn/synced.h      base,device,pool                    -
include/tarn/traffic.h     synced                              -
include/tarn/comm.h        base                                -
include/tarn/whole.h       base,comm,device                    -
include/tarn/table.h       base,whole                          -
include/tarn/embedding.h   base,table,whole                    -
include/tarn/cache.h       base,whole                          -
include/tarn/disk.h        base,comm,embedding,whole           -
include/tarn/safetensors.h base                                -
include/tarn/dlpack.h      base,device                         -
include/tarn/model.h       base,device,pool,plan,synced,whole  -
include/tarn/model_run.h   model                                   -
include/tarn/model_file.h  dlpack,model,safetensors                -
include/tarn/compat_awnn.h model                               -
include/tarn/layout.h      base                                -
include/tarn/tarn.h        users                               -
src/base/                  base,counted                        base
src/trace/                 base,trace,trace_build,trace_write  base,trace
src/plan/                  base,plan,plan_csv                  base,plan
src/device/                base,device,device_abi,device_ext,range,rows  base,device
src/format/                base,safetensors                    base,format
src/pool/                  account,alloc,arena,base,capture,device,misuse,plan,pool,range,share,sleep,snapshot,strategy,trace,trace_build,trace_write  base,device/memory.h,plan/quick.h,pool
src/synced/                alloc,base,device,pool,synced,traffic     base,synced
src/comm/                  base,comm                           base,comm
src/whole/                 account,alloc,base,comm,device,pool,range,rows,whole  base,comm/comm.h,whole
src/model/                 base,compat_awnn,device,dlpack,model,model_file,model_run,plan,pool,safetensors,synced,traffic,whole  base,model
src/table/                 base,comm,device,safetensors,table,whole  base,comm/comm.h,format,table,whole/pager.h,whole/whole.h
src/embedding/             base,device,embedding,table,whole   base,comm/comm.h,embedding,table/rows.h,whole/pager.h,whole/rows.h,whole/whole.h
src/disk/                  base,comm,disk,embedding,whole      base,cache/sieve.h,comm/comm.h,disk,embedding/embedding.h,table/course.h,table/file.h,whole/pager.h
src/cache/                 alloc,base,cache,pool,whole         base,cache,whole/rows.h
src/layout/                users,device_ext                    layout
record/                    base,trace,device_abi               base,record,trace/log.h
preload/                   account,base,pool,snapshot          base,cpu/cpu.h,pool/hold.h,preload
plugins/                   base,device_abi,device_ext,sim      base,common
mpi/                       base,comm                           comm/launcher.h
torch/                     alloc,base,capture,device,pool,sleep,snapshot  torch
kit/                       users                               kit
tool/                      users                               kit
tool/cmd_conform.c         users                               conform,kit
tool/bench_                users                               bench,kit
tool/conform_report.       users                               conform,kit
examples/                  users                               job,nets
examples/own_device.c      users,device_abi                    -
examples/nets/             -                                   -
examples/nets/hold.h        users                               -
examples/nets/meter.h      users                               -
examples/nets/net.h        users                               -
examples/nets/picture.h    users                               -
examples/nets/             users                               -
conform/                   users,device_abi,device_ext         base,conform,device
bench/                     users                               kit
bench/gpu/                 users                               bench
fuzz/                      users,device_abi,device_ext         *
tests/                     users,device_abi,device_ext         *
'

cd "${1:?usage: layering.sh ROOT}"

folders=
for folder in include src record preload plugins mpi torch conform kit tool examples \
  bench fuzz tests; do
  [ ! -d "$folder" ] || folders="$folders $folder"
done

# shellcheck disable=SC2016,SC2086  # an awk program, a list of folders
find $folders -type f \( -name '*.[ch]' -o -name '*.cc' \) | sort |
  xargs awk -v table="$table" '
    function has(list, item) { return index("," list ",", "," item ",") > 0 }

    function complain(text) {
      printf "%s:%d: %s\n", FILENAME, FNR, text
      bad = 1
    }

    function exists(path,    line, got) {
      got = (getline line < path) >= 0
      close(path)
      return got
    }

    # Sets |headers| and |rooms| to what the file may see.
    function look_up(file,    i, best) {
      best = 0
      headers = rooms = ""
      for (i = 1; i <= count; i++) {
        if (index(file, path[i]) == 1 && length(path[i]) > best) {
          best = length(path[i])
          headers = sees[i]
          rooms = enters[i]
        }
      }
      if (!best) complain("no row of tests/house/layering.sh says what this file may see")
    }

    function check_public(name) {
      if (has(headers, name)) return
      if (has(headers, "users") && name !~ /^device_(abi|ext)$/) return
      complain("must not see tarn/" name ".h")
    }

    function check_private(target,    folder, beside) {
      beside = FILENAME
      sub(/[^\/]*$/, "", beside)
      if (target ~ /\.\./) complain("an include with \"..\": " target)
      else if (rooms == "*" || exists(beside target)) return
      else if (index(target, "/") == 0) complain("no such file here: " target)
      else {
        folder = target
        sub(/\/.*/, "", folder)
        if (!has(rooms, folder) && !has(rooms, target)) complain("must not see " target)
      }
    }

    BEGIN {
      rows = split(table, row, "\n")
      for (i = 1; i <= rows; i++) {
        if (split(row[i], field, " ") != 3) continue
        count++
        path[count] = field[1]
        sees[count] = field[2]
        enters[count] = field[3]
      }
    }

    FNR == 1 { look_up(FILENAME) }

    /^[ \t]*#[ \t]*include/ {
      target = $0
      sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
      if (target ~ /^[<"]tarn\/[a-z_]+\.h[>"]/) {
        sub(/^.tarn\//, "", target)
        sub(/\.h.*/, "", target)
        check_public(target)
      } else if (target ~ /^"[^"]+"/) {
        target = substr(target, 2)
        sub(/".*/, "", target)
        check_private(target)
      } else if (target !~ /^<[^>]+>/) {
        complain("an include that this check cannot read: " target)
      }
    }

    END { exit bad }'
