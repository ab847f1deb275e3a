#include "tools/device_facts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cpuexec/isa.h"
#include "cpuexec/topology.h"
#include "libcore/base/error.h"

namespace hf {
namespace {

/// The default is i16: as exact as float32, as fast as int8.
cpu::Activations parse_activations(std::string_view word) {
    for (const auto a : {cpu::Activations::f32, cpu::Activations::int8})
        if (word == cpu::name(a)) return a;
    return cpu::Activations::i16;
}

}  // namespace

unsigned thread_count(const CpuConfig& config) {
    return config.threads > 0 ? config.threads : cpu::default_threads();
}

DeviceOptions device_options(const Config& config) {
    DeviceOptions options;
    options.threads = config.cpu.threads;
    options.level =
        config.cpu.isa == "auto" ? cpu::detect_level() : cpu::parse_level(config.cpu.isa).value();
    if (!cpu::cpu_has(options.level))
        throw Error(fmt::format("cpu.isa = {}: this CPU has {} at most", config.cpu.isa,
                                cpu::name(cpu::detect_level())),
                    Fault::usage);
    options.activations = parse_activations(config.cpu.activations);
    if (config.device.vram_mb) options.vram_bytes = uint64_t(*config.device.vram_mb) << 20;
    return options;
}

std::string device_text(const DeviceInfo& d, const std::vector<ProductKind>& products) {
    return fmt::format("{}{}, {} thread{}{}{}", d.name, d.simulated ? " (simulated)" : "",
                       d.threads, d.threads == 1 ? "" : "s", products.empty() ? "" : ", ",
                       product_text(products));
}

nlohmann::ordered_json device_json(const DeviceInfo& d, const std::vector<ProductKind>& products) {
    nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
    for (const ProductKind& p : products)
        kinds.push_back({{"activations", cpu::name(p.activations)},
                         {"isa", cpu::name(p.level)},
                         {"bytes", p.bytes}});
    return {{"kind", d.kind},
            {"name", d.name},
            {"simulated", d.simulated},
            {"threads", d.threads},
            {"isa", cpu::name(d.level)},
            {"activations", cpu::name(d.activations)},
            {"products", std::move(kinds)}};
}

std::string json_line(const nlohmann::ordered_json& object) {
    return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hf
