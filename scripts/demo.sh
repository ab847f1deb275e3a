#!/bin/sh
# From a bare machine to text: installs what is missing, builds, asks the bundled model.
#   sh scripts/demo.sh ["prompt" [flags of hf-run ...]]
# Only the model's text is on stdout.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
case ${1--} in
    -*) set -- 'Tell me a short story about a dragon.' "$@" ;;
esac

# Warnings are no errors here: the compiler may be one that we have not met.
sh "$root/scripts/build.sh" build/demo release -DHF_TESTS=OFF -DHF_WERROR=OFF
exec "$root/build/demo/tools/hf-run" -m "$root/models/demo" "$@"
