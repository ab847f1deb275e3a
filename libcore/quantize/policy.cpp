#include "libcore/quantize/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/quantize/encoder.h"

namespace hf {
namespace {

constexpr ShortName kShortNames[] = {
    {"q8", "q8_0"},       {"mq6", "mq6g256"},      {"mq5", "mq5g256v2"},    {"mq4", "mq4g256v2"},
    {"mq4v1", "mq4g256"}, {"mq3", "mq3g256lloyd"}, {"mq2", "mq2g256lloyd"}, {"hfq6", "hfq6g256"},
    {"hfq4", "hfq4g256"}, {"hfq3", "hfq3g256"},    {"hfq2", "hfq2g256"},
};

constexpr uint64_t kFewRows = 64;
constexpr std::string_view kRagged[] = {"hfq4g128", "q8_0", "f16"};

const Codec& named(std::string_view name) {
    return *codec_by_name(name);
}

/// Bits per weight in rows of a usual length.
double bits(const Codec& codec) {
    constexpr uint64_t kCols = 4096;
    return 8.0 * double(tensor_bytes(codec, {1, kCols})) / kCols;
}

bool is_plain(const Codec& codec) {
    return codec.group == 1;
}

bool divides(const Codec& codec, uint64_t cols) {
    return cols % cols_unit(codec) == 0;
}

const Codec& at_least_q8(const Codec& format) {
    return bits(format) >= bits(named("q8_0")) ? format : named("q8_0");
}

/// f16 divides everything, and formats of more bits do too.
const Codec& for_cols(const Codec& format, uint64_t cols) {
    if (divides(format, cols)) return format;
    for (const std::string_view name : kRagged)
        if (bits(named(name)) >= bits(format) && divides(named(name), cols)) return named(name);
    return named("f16");
}

/// * stands for any characters, also none.
bool matches(std::string_view pattern, std::string_view name) {
    constexpr size_t kNone = std::string_view::npos;
    size_t p = 0, n = 0;                // what is left of both
    size_t star = kNone, taken_to = 0;  // the last star, and how far its part of the name goes
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            taken_to = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p, ++n;
        } else if (star != kNone) {  // the star takes one character more
            p = star + 1;
            n = ++taken_to;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == kNone;
}

const Codec& kept(const Keep& keep, const SourceTensor& t, const std::string& label) {
    if (t.use == Use::vector && !is_plain(*keep.codec))
        throw Error(fmt::format("--keep {}: tensor '{}' of {} is no matrix; it can be f32, f16 or "
                                "bf16, not {}",
                                keep.pattern, t.name, label, keep.codec->name),
                    Fault::usage);
    if (!divides(*keep.codec, t.shape.cols) && t.use == Use::matrix)
        throw Error(fmt::format("--keep {}: tensor '{}' of {} has rows of {} values, but format {} "
                                "needs a multiple of {}",
                                keep.pattern, t.name, label, t.shape.cols, keep.codec->name,
                                cols_unit(*keep.codec)),
                    Fault::usage);
    return *keep.codec;
}

}  // namespace

std::span<const ShortName> short_names() {
    return kShortNames;
}

const Codec& format_by_name(std::string_view name) {
    for (const ShortName& row : kShortNames)
        if (row.name == name) return named(row.format);
    std::vector<std::string_view> known;
    for (const ShortName& row : kShortNames) known.push_back(row.name);
    for (const Encoder& encoder : encoders()) {
        if (encoder.codec->name == name) return *encoder.codec;
        known.push_back(encoder.codec->name);
    }
    throw Error(fmt::format("'{}' is not a format that can be written; there are {}", name,
                            fmt::join(known, ", ")),
                Fault::usage);
}

Keep parse_keep(std::string_view text) {
    const size_t equals = text.rfind('=');
    if (equals == text.npos || equals == 0)
        throw Error(
            fmt::format("--keep {}: is not PATTERN=FORMAT, as in '*.down_proj.weight=mq6'", text),
            Fault::usage);
    return {std::string(text.substr(0, equals)), &format_by_name(text.substr(equals + 1))};
}

const Codec& choose_format(const Policy& policy, const SourceTensor& t, const std::string& label) {
    for (auto keep = policy.keep.rbegin(); keep != policy.keep.rend(); ++keep)
        if (matches(keep->pattern, t.name)) return kept(*keep, t, label);
    if (is_plain(*policy.format)) return *policy.format;
    if (t.use == Use::vector) return named("f16");
    const bool is_table = t.role == Role::embedding || t.role == Role::head;
    const bool is_fine = is_table || t.shape.rows < kFewRows;
    return for_cols(is_fine ? at_least_q8(*policy.format) : *policy.format, t.shape.cols);
}

void check_patterns(const Policy& policy, const SourceModel& model) {
    for (const Keep& keep : policy.keep)
        if (std::ranges::none_of(model.tensors, [&](const SourceTensor& t) {
                return matches(keep.pattern, t.name);
            }))
            throw Error(
                fmt::format("--keep {}: no tensor of {} has such a name; names are like '{}'",
                            keep.pattern, model.label, model.tensors.front().name),
                Fault::usage);
}

}  // namespace hf
