#!/bin/sh
# From a bare machine to passing tests: installs what is missing, builds, runs all but the slow ones.
#   sh scripts/test.sh
set -eu
scripts=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sh "$scripts/install-packages.sh" tmux  # drives the chat; without it that test is skipped
sh "$scripts/build.sh" build/release release
exec sh "$scripts/run-tests.sh" build/release -LE '^slow$'
