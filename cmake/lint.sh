#!/usr/bin/env bash
# cmake/lint.sh BUILD_FOLDER: clang-tidy over all sources that the build folder compiles, generated ones excepted.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: cmake/lint.sh BUILD_FOLDER}

tidy=$(command -v clang-tidy-14 || command -v clang-tidy) ||
  { echo "clang-tidy is missing: sudo apt-get install clang-tidy" >&2; exit 2; }
find src studies tests -name '*.cpp' -not -path 'tests/install/*' -print0 |
  xargs -0 -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet --warnings-as-errors='*'
echo "clang-tidy: clean"
