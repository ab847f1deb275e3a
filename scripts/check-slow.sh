#!/bin/sh
# The tests labelled slow, which test.sh leaves out.
set -eu
scripts=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sh "$scripts/build.sh" build/release release
exec sh "$scripts/run-tests.sh" build/release -L '^slow$'
