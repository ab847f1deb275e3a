#include "libcore/run/coverage.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpuexec/isa.h"
#include "libcore/run/crosscheck_dots.h"

namespace hf {
namespace {

constexpr const char* kIntroduction = R"(# Coverage of the CPU engine

Written by `hf-inspect --coverage > docs/cpu-coverage.md`; a test compares it with the program.

One table for each way to prepare activations, one row for each format, one column for each
instruction level. **own**: a function of its own. A level's name: the function of that lower level
serves. –: none. *as*: the bytes, and so the functions, of that format; what differs is the rotation
or the name.

Every function that is called own here is checked on every CPU that can run it, by the tests and by
`hf-crosscheck --cpu` ([hf-crosscheck.md](hf-crosscheck.md)): against float64, against the scalar
function bit for bit, with one column and several, shared by threads. All formats decode.
)";

constexpr const char* kActivationsMeaning[cpu::kActivations] = {
    "float32 activations: the plain definition.",
    "16-bit integers with a scale per group: as exact as float32 for what follows.",
    "8-bit integers with a scale per group.",
};

/// How the functions of a format at one level are come by.
std::string cell(const cpu::CpuOps& ops, cpu::Level level, cpu::Activations activations) {
    const cpu::Dot dot = pick_dot(ops, level, activations);
    if (!dot) return "–";
    if (ops.dot[size_t(level)][size_t(activations)]) return "own";
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

std::string row_of(const Codec& codec, cpu::Activations activations) {
    const Codec& model = model_of(codec);
    std::string row = fmt::format("| `{}` |", codec.name);
    for (size_t l = 0; l < cpu::kLevels; ++l)
        row += fmt::format(" {} |", cell(codec.cpu, cpu::Level(l), activations));
    return row + (&model == &codec ? "  |\n" : fmt::format(" as `{}` |\n", model.name));
}

std::string table_of(cpu::Activations activations) {
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
            table += row_of(codec, activations);
    }
    if (!f32_only.empty()) table += fmt::format("\nFloat32 only: {}.\n", f32_only);
    return table;
}

}  // namespace

std::string coverage_page() {
    std::string page = kIntroduction;
    for (size_t a = 0; a < cpu::kActivations; ++a)
        page += fmt::format("\n## {}\n\n{}\n\n{}", name(cpu::Activations(a)),
                            kActivationsMeaning[a], table_of(cpu::Activations(a)));
    return page;
}

}  // namespace hf
