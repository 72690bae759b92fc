#!/usr/bin/env bash
# Conda runs it in the tree, with PREFIX and CMAKE_ARGS of its own.
set -euo pipefail
read -ra options <<<"${CMAKE_ARGS-}"
cmake -S . -B build-conda -G Ninja "${options[@]}" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX="$PREFIX" \
  -DCMAKE_INSTALL_LIBDIR=lib -DTARN_BUILD_TESTS=OFF \
  -DTARN_BUILD_EXAMPLES=OFF -DTARN_WITH_MPI=OFF
cmake --build build-conda -j "${CPU_COUNT-2}"
cmake --install build-conda
