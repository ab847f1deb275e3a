#include "libcore/run/inspect.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "libcore/base/error.h"
#include "libcore/exec/session.h"
#include "libcore/load/tensor_plan.h"
#include "libcore/run/model_defaults.h"
#include "libcore/run/open_tokenizer.h"
#include "libcore/run/prompt.h"
#include "libcore/text/chat.h"

namespace hf {
namespace {

/// A GGUF file's name for the model, and for how text is cut into pieces if it says so.
std::string tokenizer_kind(const ModelFile& file) {
    if (!file.tokenizer.empty()) return "tokenizer.json";
    const std::string pre = file.gguf.text("tokenizer.ggml.pre", "");
    return file.gguf.text("tokenizer.ggml.model", "") + (pre.empty() ? "" : " ") + pre;
}

TokenizerFacts tokenizer_facts(const ModelFile& file, const Tokenizer& tokenizer) {
    TokenizerFacts facts{tokenizer_kind(file), uint32_t(tokenizer.known_ids()), 0};
    for (int32_t id = 0; id < tokenizer.known_ids(); ++id)
        facts.special += tokenizer.is_special(id);
    return facts;
}

struct Inspector {
    const ModelFile& file;
    const InspectOptions& options;
    Inspection found;

    /// Does a part; when it fails, that is a refusal, once.
    void attempt(Stops stops, const std::function<void()>& part) {
        try {
            part();
        } catch (const Error& error) {
            const auto says = [&](const Obstacle& r) { return r.sentence == error.what(); };
            if (std::ranges::none_of(found.refusals, says))
                found.refusals.push_back({stops, error.what()});
        }
    }

    void count_formats() {
        std::map<std::string, FormatFacts> by_name;
        for (const TensorView& t : file.tensors) {
            const std::string name = t.codec ? std::string(t.codec->name) : t.dtype;
            FormatFacts& facts =
                by_name.try_emplace(name, FormatFacts{name, t.codec}).first->second;
            facts.tensors += 1;
            facts.weights += elements(t);
            facts.bytes += t.bytes.size();
        }
        for (auto& [name, facts] : by_name) found.formats.push_back(std::move(facts));
        std::ranges::sort(found.formats, [](const FormatFacts& a, const FormatFacts& b) {
            return std::tie(b.bytes, a.name) < std::tie(a.bytes, b.name);
        });
        for (const MappedFile& mapped : file.files) found.file_bytes += mapped.bytes().size();
    }

    /// The readers keep the product below 2^63.
    static uint64_t elements(const TensorView& t) {
        uint64_t n = 1;
        for (uint8_t i = 0; i < t.n_dims; ++i) n *= t.dims[i];
        return n;
    }

    /// Each row of the architecture's table is planned alone, so that one refusal hides no other.
    void plan_each_kind() {
        constexpr std::string_view kEveryName[] = {""};
        Architecture alone = *found.arch;
        alone.ignored = kEveryName;
        for (const TensorRow& row : found.arch->tensors) {
            alone.tensors = {&row, 1};
            attempt(Stops::load, [&] { use(plan_tensors(file, alone, *found.config)); });
        }
    }

    void use(const std::vector<PlannedTensor>& plan) {
        for (const PlannedTensor& p : plan) {
            found.parameters += p.shape.rows * p.shape.cols;
            if (p.row->role == Role::head) found.config->tied_embeddings = false;
            for (const TensorView* t : {p.tensor, p.awq_scale, p.levels})
                if (t) found.is_used[size_t(t - file.tensors.data())] = true;
        }
    }

    /// All rows together: what is left over is met only here.
    void find_strangers() {
        attempt(Stops::load, [&] { plan_tensors(file, *found.arch, *found.config); });
    }

    void size_state() {
        const uint32_t most = found.config->max_positions;
        found.context = context_size(options.max_seq, most);
        if (found.context > most)
            throw Error(fmt::format("memory.max_seq = {}: {} takes 1 to {} tokens", found.context,
                                    file.path, most));
        found.state_bytes = lay_out_state(state_spec(*found.config), *options.kv, found.context,
                                          std::min(found.context, Session::kMaxTokens))
                                .bytes;
    }

    void inspect_model() {
        attempt(Stops::load, [&] { found.arch = &architecture_of(file); });
        if (!found.arch) return;
        attempt(Stops::load, [&] { found.config = found.arch->read_config(file); });
        if (!found.config) return;
        found.config->tied_embeddings = true;
        found.is_used.assign(file.tensors.size(), false);
        plan_each_kind();
        find_strangers();
        attempt(Stops::load, [&] { size_state(); });
    }

    void inspect_text() {
        std::unique_ptr<Tokenizer> tokenizer;
        bool is_read = false;
        attempt(Stops::load, [&] {
            tokenizer = open_tokenizer(file);
            is_read = true;
        });
        attempt(Stops::load,
                [&] { found.stop_ids = read_model_defaults(file, tokenizer.get()).stop_ids; });
        if (is_read && !tokenizer)
            found.refusals.push_back(
                {Stops::text, file.path + " has no tokenizer, so it cannot read text; give the "
                                          "prompt as --prompt-ids 1,2,3"});
        if (!tokenizer) return;
        found.tokenizer = tokenizer_facts(file, *tokenizer);
        attempt(Stops::chat, [&] {
            const std::string_view arch = found.arch ? found.arch->name : "";
            const ChatTemplate* chat = choose_template(file.path, file.chat_template, arch);
            if (!chat) return;
            found.chat_template = chat->name;
            const ChatMessage question{"user", "?", {}};
            tokenizer->encode(render_chat(*chat, {&question, 1}));  // has it the tokens for it?
        });
    }
};

}  // namespace

std::string_view name_of(Stops stops) {
    constexpr std::string_view kNames[] = {"load", "text", "chat"};
    return kNames[size_t(stops)];
}

bool Inspection::allows(Stops stops) const {
    return std::ranges::none_of(refusals, [&](const Obstacle& r) { return r.stops <= stops; });
}

Inspection inspect(const ModelFile& file, const InspectOptions& options) {
    Inspector inspector{file, options, {}};
    inspector.found.file = &file;
    inspector.found.is_used.assign(file.tensors.size(), true);
    inspector.count_formats();
    inspector.inspect_model();
    inspector.inspect_text();
    return std::move(inspector.found);
}

std::vector<cpu::Level> dot_levels(const Codec& codec, cpu::Activations activations) {
    std::vector<cpu::Level> levels;
    for (size_t level = 0; level < cpu::kLevels; ++level)
        if (codec.cpu.dot[level][size_t(activations)]) levels.push_back(cpu::Level(level));
    return levels;
}

}  // namespace hf
