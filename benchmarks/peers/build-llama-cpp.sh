#!/bin/sh
# Builds llama.cpp's llama-bench, and ggml-gemv on its library, for this CPU, outside the tree, from
# the sources that the PyPI package llama-cpp-python carries. Takes many minutes.
#   sh benchmarks/peers/build-llama-cpp.sh FOLDER [VERSION OF llama-cpp-python]
# Leaves FOLDER/llama-bench, FOLDER/ggml-gemv, FOLDER/source and FOLDER/build. Downloads once.
set -eu
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
folder=$1 version=${2:-0.3.36}
peers=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$folder"
folder=$(CDPATH='' cd -- "$folder" && pwd)

if [ ! -d "$folder/source" ]; then
    python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$folder" \
        "llama-cpp-python==$version"
    mkdir "$folder/source.part"
    tar -xzf "$folder/llama_cpp_python-$version.tar.gz" -C "$folder/source.part" \
        --strip-components=3 "llama_cpp_python-$version/vendor/llama.cpp"
    mv "$folder/source.part" "$folder/source"
fi

# GCC 12 moves the stores of a tile configuration behind the instruction that reads them, so the
# AMX code computes nonsense with it. An empty statement that claims to read memory keeps them.
amx=$folder/source/ggml/src/ggml-cpu/amx/mmq.cpp
if ! grep -q 'keeps the stores' "$amx"; then
    sed -i 's|^\( *\)_tile_loadconfig(&\([a-z_]*\));|\1asm volatile("" : : "r"(\&\2) : "memory");  // keeps the stores\n&|' "$amx"
    grep -q 'keeps the stores' "$amx" || { echo "build-llama-cpp: $amx has no _tile_loadconfig to mend" >&2; exit 1; }
fi

cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DGGML_NATIVE=ON -DGGML_OPENMP=ON -DGGML_CCACHE=OFF -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_COMMIT="llama-cpp-python-$version" -DLLAMA_BUILD_NUMBER=0 \
    >"$folder/cmake.log"
ninja -C "$folder/build" llama-bench >"$folder/ninja.log" || {
    grep -E 'error|FAILED' "$folder/ninja.log" | head >&2
    exit 1
}
lib=$folder/build/ggml/src
c++ -O2 -std=c++20 -I"$folder/source/ggml/include" "$peers/ggml_gemv.cpp" -o "$folder/ggml-gemv" \
    "$lib/libggml.a" "$lib/libggml-cpu.a" "$lib/libggml-base.a" -fopenmp -lpthread -ldl
ln -sf build/bin/llama-bench "$folder/llama-bench"
echo "$folder/llama-bench"
