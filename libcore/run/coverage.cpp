#include "libcore/run/coverage.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "cpuexec/isa.h"
#include "libcore/base/error.h"
#include "libcore/run/crosscheck_dots.h"

namespace hf {
namespace {

constexpr const char* kIntroduction = R"(# Coverage of the CPU engine

Written by `hf-inspect --coverage`; a test compares it with the program.

One table for each way to prepare activations, one row for each format, one column for each
instruction level. **own**: a function of its own. A level's name: the function of that lower level
serves. –: none. *as*: the bytes, and so the functions, of that format; what differs is the rotation
or the name.

Every function that is called own here is checked on every CPU that can run it, by the tests and by
`hf-crosscheck --cpu` ([hf-crosscheck.md](hf-crosscheck.md)): against float64, against the scalar
function bit for bit, with one column and several, shared by threads. All formats decode.
)";

constexpr const char* kSpeedsMeaning =
    "\nA number behind **own** is GB/s of the format's bytes, one column, the median: {}. "
    "`sh scripts/measure-coverage.sh` measures anew and renews this page.\n";

std::string key_of(const Codec& codec, cpu::Activations activations, cpu::Level level) {
    return fmt::format("{} {}/{}", codec.name, name(activations), cpu::name(level));
}

constexpr const char* kActivationsMeaning[cpu::kActivations] = {
    "float32 activations: the plain definition.",
    "16-bit integers with a scale per group: as exact as float32 for what follows.",
    "8-bit integers with a scale per group.",
};

/// How the functions of a format at one level are come by, and how fast its own was.
std::string cell(const Codec& codec, cpu::Level level, cpu::Activations activations,
                 const Speeds& speeds) {
    const cpu::CpuOps& ops = codec.cpu;
    const cpu::Dot dot = pick_dot(ops, level, activations);
    if (!dot) return "–";
    if (ops.dot[size_t(level)][size_t(activations)]) {
        const auto speed = speeds.gb_per_s.find(key_of(codec, activations, level));
        return speed == speeds.gb_per_s.end() ? "own" : fmt::format("own {}", speed->second);
    }
    size_t serving = size_t(level);
    while (ops.dot[serving][size_t(activations)] != dot) --serving;
    return std::string(cpu::name(cpu::Level(serving)));
}

/// The first format of the table with the same functions.
const Codec& model_of(const Codec& codec) {
    return *std::ranges::find_if(codecs(), [&codec](const Codec& other) {
        return other.cpu.decode_row == codec.cpu.decode_row && other.cpu.dot == codec.cpu.dot;
    });
}

std::string row_of(const Codec& codec, cpu::Activations activations, const Speeds& speeds) {
    const Codec& model = model_of(codec);
    std::string row = fmt::format("| `{}` |", codec.name);
    for (size_t l = 0; l < cpu::kLevels; ++l)
        row += fmt::format(" {} |", cell(codec, cpu::Level(l), activations, speeds));
    return row + (&model == &codec ? "  |\n" : fmt::format(" as `{}` |\n", model.name));
}

std::string table_of(cpu::Activations activations, const Speeds& speeds) {
    std::string table = "| format |", rule = "|---|", f32_only;
    for (size_t l = 0; l < cpu::kLevels; ++l) {
        table += fmt::format(" {} |", cpu::name(cpu::Level(l)));
        rule += "---|";
    }
    table += "  |\n" + rule + "---|\n";
    for (const Codec& codec : codecs()) {
        if (activations != cpu::Activations::f32 && !codec.cpu.prepare.has_integers())
            f32_only += fmt::format("{}`{}`", f32_only.empty() ? "" : ", ", codec.name);
        else
            table += row_of(codec, activations, speeds);
    }
    if (!f32_only.empty()) table += fmt::format("\nFloat32 only: {}.\n", f32_only);
    return table;
}

}  // namespace

namespace {

struct SpeedLine {
    std::string format, function, number;

    /// A function that there is, and a positive number.
    bool is_valid() const {
        const Codec* codec = codec_by_name(format);
        if (!codec) return false;
        const auto own = own_dots(*codec);
        const bool is_own = std::ranges::any_of(own, [&](const OwnDot& d) {
            return key_of(*codec, d.activations, d.level) == format + " " + function;
        });
        double value = 0;
        const char* end = number.data() + number.size();
        const auto [stop, fault] = std::from_chars(number.data(), end, value);
        return is_own && fault == std::errc() && stop == end && value > 0 && value < 1e6;
    }
};

}  // namespace

Speeds parse_speeds(std::string_view text, std::string_view label) {
    Speeds speeds;
    std::istringstream lines{std::string(text)};
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.starts_with("# ")) {
            if (!speeds.origin.empty()) speeds.origin += ' ';
            speeds.origin += printable(std::string_view(line).substr(2));
            continue;
        }
        std::istringstream words(line);
        SpeedLine found;
        std::string more;
        words >> found.format >> found.function >> found.number;
        if (words >> more || !found.is_valid() ||
            !speeds.gb_per_s.try_emplace(found.format + " " + found.function, found.number).second)
            throw Error(
                fmt::format("{}:{}: is no line 'FORMAT KIND/LEVEL GB/S' of a function that "
                            "there is, or comes twice: '{}'",
                            label, number, line.substr(0, 80)));
    }
    return speeds;
}

std::string coverage_page(const Speeds& speeds) {
    std::string page = kIntroduction;
    if (!speeds.gb_per_s.empty()) page += fmt::format(kSpeedsMeaning, speeds.origin);
    for (size_t a = 0; a < cpu::kActivations; ++a)
        page += fmt::format("\n## {}\n\n{}\n\n{}", name(cpu::Activations(a)),
                            kActivationsMeaning[a], table_of(cpu::Activations(a), speeds));
    return page;
}

}  // namespace hf
