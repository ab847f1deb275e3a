#include "libcore/config/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/config/nearest.h"

namespace hf {
namespace {

/// The whole text as a number in [least, most]; "nan" is in no interval.
template <class T>
std::optional<T> parse_number(std::string_view text, T least, T most) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, value);
    if (failure != std::errc() || stop != end || !(value >= least && value <= most)) return {};
    return value;
}

/// A number between two bounds. A std::optional field has a word for being unset.
template <class G, class F, class T>
Value number(G Config::*group, F G::*field, T least, T most, std::string_view unset = {}) {
    Value value{std::is_integral_v<T> ? Kind::integer : Kind::number,
                {},
                fmt::format("{}", least),
                fmt::format("{}", most),
                {}};
    if (!unset.empty()) value.words = {unset};
    value.set = [=](Config& config, std::string_view text) {
        F& target = config.*group.*field;
        if (!unset.empty() && text == unset) {
            target = F{};
            return true;
        }
        const std::optional<T> parsed = parse_number(text, least, most);
        if (parsed) target = *parsed;
        return parsed.has_value();
    };
    return value;
}

/// Any text without a NUL byte. The word `unset` leaves the field empty.
template <class G>
Value text(Kind kind, G Config::*group, std::string G::*field, std::string_view unset) {
    return {kind, {unset}, {}, {}, [=](Config& config, std::string_view text) {
                if (text.find('\0') != text.npos) return false;
                config.*group.*field = text == unset ? "" : text;
                return true;
            }};
}

/// 1 and 0 are other spellings of true and false, wherever these are words.
std::string_view as_word(std::string_view text) {
    return text == "1" ? "true" : text == "0" ? "false" : text;
}

/// One of some words, each with what it means.
template <class G, class F>
Value word(G Config::*group, F G::*field,
           std::initializer_list<std::pair<std::string_view, F>> choices) {
    Value value{Kind::word, {}, {}, {}, {}};
    for (const auto& choice : choices) value.words.push_back(choice.first);
    value.set = [=, choices = std::vector(choices)](Config& config, std::string_view text) {
        for (const auto& [name, meaning] : choices) {
            if (as_word(text) != name) continue;
            config.*group.*field = meaning;
            return true;
        }
        return false;
    };
    return value;
}

/// One of some words, kept as it is.
template <class G>
Value word(G Config::*group, std::string G::*field, std::vector<std::string_view> words) {
    return {Kind::word, words, {}, {}, [=](Config& config, std::string_view text) {
                if (std::ranges::find(words, text) == words.end()) return false;
                config.*group.*field = text;
                return true;
            }};
}

/// Layers that stay on the device.
Value layer_budget() {
    constexpr int32_t kMost = 1000000;
    Value value = number(&Config::memory, &MemoryConfig::gpu_layer_budget, 0, kMost, "unset");
    value.words = {"unset", "auto", "-1"};
    value.set = [set = value.set](Config& config, std::string_view text) {
        if (text != "auto" && text != "-1") return set(config, text);
        config.memory.gpu_layer_budget = kAutoLayers;
        return true;
    };
    return value;
}

constexpr auto run = &Config::run;
constexpr auto sampling = &Config::sampling;
constexpr auto memory = &Config::memory;
constexpr auto device = &Config::device;
constexpr auto cpu = &Config::cpu;
constexpr auto replay = &Config::replay;
constexpr auto graph = &Config::graph;
constexpr auto fusions = &Config::fusions;
constexpr auto speculation = &Config::speculation;
constexpr auto developer = &Config::developer;

constexpr uint32_t kMaxTokens = 1u << 24;
constexpr uint32_t kMaxMib = 1u << 24;  // 16 TiB

constexpr KeyAlias kAliases[] = {
    {"memory.offload_passback_share", "HIPFIRE_OFFLOAD_PASSBACK_SHARE", "memory.split_share"},
};

}  // namespace

// clang-format off
std::span<const Key> config_keys() {
    static const Key keys[] = {
    {"run.model", "HIPFIRE_RUN_MODEL", "-m,--model", "bundled",
     text(Kind::path, run, &RunConfig::model, "bundled"),
     "Model to run; bundled: the small one that comes with hipfire"},
    {"run.max_tokens", "HIPFIRE_RUN_MAX_TOKENS", "--max-tokens", "512",
     number(run, &RunConfig::max_tokens, 1u, kMaxTokens),
     "Tokens to generate at most"},
    {"run.system", "HIPFIRE_RUN_SYSTEM", "--system", "none",
     text(Kind::text, run, &RunConfig::system, "none"),
     "System message of the conversation"},
    {"run.thinking", "HIPFIRE_RUN_THINKING", "--thinking", "auto",
     word(run, &RunConfig::thinking, {{"auto", {}}, {"true", true}, {"false", false}}),
     "Whether the model thinks before it answers; auto: as its chat template does"},
    {"run.show_thinking", "HIPFIRE_RUN_SHOW_THINKING", "--show-thinking", "true",
     word(run, &RunConfig::show_thinking, {{"true", true}, {"false", false}}),
     "Whether a chat shows what the model thinks"},
    {"run.seed", "HIPFIRE_RUN_SEED", "--seed", "random",
     number(run, &RunConfig::seed, uint64_t{0}, kMaxSeed, "random"),
     "Seed of the sampler; a random one is printed"},

    {"sampling.temperature", "HIPFIRE_SAMPLING_TEMPERATURE", "--temp", "model",
     number(sampling, &SamplingConfig::temperature, 0.0f, 100.0f, "model"),
     "Divides the logits; 0: always the likeliest token; model: as the model recommends"},
    {"sampling.top_k", "HIPFIRE_SAMPLING_TOP_K", "--top-k", "model",
     number(sampling, &SamplingConfig::top_k, 0u, kMaxTokens, "model"),
     "Keep the k likeliest tokens; 0: all"},
    {"sampling.top_p", "HIPFIRE_SAMPLING_TOP_P", "--top-p", "model",
     number(sampling, &SamplingConfig::top_p, 0.0f, 1.0f, "model"),
     "Keep the likeliest tokens that together have this probability"},
    {"sampling.min_p", "HIPFIRE_SAMPLING_MIN_P", "--min-p", "model",
     number(sampling, &SamplingConfig::min_p, 0.0f, 1.0f, "model"),
     "Keep tokens at least this likely, relative to the likeliest"},
    {"sampling.repetition_penalty", "HIPFIRE_SAMPLING_REPETITION_PENALTY",
     "--repetition-penalty", "model",
     number(sampling, &SamplingConfig::repetition_penalty, 0.1f, 10.0f, "model"),
     "Divides positive and multiplies negative logits of tokens seen before; 1: off"},
    {"sampling.presence_penalty", "HIPFIRE_SAMPLING_PRESENCE_PENALTY",
     "--presence-penalty", "model",
     number(sampling, &SamplingConfig::presence_penalty, -2.0f, 2.0f, "model"),
     "Subtracted once from the logit of a token generated before"},
    {"sampling.frequency_penalty", "HIPFIRE_SAMPLING_FREQUENCY_PENALTY",
     "--frequency-penalty", "model",
     number(sampling, &SamplingConfig::frequency_penalty, -2.0f, 2.0f, "model"),
     "Subtracted for each time a token was generated before"},

    {"memory.kv_cache", "HIPFIRE_KV_CACHE", "--kv", "f16",
     word(memory, &MemoryConfig::kv_cache, {"f16", "f32", "q8"}),
     "Format of the attention cache"},
    {"memory.max_seq", "HIPFIRE_MAX_SEQ", "--ctx", "auto",
     number(memory, &MemoryConfig::max_seq, 1u, kMaxTokens, "auto"),
     "Tokens a conversation may have; auto: the smaller of the model's maximum and 8192"},
    {"memory.gpu_layer_budget", "HIPFIRE_GPU_LAYER_BUDGET", "--gpu-layers,--budget", "unset",
     layer_budget(),
     "Layers that stay on the device, from the end; unset, auto or -1: as many as fit"},
    {"memory.offload_exec", "HIPFIRE_OFFLOAD_EXEC", "--exec", "pcie",
     word(memory, &MemoryConfig::offload_exec, {{"pcie", std::string("pcie")},
          {"cpu", "cpu"}, {"split", "split"}, {"passback", "split"}}),
     "Who multiplies the other layers: the device over the link (pcie), the processor (cpu), both (split, also called passback)"},
    {"memory.spill", "HIPFIRE_SPILL", "--spill", "layers",
     word(memory, &MemoryConfig::spill, {"layers", "ffn"}),
     "What leaves the device of those layers: all matrices, or only the feed-forward ones"},
    {"memory.split_share", "HIPFIRE_SPLIT_SHARE", "--split-share", "auto",
     number(memory, &MemoryConfig::split_share, 0.0f, 1.0f, "auto"),
     "Rows of a split matrix that are the device's; 0: as cpu, 1: as pcie, auto: 0.375"},
    {"memory.pin", "HIPFIRE_PIN", "", "true",
     word(memory, &MemoryConfig::pin, {{"true", true}, {"false", false}}),
     "Pins what leaves the device; false, with offload_exec = cpu: read from the file by the processor alone"},
    {"memory.lock", "HIPFIRE_LOCK", "--lock", "false",
     word(memory, &MemoryConfig::lock, {{"false", false}, {"true", true}}),
     "Locks what is read from the mapped file in memory, so that it is never paged out"},
    {"memory.oom_guard", "HIPFIRE_OOM_GUARD", "", "auto",
     word(memory, &MemoryConfig::oom_guard, {"auto", "on", "off"}),
     "Refuse what host memory cannot hold even unpinned; auto: on without a card of its own memory, unless there is swap"},
    {"memory.host_headroom_mb", "HIPFIRE_HOST_HEADROOM_MB", "", "4096",
     number(memory, &MemoryConfig::host_headroom_mb, 0u, kMaxMib),
     "MiB of host memory that pinned weights must leave free"},
    {"memory.require_coverage", "HIPFIRE_REQUIRE_COVERAGE", "", "false",
     word(memory, &MemoryConfig::require_coverage, {{"false", false}, {"true", true}}),
     "Refuse formats that the processor cannot multiply, in place of leaving them to the device"},

    {"device.kind", "HIPFIRE_DEVICE_KIND", "--device", "auto",
     word(device, &DeviceConfig::kind, {"auto", "hip", "host"}),
     "Where the model runs; auto: a graphics card if there is one, else the processor"},
    {"device.vram_mb", "HIPFIRE_DEVICE_VRAM_MB", "--vram-mb", "none",
     number(device, &DeviceConfig::vram_mb, 1u, kMaxMib, "none"),
     "The processor plays a card with so many MiB; none: it is what it is"},

    {"cpu.threads", "HIPFIRE_CPU_THREADS", "--threads", "0",
     number(cpu, &CpuConfig::threads, 0u, 1024u),
     "Threads that compute; 0: one per physical core this process may use"},
    {"cpu.isa", "HIPFIRE_CPU_ISA", "--isa", "auto",
     word(cpu, &CpuConfig::isa, {"auto", "scalar", "avx2", "avxvnni", "avx512vnni", "amx"}),
     "Instruction level; auto: the best this processor has"},
    {"cpu.activations", "HIPFIRE_CPU_ACTIVATIONS", "--activations", "auto",
     word(cpu, &CpuConfig::activations, {"auto", "i16", "int8", "f32"}),
     "What the processor multiplies weights with; auto: i16 where the format allows"},

    {"replay.backend", "HIPFIRE_REPLAY_BACKEND", "", "hip",
     word(replay, &ReplayConfig::backend, {"hip", "redline"}),
     "What repeats recorded launches; redline is not built in"},
    {"experimental.graph.forward", "HIPFIRE_GRAPH", "", "auto",
     word(graph, &GraphConfig::forward, {{"auto", {}}, {"true", true}, {"false", false}}),
     "Whether a token's launches are captured; auto: where no step of the processor is among them"},
    {"fusions.force_unfused", "HIPFIRE_FUSIONS_FORCE_UNFUSED", "", "false",
     word(fusions, &FusionsConfig::force_unfused, {{"false", false}, {"true", true}}),
     "Runs every step by itself; no steps are fused yet"},
    {"speculation.mode", "HIPFIRE_SPECULATION", "", "off",
     word(speculation, &SpeculationConfig::mode,
          {"off", "auto", "ngram", "dflash", "mtp", "dspark"}),
     "Drafts that the model checks; only off and auto are built in, and auto is off"},
    {"developer.cpu_exec_trace", "HIPFIRE_CPU_EXEC_TRACE", "", "false",
     word(developer, &DeveloperConfig::cpu_exec_trace, {{"false", false}, {"true", true}}),
     "A line per shape of matrix that the processor multiplies, with times"},
    };
    return keys;   // built at first use: other files' constants may ask before this one's exist
}
// clang-format on

std::span<const KeyAlias> key_aliases() {
    return kAliases;
}

bool is_switch(const Key& key) {
    const std::vector<std::string_view>& words = key.value.words;
    return key.value.kind == Kind::word && words.size() == 2 && words[0] == "false" &&
           words[1] == "true";
}

const Key* find_key(std::string_view path) {
    const std::span<const Key> keys = config_keys();
    for (const KeyAlias& alias : kAliases)
        if (path == alias.path) path = alias.of;
    const auto found = std::ranges::find(keys, path, &Key::path);
    return found == keys.end() ? nullptr : &*found;
}

std::string accepted(const Value& value) {
    std::string words;
    if (value.words.size() > 1)
        words = fmt::format("{} or ", fmt::join(value.words.begin(), value.words.end() - 1, ", "));
    if (!value.words.empty()) words += value.words.back();
    if (value.kind == Kind::word) return words;
    std::string range = value.kind == Kind::path ? "a path or a name" : "text";
    if (!value.least.empty())
        range =
            fmt::format("{} from {} to {}", value.kind == Kind::integer ? "an integer" : "a number",
                        value.least, value.most);
    return words.empty() ? range : fmt::format("{}, or {}", range, words);
}

void refuse_value(const Key& key, std::string_view found, std::string_view source) {
    throw Error(fmt::format("{}: {} is not a value of {}, which takes {}", source, found, key.path,
                            accepted(key.value)),
                Fault::usage);
}

Setting checked_setting(const Key& key, std::string_view text, std::string source) {
    Config scratch;
    if (!key.value.set(scratch, text))
        refuse_value(key, fmt::format("'{}'", one_line(text)), source);
    return {&key, std::string(text), std::move(source)};
}

namespace {

std::string_view group_of(const Key& key) {
    return key.path.substr(0, key.path.rfind('.'));
}
std::string_view name_of(const Key& key) {
    return key.path.substr(key.path.rfind('.') + 1);
}

/// A key by its name alone, or a group.
std::string_view nearest_name(std::string_view wrong) {
    std::vector<std::string_view> names, meant;
    for (const Key& key : config_keys()) {
        names.insert(names.end(), {name_of(key), group_of(key)});
        meant.insert(meant.end(), {key.path, group_of(key)});
    }
    const std::string_view found = nearest(wrong, names);
    return found.empty() ? found : meant[size_t(std::ranges::find(names, found) - names.begin())];
}

}  // namespace

std::string_view nearest_key(std::string_view wrong_path) {
    const size_t dot = wrong_path.rfind('.');
    if (dot == wrong_path.npos) return nearest_name(wrong_path);
    const std::string_view group = wrong_path.substr(0, dot), name = wrong_path.substr(dot + 1);
    std::vector<std::string_view> paths, in_group;
    for (const Key& key : config_keys()) {
        paths.push_back(key.path);
        if (group_of(key) == group) in_group.push_back(key.path);
    }
    if (in_group.empty()) return nearest(wrong_path, paths);
    const std::string_view found = nearest(wrong_path, in_group, wrong_path.substr(0, dot + 1));
    return found.empty() ? nearest_name(name) : found;
}

std::string one_line(std::string_view text, size_t longest) {
    std::string line;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool inside_character = (byte & 0xC0) == 0x80 && i < longest + 3;  // UTF-8
        if (i >= longest && !inside_character) return line + "...";
        if (byte < 0x20 || byte == 0x7F)
            line += fmt::format("\\x{:02x}", byte);
        else
            line += text[i];
    }
    return line;
}

}  // namespace hf
