// Fuzzes the reader of GGUF headers.
#include "libcore/file/gguf.h"
#include "tests/fuzz/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const hf::GgufContents contents =
            hf::read_gguf({reinterpret_cast<const std::byte*>(data), size}, "x", 0);
        hf::fuzz::touch(contents.tensors);
        hf::fuzz::touch(hf::GgufKeys("x", contents.keys));
    } catch (const hf::Error&) {
    }
    return 0;
}
