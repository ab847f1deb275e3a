// SourceModel: what a new file is made from: texts, and tensors whose rows are read one by one, all
// in the names and conventions of Hugging Face's files, whatever they are stored in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libcore/arch/arch.h"
#include "libcore/base/log.h"
#include "libcore/file/model_file.h"

namespace hf {

struct SourceTensor {
    std::string name;  // "model.layers.0.mlp.up_proj.weight"
    Role role = Role::count_;
    Use use = Use::vector;
    std::vector<uint64_t> dims;  // slowest first
    Shape shape;                 // a vector, whatever its dims, is one row

    /// Row `row` as float32 (cols). Called by many threads at once.
    std::function<void(uint64_t row, float* out)> read_row;

    // Of a tensor that lies in a file:
    const Codec* codec = nullptr;  // it is stored in; null: the numbers are made up
    uint64_t bytes = 0;            // stored
    std::string stored_name;
    std::vector<uint32_t> cols;  // where column i is stored; empty: at i
    /// The row's bytes, where its numbers are the stored ones in their order; else null.
    std::function<std::span<const std::byte>(uint64_t row)> packed_row;
};

struct SourceModel {
    std::string label;                      // for messages: a path
    uint32_t arch_id = 0;                   // of HFQ
    std::string metadata;                   // JSON, as HFQ files have it
    std::vector<SourceTensor> tensors;      // sorted by name
    std::shared_ptr<const ModelFile> file;  // keeps the views valid; null: made up
};

/// The name of a tensor in Hugging Face's files.
/// prefix  "model." or another one that goes before everything but the head
std::string hugging_face_name(const TensorRow& row, uint32_t layer, std::string_view prefix);

/// The dims of a tensor in Hugging Face's files, slowest first: a convolution is (channels, 1,
/// kernel), a vector has one.
std::vector<uint64_t> hugging_face_dims(const TensorRow& row, Shape shape);

/// The number that HFQ files have for an architecture.
uint32_t hfq_arch_id(const Architecture& arch);

/// The model of a folder, a GGUF or an HFQ file. What is not part of the text model (a vision
/// tower, a draft head) is left out, with a line in the log.
///
/// Values of a GGUF file are turned into Hugging Face's: 1 is taken from norms, the decay becomes
/// its logarithm, rows of q and k and value heads go back to their places. Rows are only moved, and
/// columns where the format is decoded anyway, so nothing is lost but the rounding of norms and
/// decays to float32.
///
/// Errors  hf::Error: what plan_tensors() refuses; a decay that is not below 0; rope divisors that
///         are not those of llama3 scaling; a tokenizer that tokenizer.json cannot express
/// Source  https://github.com/ggml-org/llama.cpp (convert_hf_to_gguf.py), the other way round
SourceModel open_source_model(std::shared_ptr<const ModelFile> file, const Log& log);

}  // namespace hf
