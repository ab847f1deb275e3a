#include "libcore/exec/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/exec/session_need.h"
#include "libcore/ops/run_steps.h"
#include "libcore/plan/activation_tags.h"
#include "libcore/plan/segments.h"

namespace hf {
namespace {

StepList commit_steps(const StateSpec& state) {
    StepList list;
    // neighbours of different layers can run at once
    for (uint32_t i = 0; i < state.delta_layers; ++i) list.conv_commit(i);
    for (uint32_t i = 0; i < state.delta_layers; ++i) list.delta_commit(i);
    return list;
}

std::vector<SegmentPlan> plan_all(const Model& model, const SessionOptions& options) {
    std::vector<SegmentPlan> plans;
    for (size_t c = 0; c < kTokenClasses; ++c) {
        plans.push_back(options.planner(model.steps, TokenClass(c)));
        HF_ASSERT(!find_unfit_step(plans.back()));
    }
    return plans;
}

/// What the model's placement says of the CPU lane.
LaneOptions lane_options(const Model& model, LaneOptions options) {
    options.pins = options.pins && model.budget.pin;
    return options;
}

}  // namespace

Session::Session(const Model& model, Device& device, const SessionOptions& options)
    : model_(model),
      device_(device),
      layout_(lay_out_session_state(model, options)),
      commit_steps_(commit_steps(model.state)),
      arena_layout_(lay_out_arena(model.slots, layout_.max_pending, options.max_logits)),
      plans_(plan_all(model, options)),
      state_(device.allocate(layout_.bytes, Residency::device)),
      lanes_(device, arena_layout_, plans_, lane_options(model, options.lanes)),
      prompt_from_(options.prompt_from),
      logits_(uint64_t(options.max_logits) * model.config.vocab) {}

Tokens Session::tokens(uint32_t count) const {
    Tokens t;
    t.count = count;
    t.pos = length_;
    t.state = state_.writable();
    t.state_layout = &layout_;
    return t;
}

std::span<const float> Session::forward(std::span<const int32_t> ids,
                                        std::span<const uint32_t> logit_rows) {
    const uint32_t vocab = model_.config.vocab;
    HF_ASSERT(!ids.empty() && ids.size() <= kMaxTokens);
    HF_ASSERT(logit_rows.size() * vocab <= logits_.size());
    if (ids.size() > room())
        throw Error(fmt::format("{} tokens do not fit: {} of {} are used; raise memory.max_seq",
                                ids.size(), length_, layout_.max_seq),
                    Fault::refused);
    for (const int32_t id : ids)
        if (id < 0 || uint32_t(id) >= vocab)
            throw Error(fmt::format("token id {} is outside the vocabulary of {}", id, vocab));

    cached_ids_.resize(length_);
    cached_ids_.insert(cached_ids_.end(), ids.begin(), ids.end());
    pending_ = uint32_t(ids.size());
    Tokens t = tokens(pending_);
    t.ids = ids.data();
    t.logit_count = uint32_t(logit_rows.size());
    t.logit_rows = logit_rows.data();
    last_class_ = class_of(t.count, prompt_from_);
    t.commits = std::exchange(owed_, 0);
    lanes_.run(plan(last_class_), t);
    bytes_moved_ += hf::bytes_moved(model_.steps, t);
    const std::span<float> wanted(logits_.data(), logit_rows.size() * vocab);
    lanes_.read(plan(last_class_).last_lane(model_.logits), model_.logits, t.logit_count, wanted);
    return wanted;
}

void Session::commit(uint32_t n) {
    HF_ASSERT(n <= pending_);
    length_ += n;
    owed_ += n;
    pending_ = 0;
    if (owed_ > 1) settle();
}

/// Pays what is owed to the recurrent state.
void Session::settle() {
    if (owed_ == 0) return;
    const Tokens t = tokens(std::exchange(owed_, 0));
    lanes_.run_on_device(commit_steps_.steps, t);
    bytes_moved_ += hf::bytes_moved(commit_steps_.steps, t);
}

Checkpoint Session::checkpoint() {
    return {{cached_ids_.begin(), cached_ids_.begin() + length_}, read_recurrent()};
}

void Session::restore(const Checkpoint& checkpoint) {
    const size_t n = checkpoint.ids.size();
    if (n > cached_ids_.size() ||
        !std::equal(checkpoint.ids.begin(), checkpoint.ids.end(), cached_ids_.begin()))
        throw Error(
            fmt::format("a checkpoint of {} tokens cannot be restored: its keys and values "
                        "have been overwritten",
                        n));
    device_.upload(state_, 0, checkpoint.recurrent);
    length_ = uint32_t(n);
    pending_ = owed_ = 0;
}

std::vector<float> Session::read_slot(Slot slot, uint32_t rows) const {
    std::vector<float> values(uint64_t(rows) * slot.width);
    lanes_.read(plan(last_class_).last_lane(slot), slot, rows, values);
    return values;
}

std::vector<std::byte> Session::read_recurrent() {
    settle();
    std::vector<std::byte> bytes(layout_.recurrent_bytes);
    device_.download(state_, 0, bytes);
    return bytes;
}

}  // namespace hf
