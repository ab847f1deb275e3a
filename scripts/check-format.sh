#!/bin/sh
# All C++ is laid out as clang-format 14 does with .clang-format (other versions differ in places).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
command -v clang-format-14 >/dev/null || sh scripts/install-packages.sh clang-format-14
sources=$(find benchmarks cpuexec kernels libcore tests tools \
    -name '*.h' -o -name '*.cpp' -o -name '*.hip' 2>/dev/null | sort)
# shellcheck disable=SC2086  # our own file names hold no spaces
exec clang-format-14 --dry-run --Werror $sources
