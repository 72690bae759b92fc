#!/bin/sh
# What runs in other people's programs reads the environment by secure_getenv
# only: in a program with rights beyond its user's, that user's variables must
# not count. docs/contracts.md has a row for each variable of the library.
#
#   environment.sh SOURCE_DIR
set -u
cd "$1" || exit 1
failed=0

if grep -rnE '(^|[^_[:alnum:]])getenv *\(' src plugins record preload torch \
  --include='*.[ch]' --include='*.cc'; then
  echo 'use secure_getenv there'
  failed=1
fi

# String literals of src/ and torch/ that are a name and nothing else. Names of headers
# (statuses, flags) count only where they are read.
for name in $(grep -rhoE '"TARN_[A-Z_]+"' src torch --include='*.c' \
  --include='*.cc' | tr -d '"' | sort -u); do
  grep -rqw "$name" include/tarn &&
    ! grep -rq "getenv(\"$name\")" src --include='*.c' && continue
  grep -q "^| \`$name\` |" docs/contracts.md || {
    echo "docs/contracts.md has no row for $name"
    failed=1
  }
done
exit $failed
