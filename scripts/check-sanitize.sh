#!/bin/sh
# The tests under the address and undefined-behaviour sanitizers.
set -eu
scripts=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sh "$scripts/build.sh" build/sanitize sanitize
exec sh "$scripts/run-tests.sh" build/sanitize -LE '^slow$'
