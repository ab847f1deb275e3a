// Fuzzes the reader of safetensors headers.
#include "libcore/file/safetensors.h"
#include "tests/fuzz/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        hf::fuzz::touch(
            hf::read_safetensors({reinterpret_cast<const std::byte*>(data), size}, "x", 0));
    } catch (const hf::Error&) {
    }
    return 0;
}
