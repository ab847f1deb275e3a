// What a person asked hf-run to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli.h"

namespace hf {

struct RunFlags {
    CommonFlags common;
    std::vector<std::string> arguments;  // [model] ["prompt"]
    std::string file;                    // --file; "-" is standard input
    std::string prompt_ids;
    std::string dump_logits;        // path of a .npy
    std::string chat_template;      // a name; empty: the model's own
    std::vector<std::string> stop;  // strings that end the answer
    bool is_model_guessed = false;  // a lone argument was taken for it, since such a path exists
    bool is_raw = false;
    bool ignore_eos = false;
    bool print_ids = false, print_hash = false, is_json = false;
    bool is_profiled = false;
};

/// The exit code, when --help or --version was all.
/// Errors  hf::Error(usage), also for flags that contradict each other
std::optional<int> parse_run_flags(int argc, const char* const* argv, RunFlags& flags);

/// Refuses what has no meaning in a chat. Errors: hf::Error(usage)
void refuse_chat_flags(const RunFlags& flags);

/// Takes the model out of the arguments, as a flag; at most the prompt is left. See is_model().
void take_model_argument(RunFlags& flags, const std::vector<KnownModel>& models);

}  // namespace hf
