// Answer: how hf-run shows a generation, to people and to programs.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/device/device.h"
#include "libcore/ops/profile.h"
#include "libcore/run/generate.h"
#include "libcore/run/product_kinds.h"
#include "libcore/run/sampler.h"
#include "tools/output.h"

namespace hf {

/// What is known before the first token; printed beside every number.
struct RunFacts {
    std::string model, architecture, container;
    DeviceInfo device;
    std::vector<ProductKind> products;
    std::string kv_cache;
    uint32_t max_seq = 0;
    std::string chat_template;  // its name; empty: raw text or ids
    std::string answer_begins;  // the part of the answer that stands in the prompt
    SamplingOptions sampling;
    uint32_t prompt_tokens = 0;
    uint64_t prompt_hash = 0;  // of the prompt's ids
};

enum class AnswerForm : uint8_t { text, ids, json };

/// Writes an answer while it comes. JSON is valid and UTF-8 whatever the model says; docs/hf-run.md
/// describes its objects.
class AnswerWriter {
  public:
    AnswerWriter(Output& output, AnswerForm form, bool ids_in_json)
        : output_(output), form_(form), ids_in_json_(ids_in_json) {}

    void start(const RunFacts& facts);
    void token(const GeneratedToken& token);
    /// Ends the answer: with one newline, or with the summary object.
    ///
    /// profile  null when nobody asked for it
    void finish(const RunFacts& facts, const Generation& generation, std::optional<uint64_t> hash,
                const StepProfile* profile);

  private:
    Output& output_;
    AnswerForm form_;
    bool ids_in_json_;
    bool ends_in_newline_ = true;                 // nothing was written yet
    bool is_shown_ = is_terminal(STDOUT_FILENO);  // then control characters are not for it
};

/// One line for people: tokens and speed of both phases, bytes, device, seed, why it ended.
std::string summary_line(const RunFacts& facts, const Generation& generation);

}  // namespace hf
