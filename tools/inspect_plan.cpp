#include "tools/inspect_plan.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "libcore/plan/steps_text.h"
#include "tools/device_facts.h"

namespace hf {
namespace {

/// Who reads a weight from where: the letters of the bars and their colours.
struct Reader {
    char letter;
    std::string_view colour, meaning;
    uint64_t Reads::*bytes;
};
constexpr Reader kReaders[] = {
    {'#', kGreen, "device memory", &Reads::vram},
    {'~', kYellow, "over the link", &Reads::link},
    {'=', kBlue, "CPU", &Reads::cpu},
};
constexpr uint64_t kBarWidth = 32;

std::string reads_text(const Reads& reads) {
    std::string text;
    for (const Reader& r : kReaders)
        if (reads.*r.bytes > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", size_text(reads.*r.bytes),
                                r.meaning);
    return text.empty() ? "nothing" : text;
}

/// Letters in proportion to bytes; whoever reads anything gets one at least.
std::string bar(const Page& page, const Reads& reads, uint64_t widest) {
    std::string text;
    uint64_t length = 0;
    for (const Reader& r : kReaders) {
        const uint64_t bytes = reads.*r.bytes;
        if (bytes == 0) continue;
        const uint64_t letters = std::max<uint64_t>(1, (bytes * kBarWidth + widest / 2) / widest);
        text += page.in(r.colour, std::string(letters, r.letter));
        length += letters;
    }
    return text + std::string(length < kBarWidth + 2 ? kBarWidth + 2 - length : 1, ' ');
}

std::string layer_text(const PlanFacts& facts, const LayerFacts& l) {
    std::vector<std::string> parts;
    if (l.cpu_products > 0) parts.push_back(plural(l.cpu_products, "CPU product"));
    if (l.bytes_copied > 0) parts.push_back(size_text(l.bytes_copied) + " copied");
    if (l.residency != Residency::device && facts.plan.budget.exec != Exec::device &&
        l.covered < l.matrices)
        parts.push_back(fmt::format("{} of {} covered (not {})", l.covered, l.matrices,
                                    fmt::join(l.uncovered, ", ")));
    return fmt::format("{}", fmt::join(parts, ", "));
}

void show_layers(Page& page, const PlanFacts& facts) {
    std::string legend;
    for (const Reader& r : kReaders)
        legend += fmt::format("   {} {}", page.in(r.colour, std::string(1, r.letter)), r.meaning);
    page.raw_line("  weights that a token reads, by who reads them:" + legend);
    uint64_t widest = 1;
    for (const LayerFacts& l : facts.layers) widest = std::max(widest, l.reads.all());
    for (const LayerFacts& l : facts.layers) {
        const bool is_full = facts.plan.config.layers[l.layer] == LayerKind::full_attention;
        page.raw_line(fmt::format("  {:>3} {:7} {} {:>10}  {}", l.layer,
                                  is_full ? "full" : "linear", bar(page, l.reads, widest),
                                  size_text(l.reads.all()), layer_text(facts, l)));
    }
    page.line(fmt::format(
        "  head, {}",
        facts.plan.config.tied_embeddings
            ? fmt::format("which is the embedding: {} on the device",
                          size_text(facts.embedding_bytes))
            : fmt::format("on the device: {}; embedding, {}: {}", size_text(facts.head_bytes),
                          facts.device.in_place ? "in the file" : "a row per token from the file",
                          size_text(facts.embedding_bytes))));
}

std::string budget_text(const Budget& budget, uint32_t layers) {
    constexpr std::string_view kWords[] = {"what fits (nothing was asked for)", "auto", "as asked"};
    if (budget.device_layers > layers)
        return fmt::format("all there are ({} were asked for)", budget.device_layers);
    return std::string(kWords[size_t(budget.layers)]);
}

std::string exec_text(const Budget& b) {
    std::string text = fmt::format("exec {}", name_of(b.exec));
    if (b.exec == Exec::split)
        text += fmt::format(", the device's share {:g} of rows", b.split_share);
    return text;
}

void show_budget(Page& page, const PlanFacts& facts) {
    const uint32_t layers = facts.plan.config.n_layers, spilled = facts.plan.layout.spilled();
    const Budget& b = facts.plan.budget;
    if (facts.device.in_place && spilled == 0)
        return page.fact("plan", "no graphics card, so nothing is divided");
    std::string text =
        fmt::format("{} of {} layers stay, {}", layers - spilled, layers, budget_text(b, layers));
    if (b.spill == Spill::ffn) text += "; the others leave their feed-forward";
    if (spilled > 0) text += "; " + exec_text(b);
    page.fact("plan", text);
}

void show_memory(Page& page, const PlanFacts& facts) {
    const DeviceNeed& n = facts.need;
    const WeightTotals& t = facts.totals;
    page.fact("device", device_text(facts.device, product_kinds(facts.plan, facts.device)));
    if (facts.device.in_place)
        page.fact(
            "",
            fmt::format("reads {} of matrices in the mapped file{}; {} of vectors, {} of "
                        "state and activations",
                        size_text(t.all_bytes() - facts.vector_bytes - facts.sidecar_bytes),
                        facts.locked_bytes > 0 ? ", locked in memory" : "",
                        size_text(facts.vector_bytes + facts.sidecar_bytes), size_text(n.session)));
    else
        page.fact("", fmt::format("needs {} of {}: weights {}, state and activations {}, slack {}",
                                  size_text(n.needed()), size_text(n.available),
                                  size_text(n.weights), size_text(n.session), size_text(n.slack)));
    const std::pair<std::string_view, uint64_t> parts[] = {
        {"pinned", t.bytes[size_t(Residency::host_mapped)]},
        {"slack behind it", facts.pad_bytes},
        {"in the mapped file", t.bytes[size_t(Residency::host_plain)]},
        {"of its pages locked in memory", facts.locked_bytes},
        {"mirrored", t.mirrored_bytes},
        {"activations", facts.session.host_bytes},
    };
    std::string host;
    for (const auto& [what, bytes] : parts)
        if (bytes > 0)
            host += fmt::format("{}{} {}", host.empty() ? "" : ", ", size_text(bytes), what);
    if (!host.empty() && !facts.device.in_place) page.fact("host", host);
}

void show_passes(Page& page, const PlanFacts& facts) {
    for (const PassFacts& p : facts.passes) {
        const std::string tokens =
            p.token_class == TokenClass::one ? "one token" : fmt::format("{} tokens", p.tokens);
        if (facts.device.in_place) {  // nobody else is there to read or to copy to
            page.fact(tokens, fmt::format("reads {} of memory", size_text(p.reads.vram)));
            continue;
        }
        page.fact(tokens, fmt::format("reads {}; {}, {} copied; {} of {} steps on the CPU",
                                      reads_text(p.reads), plural(p.crossings, "crossing"),
                                      size_text(p.bytes_up + p.bytes_down), p.cpu_steps, p.steps));
    }
}

std::string bandwidth_text(const PlanView& view) {
    const Bandwidth& b = view.bandwidth;
    std::string text;
    if (b.vram > 0) text += fmt::format("vram {:g}, ", b.vram * 1e-9);
    if (b.link > 0) text += fmt::format("link {:g}, ", b.link * 1e-9);
    return fmt::format("{}cpu {:.3g} GB/s{}, {:.0f} us a crossing", text, b.cpu * 1e-9,
                       view.is_measured ? " (measured)" : "", Bandwidth::kCrossingSeconds * 1e6);
}

void show_prediction(Page& page, const PlanView& view) {
    const double seconds = predict_seconds(view.facts, view.bandwidth);
    if (view.bandwidth.cpu == 0) return;
    page.fact("at most",
              seconds > 0
                  ? fmt::format("{:.1f} tokens a second, {:.2f} ms each, by memory alone ({})",
                                1 / seconds, seconds * 1e3, bandwidth_text(view))
                  : "not known: --bandwidth lacks what this plan reads (vram=, link=, cpu=)");
}

std::string mib(uint64_t bytes) {
    return fmt::format("{:.1f}", double(bytes) / (1 << 20));
}

void show_sweep(Page& page, const PlanView& view) {
    constexpr std::string_view kRow =
        "  {:>6} {:>10} {:>10} {:>5} {:>10} {:>11} {:>11} {:>11} {:>9} {:>8}";
    page.line("");
    page.line(fmt::format(kRow, "layers", "device MiB", "host MiB", "fits", "crossings",
                          "vram MiB/t", "link MiB/t", "cpu MiB/t", "ms/token", "tok/s"),
              kDim);
    for (const PlanFacts& f : view.sweep) {
        const PassFacts& p = f.pass(TokenClass::one);
        const double seconds = predict_seconds(f, view.bandwidth);
        const bool fits = f.refusal.empty();
        const uint64_t host = f.totals.bytes[1] + f.totals.bytes[2] + f.totals.mirrored_bytes +
                              f.pad_bytes + f.session.host_bytes;
        page.line(fmt::format(kRow, f.plan.config.n_layers - f.plan.layout.spilled(),
                              mib(f.need.needed()), mib(host), fits ? "yes" : "no", p.crossings,
                              mib(p.reads.vram), mib(p.reads.link), mib(p.reads.cpu),
                              seconds > 0 ? fmt::format("{:.2f}", seconds * 1e3) : "-",
                              seconds > 0 ? fmt::format("{:.1f}", 1 / seconds) : "-"),
                  fits ? std::string_view() : kRed);
    }
}

void show_steps(Page& page, const PlanFacts& facts) {
    for (size_t c = 0; c < kTokenClasses; ++c) {
        page.line("");
        const std::string text =
            steps_text(facts.segments[c], facts.plan.slots, facts.passes[c].tokens, 1);
        for (size_t at = 0, end; at < text.size(); at = end + 1) {
            end = text.find('\n', at);
            page.line("  " + text.substr(at, end - at));
        }
    }
}

}  // namespace

std::vector<const PlannedWeight*> weights_by_tensor(const InspectView& view) {
    const std::vector<TensorView>& tensors = view.inspection.file->tensors;
    std::vector<const PlannedWeight*> weights(tensors.size());
    if (!view.plan) return weights;
    for (const PlannedWeight& p : view.plan->facts.plan.weights)
        if (p.source.tensor) weights[size_t(p.source.tensor - tensors.data())] = &p;
    return weights;
}

bool has_mirror(const PlannedWeight& p) {
    const PlannedTensor& s = p.source;
    return p.weight->is_mirrored && (s.row->use != Use::matrix || s.awq_scale || s.levels);
}

std::string place_text(const PlannedWeight& p) {
    const Weight& w = *p.weight;
    constexpr std::string_view kHomes[] = {"device", "pinned", "mapped file"};  // by Residency
    std::string text(kHomes[size_t(w.residency)]);
    if (w.residency != Residency::device) text += fmt::format(", {}", name_of(w.exec));
    if (w.exec == Exec::split) text += fmt::format(" at row {}", w.split_row);
    if (has_mirror(p)) text += ", mirrored";
    return text;
}

void show_plan(Page& page, const PlanView& view) {
    const PlanFacts& facts = view.facts;
    page.line("");
    show_budget(page, facts);
    show_memory(page, facts);
    show_passes(page, facts);
    show_prediction(page, view);
    if (view.was_loaded)
        page.line("  loaded: the load and its session took what was planned, to the byte", kGreen);
    if (!facts.device.in_place || facts.plan.layout.spilled() > 0) {
        page.line("");
        show_layers(page, facts);
    }
    if (!view.sweep.empty()) show_sweep(page, view);
    if (view.shows_steps) show_steps(page, facts);
}

}  // namespace hf
