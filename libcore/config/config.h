// Config: everything a person can set, as plain fields. It is resolved once (resolve.h) and handed
// to the parts that need it; nothing below the tools reads flags, variables or files.
//
// Every field has one row in keys.cpp, which checked its value. A string "one of" names a row of
// somebody else's table (devices, instruction levels, ...), so that there is no second list here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hf {

struct RunConfig {
    std::string model;             // path of a file or folder; empty: the bundled model
    uint32_t max_tokens = 512;     // tokens to generate, at least 1
    std::string system;            // empty: no system message
    std::optional<bool> thinking;  // unset: what the chat template does by itself
    bool show_thinking = true;     // in a chat
    std::optional<uint64_t> seed;  // unset: drawn, and printed; at most kMaxSeed
    bool operator==(const RunConfig&) const = default;
};

/// TOML integers are signed, so this is the largest seed that every source can repeat.
inline constexpr uint64_t kMaxSeed = INT64_MAX;

/// Unset: the model's own value (generation_config.json), else the neutral one in the comment.
struct SamplingConfig {
    std::optional<float> temperature;         // 1; 0 is greedy
    std::optional<uint32_t> top_k;            // 0: all
    std::optional<float> top_p;               // 1
    std::optional<float> min_p;               // 0
    std::optional<float> repetition_penalty;  // 1
    std::optional<float> presence_penalty;    // 0
    std::optional<float> frequency_penalty;   // 0
    bool operator==(const SamplingConfig&) const = default;
};

/// memory.gpu_layer_budget: as many layers as fit.
inline constexpr int32_t kAutoLayers = -1;

struct MemoryConfig {
    std::string kv_cache = "f16";     // one of f16, f32, q8
    std::optional<uint32_t> max_seq;  // tokens; unset: the smaller of the model's maximum and 8192
    std::optional<int32_t> gpu_layer_budget;  // layers, or kAutoLayers; unset: all, or what fits
    std::string offload_exec = "pcie";        // one of pcie, cpu, split
    std::string spill = "layers";             // one of layers, ffn
    std::optional<float> split_share;         // 0 to 1; unset: auto
    bool pin = true;
    bool lock = false;
    std::string oom_guard = "auto";    // one of auto, on, off
    uint32_t host_headroom_mb = 4096;  // MiB
    bool require_coverage = false;
    bool operator==(const MemoryConfig&) const = default;
};

struct DeviceConfig {
    std::string kind = "auto";        // one of auto, hip, host
    std::optional<uint32_t> vram_mb;  // MiB of a pretended card; unset: what is there
    bool operator==(const DeviceConfig&) const = default;
};

struct CpuConfig {
    uint32_t threads = 0;              // 0: one per physical core that this process may use
    std::string isa = "auto";          // one of auto, scalar, avx2, avxvnni, avx512vnni, amx
    std::string activations = "auto";  // one of auto, i16, int8, f32
    bool operator==(const CpuConfig&) const = default;
};

struct ReplayConfig {
    std::string backend = "hip";  // one of hip, redline
    bool operator==(const ReplayConfig&) const = default;
};

struct GraphConfig {
    std::optional<bool> forward;  // unset: where it can
    bool operator==(const GraphConfig&) const = default;
};

struct FusionsConfig {
    bool force_unfused = false;
    bool operator==(const FusionsConfig&) const = default;
};

struct SpeculationConfig {
    std::string mode = "off";  // one of off, auto, ngram, dflash, mtp, dspark
    bool operator==(const SpeculationConfig&) const = default;
};

struct DeveloperConfig {
    bool cpu_exec_trace = false;
    bool operator==(const DeveloperConfig&) const = default;
};

struct Config {
    RunConfig run;
    SamplingConfig sampling;
    MemoryConfig memory;
    DeviceConfig device;
    CpuConfig cpu;
    ReplayConfig replay;
    GraphConfig graph;
    FusionsConfig fusions;
    SpeculationConfig speculation;
    DeveloperConfig developer;
    bool operator==(const Config&) const = default;
};

}  // namespace hf
