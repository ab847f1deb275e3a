#include "tools/quantize_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/device_facts.h"

namespace hf {
namespace {

using Json = nlohmann::ordered_json;

double bits_per_weight(const FormatShare& share) {
    return 8.0 * double(share.bytes) / double(share.weights);
}

/// "812 KB", "1.27 GB"; powers of ten.
std::string bytes_text(uint64_t bytes) {
    if (bytes >= 1'000'000'000) return fmt::format("{:.2f} GB", double(bytes) * 1e-9);
    if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", double(bytes) * 1e-6);
    return fmt::format("{:.0f} KB", double(bytes) * 1e-3);
}

/// Made-up weights have no bytes to speak of, so their speed is that of weights.
std::string speed_text(const QuantizeReport& r) {
    if (r.source_bytes == 0)
        return fmt::format("{:.0f} million weights/s", double(r.weights) / r.seconds * 1e-6);
    return fmt::format("{:.0f} MB/s of {} read", r.source_mb_per_s(), bytes_text(r.source_bytes));
}

}  // namespace

std::string quantize_text(const QuantizeFacts& f, const QuantizeReport& r) {
    std::string text = fmt::format(
        "{}: {} from {}; {:.2f} bits per weight; {:.1f} s, {}; {}, {} thread{}{}\n", f.output,
        bytes_text(r.file_bytes), f.source, r.bits_per_weight(), r.seconds, speed_text(r),
        f.processor, f.threads, f.threads == 1 ? "" : "s",
        f.calibration_tokens ? fmt::format("; scales from {} tokens", f.calibration_tokens) : "");
    for (const FormatShare& s : r.formats)
        text += fmt::format("  {:14} {:5} tensors {:>10} {:7.3f} bits per weight\n", s.codec->name,
                            s.tensors, bytes_text(s.bytes), bits_per_weight(s));
    return text;
}

std::string quantize_json(const QuantizeFacts& f, const QuantizeReport& r) {
    Json formats = Json::array();
    for (const FormatShare& s : r.formats)
        formats.push_back({{"format", s.codec->name},
                           {"tensors", s.tensors},
                           {"weights", s.weights},
                           {"bytes", s.bytes},
                           {"bits_per_weight", bits_per_weight(s)}});
    return json_line({{"version", HF_VERSION},
                      {"source", f.source},
                      {"output", f.output},
                      {"format", f.format},
                      {"file_bytes", r.file_bytes},
                      {"payload_bytes", r.payload_bytes},
                      {"source_bytes", r.source_bytes},
                      {"tensors", r.tensors},
                      {"weights", r.weights},
                      {"bits_per_weight", r.bits_per_weight()},
                      {"seconds", r.seconds},
                      {"source_mb_per_s", r.source_mb_per_s()},
                      {"calibration_tokens", f.calibration_tokens},
                      {"processor", f.processor},
                      {"threads", f.threads},
                      {"formats", formats}});
}

}  // namespace hf
