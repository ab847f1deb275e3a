#!/bin/sh
# The tests that use threads, under the thread sanitizer.
set -eu
scripts=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sh "$scripts/build.sh" build/sanitize-thread sanitize-thread tests_threads
exec sh "$scripts/run-tests.sh" build/sanitize-thread -L '^threads$'
