#!/bin/sh
# The readers of files under libFuzzer and the sanitizers, for a while each.
#   sh scripts/check-fuzz.sh [SECONDS]
# An input that breaks a reader stays in build/fuzz; add it to tests/fuzz/corpus with the fix.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
seconds=${1:-10}

sh scripts/install-packages.sh clang-19
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# Loops are not vectorised where edges are counted, and clang warns of each that asked for it.
[ -f build/fuzz/build.ninja ] ||
    cmake --preset sanitize -B build/fuzz -DCMAKE_CXX_COMPILER=clang++-19 -DHF_FUZZ=ON \
        -DCMAKE_CXX_FLAGS=-Wno-pass-failed >/dev/null
ninja -C build/fuzz --quiet fuzz >&2

found=$(mktemp -d)  # inputs that reach new code; not kept
trap 'rm -rf "$found"' EXIT
for container in gguf hfq safetensors; do
    mkdir "$found/$container"
    # 64 MB plus twice the header is what a reader may take; the sanitizers' own memory comes on top
    "build/fuzz/tests/fuzz/fuzz_$container" -max_total_time="$seconds" -max_len=16384 -timeout=5 \
        -malloc_limit_mb=64 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$container-" \
        "$found/$container" "tests/fuzz/corpus/$container" 2>"$found/output" || {
        cat "$found/output" >&2
        exit 1
    }
    echo "check-fuzz: $container, $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' "$found/output") inputs"
done
