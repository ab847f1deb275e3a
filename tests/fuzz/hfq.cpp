// Fuzzes the reader of HFQ headers and their metadata.
#include "libcore/file/hfq.h"
#include "tests/fuzz/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const hf::ModelFile model =
            hf::read_hfq({reinterpret_cast<const std::byte*>(data), size}, "x", {});
        hf::fuzz::touch(model.tensors);
        hf::fuzz::touch(model.gguf);
    } catch (const hf::Error&) {
    }
    return 0;
}
