#!/bin/sh
# Runs the tests of a folder that is built.
#   sh scripts/run-tests.sh FOLDER [ctest options ...]
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
folder=$1
shift
exec ctest --test-dir "$folder" --output-on-failure --no-tests=error \
    --parallel "$(getconf _NPROCESSORS_ONLN)" "$@"
