#include "libcore/exec/cpu_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace hf {
namespace {

bool have_same_shape(const Weight& a, const Weight& b) {
    return a.codec == b.codec && a.shape.rows == b.shape.rows && a.shape.cols == b.shape.cols &&
           (a.awq_id != 0) == (b.awq_id != 0);
}

double mean_ms(double seconds, uint64_t calls) {
    return seconds * 1e3 / double(calls);
}

}  // namespace

void CpuTrace::add(const Step& step, const Tokens& tokens, double seconds, double thread_seconds) {
    if (next_) next_->add(step, tokens, seconds, thread_seconds);
    if (!is_product(step.op)) return;
    const Weight& w = *step.w;
    const Shape key = {.first = &w,
                       .rows = step.params.row_end - step.params.row_begin,
                       .residual = step.op == Op::gemv_residual,
                       .several_tokens = tokens.count > 1};
    auto shape = std::ranges::find_if(shapes_, [&](const Shape& s) {
        return have_same_shape(*s.first, w) && s.rows == key.rows && s.residual == key.residual &&
               s.several_tokens == key.several_tokens;
    });
    if (shape == shapes_.end()) shape = shapes_.insert(shape, key);
    shape->seconds += seconds;
    if (!std::has_single_bit(++shape->calls)) return;
    log_.asked(fmt::format(
        "cpu exec: step op=gemv m={} k={} quant={} rotated={} residual={} awq={} rows={} tokens={} "
        "calls={} cpu_products={} link_products={} gemv_ms={:.2f}",
        w.shape.rows, w.shape.cols, w.codec->name, int(w.codec->rotation != Rotation::none),
        int(key.residual), int(w.awq_id != 0), key.rows, key.several_tokens ? "several" : "one",
        shape->calls, counts_.cpu_products, counts_.link_products,
        mean_ms(shape->seconds, shape->calls)));
}

void CpuTrace::add(const SegmentPlan& plan, size_t segment, const Crossing& crossing) {
    if (plan.segments[segment].up.empty() && plan.segments[segment].down.empty()) return;
    auto border = std::ranges::find_if(borders_, [&](const Border& b) {
        return b.token_class == plan.token_class && b.segment == segment;
    });
    if (border == borders_.end()) border = borders_.insert(border, {plan.token_class, segment});
    Crossing& sum = border->sum;
    sum.wait_seconds += crossing.wait_seconds;
    sum.up_seconds += crossing.up_seconds;
    sum.down_seconds += crossing.down_seconds;
    const uint64_t n = ++border->calls;
    if (!std::has_single_bit(n)) return;
    log_.asked(fmt::format(
        "cpu exec: border class={} segment={} calls={} bytes_up={} bytes_down={} "
        "wait_ms={:.2f} up_ms={:.2f} down_ms={:.2f}",
        name_of(plan.token_class), segment, n, crossing.bytes_up, crossing.bytes_down,
        mean_ms(sum.wait_seconds, n), mean_ms(sum.up_seconds, n), mean_ms(sum.down_seconds, n)));
}

}  // namespace hf
