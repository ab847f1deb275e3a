// HFQ files for tests: valid ones, and ones in which any field lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace hf::test {

struct HfqTensorParts {
    std::string name;
    uint8_t format;
    std::vector<uint32_t> dims;  // slowest first
    std::string data;
    std::optional<uint64_t> bytes = {};
};

struct HfqParts {
    std::string magic = "HFQM";
    uint32_t version = 1, arch_id = 5;
    std::string metadata = R"({"config":{}})";
    std::vector<HfqTensorParts> tensors;
    std::string tail;  // behind the payloads
    uint64_t metadata_offset = 32;
    std::optional<uint64_t> data_offset = {};
    std::optional<uint32_t> n_tensors = {}, n_tensors_in_index = {};

    std::string bytes() const {
        std::string index, data;
        put(index, n_tensors_in_index.value_or(uint32_t(tensors.size())));
        for (const HfqTensorParts& t : tensors) {
            put(index, uint16_t(t.name.size()));
            index += t.name;
            put(index, t.format);
            put(index, uint8_t(t.dims.size()));
            for (const uint32_t dim : t.dims) put(index, dim);
            put(index, uint32_t(0));  // group size
            put(index, t.bytes.value_or(t.data.size()));
            data += t.data;
        }
        const uint64_t end = 32 + metadata.size() + index.size();
        const uint64_t data_begin = (end + 4095) / 4096 * 4096;
        std::string out = magic;
        put(out, version);
        put(out, arch_id);
        put(out, n_tensors.value_or(uint32_t(tensors.size())));
        put(out, metadata_offset);
        put(out, data_offset.value_or(data_begin));
        out += metadata + index;
        out.resize(data_begin);
        return out + data + tail;
    }
};

}  // namespace hf::test
