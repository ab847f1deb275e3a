#include "libcore/plan/steps_text.h"

#include <fmt/format.h>

#include "libcore/ops/ops_table.h"

namespace hf {
namespace {

struct StepsPrinter {
    const SlotTable& slots;
    uint64_t tokens, logits;
    std::string text = {};

    std::string name(Slot slot) const {
        return slot.id < slots.names.size() ? slots.names[slot.id] : fmt::format("#{}", slot.id);
    }
    std::string names(const Slot (&of)[4]) const {
        std::string list;
        for (const Slot& slot : of)
            if (slot.exists()) list += (list.empty() ? "" : ", ") + name(slot);
        return list;
    }

    std::string copies(std::string_view direction, const std::vector<SlotCopy>& list) const {
        if (list.empty()) return "";
        std::string what;
        uint64_t bytes = 0;
        for (const SlotCopy& c : list) {
            what += (what.empty() ? "" : ", ") + name(c.slot);
            if (c.end - c.begin < c.slot.width) what += fmt::format("[{}, {})", c.begin, c.end);
            bytes += c.bytes(c.slot.rows == Rows::tokens ? tokens : logits);
        }
        return fmt::format("; {} {} ({} bytes)", direction, what, bytes);
    }

    void segment(size_t at, const Segment& s) {
        text += fmt::format("segment {}, {}{}{}\n", at,
                            s.is_window()             ? "both at once"
                            : s.on(Lane::cpu).empty() ? "device"
                                                      : "cpu",
                            copies("up", s.up), copies("down", s.down));
        for (const Lane lane : {Lane::device, Lane::cpu})
            for (const Step& step : s.on(lane)) line(step, lane);
    }

    void line(const Step& step, Lane lane) {
        const OpParams& p = step.params;
        std::string what(row_of(step.op).name);
        for (const Weight* w : {step.w, step.aux})
            if (w) what += " " + w->name;
        if (is_product(step.op) && p.row_end - p.row_begin < step.w->shape.rows)
            what += fmt::format(" rows [{}, {})", p.row_begin, p.row_end);
        const std::string layer =
            step.layer == Step::kNoLayer ? "-" : fmt::format("{}", step.layer);
        const std::string in = names(step.in);
        text += fmt::format("  {:6} {:>3}  {}: {}-> {}\n", lane == Lane::cpu ? "cpu" : "device",
                            layer, what, in.empty() ? in : in + " ", names(step.out));
    }
};

}  // namespace

std::string steps_text(const SegmentPlan& plan, const SlotTable& slots, uint64_t tokens,
                       uint64_t logits) {
    StepsPrinter printer{slots, tokens, logits};
    printer.text = fmt::format(
        "pass of {} token{} ({}): {} segment{}, {} crossings, {} bytes copied\n", tokens,
        tokens == 1 ? "" : "s", name_of(plan.token_class), plan.segments.size(),
        plan.segments.size() == 1 ? "" : "s", plan.crossings(), plan.bytes_copied(tokens, logits));
    for (size_t i = 0; i < plan.segments.size(); ++i) printer.segment(i, plan.segments[i]);
    return printer.text;
}

}  // namespace hf
