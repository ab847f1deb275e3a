// Generate: from a prompt's ids to an answer, with the numbers that a tool prints about it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/exec/session.h"
#include "libcore/run/prompt.h"
#include "libcore/run/sampler.h"
#include "libcore/text/tokenizer.h"

namespace hf {

/// Why an answer ended.
enum class Finish : uint8_t {
    stop,     // the model said so: a stop id, which is the answer's last one
    length,   // max_tokens were generated
    context,  // no room for another token
    interrupted,
    stop_string,  // the text came to one of stop_strings; goes before the other reasons
};
std::string_view finish_name(Finish finish);

struct GenerateOptions {
    uint32_t max_tokens = 512;
    std::vector<int32_t> stop_ids = {};  // empty: the model cannot end its answer
    /// Nothing of them is text of a token; what may become one is held back. Need a tokenizer.
    std::vector<std::string> stop_strings = {};
};

/// One token of the answer, as soon as it is chosen. Valid during the call.
struct GeneratedToken {
    int32_t id;
    std::string_view text;  // what became readable by it: UTF-8, often several or no characters
    std::span<const float> logits;  // (vocab) it was chosen from, before any penalty
};

/// What one phase took. bytes are those of weights, cache and activations that the passes moved.
struct Phase {
    uint32_t tokens = 0;  // that went through the model
    uint64_t bytes = 0;
    double seconds = 0;

    double tok_per_s() const { return seconds > 0 ? tokens / seconds : 0; }
    double gb_per_s() const { return seconds > 0 ? double(bytes) / seconds * 1e-9 : 0; }
    double bytes_per_token() const { return tokens > 0 ? double(bytes) / tokens : 0; }
};

struct Generation {
    std::vector<int32_t> ids;        // of the answer, a stop id included
    std::vector<float> last_logits;  // (vocab) the last id was chosen from; see hash_answer
    Finish finish = Finish::interrupted;
    Phase prompt;
    Phase decode;  // its first token came from the prompt's pass and is not in here
};

/// Feeds the prompt, then picks and feeds one token after another. The last token picked is not
/// fed.
///
/// tokenizer  turns ids into text; null: texts are empty
/// on_token   called once per token of the answer; its time belongs to no phase
/// interrupt  asked between passes; a token that was being worked on still comes
/// Errors     hf::Error: see check_prompt, StopStrings, Sampler::pick
Generation generate(Session& session, std::span<const int32_t> prompt, Sampler& sampler,
                    const Tokenizer* tokenizer, const GenerateOptions& options,
                    const std::function<void(const GeneratedToken&)>& on_token,
                    const Progress& on_progress, const std::atomic<bool>& interrupt);

}  // namespace hf
