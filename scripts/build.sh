#!/bin/sh
# Installs what is missing, then configures (once) and builds.
#   sh scripts/build.sh FOLDER PRESET [-DNAME=VALUE ...]
# FOLDER is relative to the repository. Says nothing on stdout; progress goes to a terminal only.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
folder=$1 preset=$2
shift 2

sh scripts/install-packages.sh
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# Afterwards ninja configures again by itself when a CMake file has changed.
[ -f "$folder/build.ninja" ] || cmake --preset "$preset" -B "$folder" "$@" >/dev/null

quiet=--quiet
if [ -t 2 ]; then quiet=''; fi
case $(ninja -C "$folder" -n) in
    *'no work to do'*) ;;
    *)
        echo "build: $folder (the first time takes some minutes)" >&2
        # shellcheck disable=SC2086  # empty or one word
        ninja -C "$folder" $quiet >&2
        ;;
esac
