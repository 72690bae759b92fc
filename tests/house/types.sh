#!/bin/sh
# Internal types have the name of their room in theirs, so that no name stands
# for two types: tarn__synced_timeline in src/synced. Those of src/base, which
# every room uses, and of headers of plug-ins' rooms are held to the second rule
# only: one name, one type.
#
#   types.sh SOURCE_DIR
set -eu
cd "$1"

# shellcheck disable=SC2016  # an awk program
find src plugins record preload -name '*.[ch]' | sort | xargs awk '
  FNR == 1 {
    count = split(FILENAME, part, "/")
    room = count > 2 ? part[2] : part[1]
  }
  # struct, union or enum with a body, or a typedef of a name.
  match($0, /^(typedef )?(struct|union|enum) tarn__[a-z0-9_]+ \{/) ||
  match($0, /^typedef .*[ *(]tarn__[a-z0-9_]+(\)?\(|;|\[)/) {
    text = $0
    sub(/^typedef /, "", text)
    if ($0 ~ /\{/) sub(/^(struct|union|enum) /, "", text)
    else sub(/.*[ *(]/, "", text)
    if (match($0, /[ *(]tarn__[a-z0-9_]+(\)?\(|;|\[| \{)/) == 0) next
    name = substr($0, RSTART + 1, RLENGTH - 1)
    gsub(/[^a-z0-9_]/, "", name)
    # typedef struct tarn__x tarn__x; declares, and defines nothing.
    declared = $0 ~ ("(struct|union|enum) " name " " name ";")
    if (!declared && !(name in home)) home[name] = FILENAME
    else if (!declared && home[name] != FILENAME) {
      printf "%s is a type of %s and of %s\n", name, home[name], FILENAME
      failed = 1
    }
    if (room != "base" && index(name, "tarn__" room "_") != 1 &&
        name != "tarn__" room) {
      printf "%s: %s is not called tarn__%s_...\n", FILENAME, name, room
      failed = 1
    }
  }
  END { exit failed }'
