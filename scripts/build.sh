#!/bin/sh
# Installs what is missing, then configures (once) and builds.
#   sh scripts/build.sh FOLDER PRESET [TARGETS] [-DNAME=VALUE ...]
# FOLDER is relative to the repository; TARGETS is one word or several in quotes, all by default.
# Says nothing on stdout; progress goes to a terminal only.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
folder=$1 preset=$2 targets=
shift 2
case ${1:--} in
    -*) ;;
    *) targets=$1 && shift ;;
esac

sh scripts/install-packages.sh
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# Afterwards ninja configures again by itself when a CMake file has changed.
[ -f "$folder/build.ninja" ] || cmake --preset "$preset" -B "$folder" "$@" >/dev/null

quiet=--quiet
if [ -t 2 ]; then quiet=''; fi
# shellcheck disable=SC2086  # several words are meant, or none
case $(ninja -C "$folder" -n $targets) in
    *'no work to do'*) ;;
    *)
        echo "build: $folder (the first time takes some minutes)" >&2
        # shellcheck disable=SC2086
        ninja -C "$folder" $quiet $targets >&2
        ;;
esac
