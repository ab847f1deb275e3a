#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpuexec/isa.h"
#include "tools/inspect_output.h"
#include "tools/inspect_plan.h"
#include "tools/page.h"

namespace hf {
namespace {

void show_attention(Page& page, const ModelConfig& c) {
    const uint32_t full = c.count(LayerKind::full_attention);
    const uint32_t linear = c.count(LayerKind::linear_attention);
    if (full > 0)
        page.fact("attention", fmt::format("{}: {} of {}, {} for keys and values; {} dims turn, "
                                           "theta {:g}",
                                           plural(full, "layer"), plural(c.n_heads, "head"),
                                           c.head_dim, c.n_kv_heads, c.rotary_dim, c.rope_theta));
    if (linear > 0)
        page.fact("delta net",
                  fmt::format("{}: {} of {}, {} of {}; convolution over {}",
                              plural(linear, "layer"), plural(c.key_heads, "key head"), c.key_dim,
                              plural(c.value_heads, "value head"), c.value_dim, c.conv_kernel));
}

void show_model(Page& page, const InspectView& view) {
    const Inspection& i = view.inspection;
    const ModelFile& file = *i.file;
    page.fact("container",
              fmt::format(
                  "{}{}, {}, {}", file.container,
                  file.naming == Naming::gguf && file.container != "gguf" ? " made from gguf" : "",
                  plural(file.files.size(), "file"), size_text(i.file_bytes)));
    if (i.arch) page.fact("architecture", std::string(i.arch->name));
    if (!i.config) return;
    const ModelConfig& c = *i.config;
    page.fact("sizes",
              fmt::format("{}, dim {}, ffn {}, vocabulary {}, {} head", plural(c.n_layers, "layer"),
                          c.dim, c.ffn_dim, c.vocab, c.tied_embeddings ? "tied" : "separate"));
    show_attention(page, c);
    page.fact("parameters", thousands(i.parameters));
    page.fact("context", fmt::format("{} tokens; state for {}: {} ({})", c.max_positions, i.context,
                                     size_text(i.state_bytes), view.kv_cache));
}

void show_text_side(Page& page, const Inspection& i) {
    if (i.tokenizer)
        page.fact("tokenizer", fmt::format("{}: {} entries, {} special", i.tokenizer->kind,
                                           i.tokenizer->entries, i.tokenizer->special));
    if (i.tokenizer)
        page.fact("chat", std::string(i.chat_template.empty() ? "none" : i.chat_template));
    if (!i.stop_ids.empty()) page.fact("stops at", fmt::format("{}", fmt::join(i.stop_ids, ", ")));
}

/// "f32: scalar avx2"
std::string dots_text(const Codec* codec) {
    constexpr std::string_view kNames[] = {"f32", "i16", "int8"};  // by cpu::Activations
    if (!codec) return "no decoder: refused";
    std::string text;
    for (size_t a = 0; a < cpu::kActivations; ++a) {
        const auto levels = dot_levels(*codec, cpu::Activations(a));
        if (levels.empty()) continue;
        text += fmt::format("{}{}:", text.empty() ? "" : "; ", kNames[a]);
        for (const cpu::Level level : levels) text += fmt::format(" {}", cpu::name(level));
    }
    return text.empty() ? "none: decoded first" : text;
}

void show_formats(Page& page, const Inspection& i) {
    constexpr std::string_view kRow = "  {:16} {:>7} {:>15} {:>17} {:>11}  {}";
    page.line("");
    page.line(fmt::format(kRow, "format", "tensors", "weights", "bytes", "bits/weight", "dots"),
              kDim);
    FormatFacts all;
    for (const FormatFacts& f : i.formats) {
        page.line(fmt::format(kRow, f.name, f.tensors, thousands(f.weights), thousands(f.bytes),
                              fmt::format("{:.2f}", f.bits_per_weight()), dots_text(f.codec)),
                  f.codec ? std::string_view() : kRed);
        all.tensors += f.tensors;
        all.weights += f.weights;
        all.bytes += f.bytes;
    }
    page.line(fmt::format(kRow, "all", all.tensors, thousands(all.weights), thousands(all.bytes),
                          fmt::format("{:.2f}", all.bits_per_weight()), ""));
    const auto& used = i.is_used;
    const auto unused = uint64_t(std::ranges::count(used, false));
    if (unused > 0) {
        uint64_t bytes = 0;
        for (size_t t = 0; t < used.size(); ++t)
            if (!used[t]) bytes += i.file->tensors[t].bytes.size();
        page.line(
            fmt::format("  of these not used: {}, {}", plural(unused, "tensor"), size_text(bytes)));
    }
}

void show_tensors(Page& page, const InspectView& view) {
    const Inspection& i = view.inspection;
    page.line("");
    size_t widest = 0;
    for (const TensorView& t : i.file->tensors) widest = std::max(widest, t.name.size());
    widest = std::min<size_t>(widest, 60);
    const auto weights = weights_by_tensor(view);
    for (size_t at = 0; at < i.file->tensors.size(); ++at) {
        const TensorView& t = i.file->tensors[at];
        page.line(fmt::format(
            "  {:{}}  {:14} {:>14}  {:18}{}", t.name, widest,
            t.codec ? std::string(t.codec->name) : t.dtype, thousands(t.bytes.size()),
            fmt::format("({})", fmt::join(t.dims.data(), t.dims.data() + t.n_dims, ", ")),
            !i.is_used[at] ? "  not used"
            : weights[at]  ? "  " + place_text(*weights[at])
                           : ""));
    }
}

void show_scan(Page& page, const WeightScan& scan) {
    page.line("");
    page.line(
        fmt::format(
            "  scanned {}, {}{}: {}", plural(scan.tensors, "tensor"), plural(scan.groups, "group"),
            scan.skipped ? fmt::format(" ({} without a decoder)", plural(scan.skipped, "tensor"))
                         : "",
            scan.damaged.empty() ? "all weights are finite"
                                 : plural(scan.damaged.size(), "damaged tensor")),
        scan.damaged.empty() ? kGreen : kRed);
    for (const DamagedTensor& d : scan.damaged)
        page.line(
            fmt::format("  {}: {} of {} hold an infinity or a NaN, from row {} on", d.tensor->name,
                        thousands(d.damaged), plural(d.groups, "group"), d.first_row),
            kRed);
}

/// What is left when these are refused, by Stops.
constexpr std::string_view kVerdicts[] = {"does not load", "takes ids, no text",
                                          "takes plain text and ids, no chat"};

void show_refusals(Page& page, const Inspection& i) {
    page.line("");
    if (i.refusals.empty()) return page.line("  runs", kGreen);
    const auto worst = std::ranges::min_element(i.refusals, {}, &Obstacle::stops);
    page.line(fmt::format("  {}", kVerdicts[size_t(worst->stops)]), kRed);
    for (const Obstacle& r : i.refusals)
        page.line(fmt::format("  {}: {}", name_of(r.stops), r.sentence), kRed);
}

}  // namespace

std::string inspect_text(const InspectView& view, bool colours) {
    Page page{.colours = colours};
    page.line(view.inspection.file->path);
    show_model(page, view);
    show_text_side(page, view.inspection);
    show_formats(page, view.inspection);
    if (view.plan) show_plan(page, *view.plan);
    if (view.lists_tensors) show_tensors(page, view);
    if (view.scan) show_scan(page, *view.scan);
    show_refusals(page, view.inspection);
    return page.text;
}

}  // namespace hf
