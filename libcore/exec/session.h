// Session: one conversation with a model: its state, its activations, and where it stands.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/device/device.h"
#include "libcore/exec/lanes.h"
#include "libcore/load/model.h"

namespace hf {

struct SessionOptions {
    uint32_t max_seq = 0;                // tokens that fit; at most the model's maximum
    const KvType* kv = nullptr;          // how keys and values are stored
    uint32_t max_logits = 1;             // rows of logits in one pass
    uint32_t prompt_from = kPromptFrom;  // tokens that make a pass a prompt (plan/segments.h)
    LaneOptions lanes = {};
    std::function<SegmentPlan(std::span<const Step>, TokenClass)> planner = plan_segments;

    /// An estimate. Weights of 4 bits come over a link of 27 GB/s at 54e9 a second, once for all
    /// tokens; cores multiply 100e9 to 400e9 a second. They are even at two to eight tokens.
    static constexpr uint32_t kPromptFrom = 9;
};

/// A point to come back to: the recurrent state after `ids`, in host memory.
struct Checkpoint {
    std::vector<int32_t> ids;
    std::vector<std::byte> recurrent;
};

class Session {
  public:
    /// Tokens in one pass, and the grid on which prompts are cut (see run/prompt.h).
    static constexpr uint32_t kMaxTokens = 64;

    /// Plans who runs what, and allocates slab and arenas; they outlive neither model nor device.
    /// Errors  hf::Error when max_seq exceeds the model's maximum, the cache type does not fit, or
    ///         memory runs out
    Session(const Model& model, Device& device, const SessionOptions& options);

    /// Runs ids as the tokens behind the committed ones and returns logits (logit_rows, vocab) of
    /// those named, valid until the next call. The state does not move until commit(): a second
    /// forward() starts from the same place and overwrites the pending rows.
    ///
    /// ids         1 .. kMaxTokens, and no more than room()
    /// logit_rows  ascending indices into ids, at most max_logits
    /// Errors      hf::Error for an id outside the vocabulary or more tokens than room()
    std::span<const float> forward(std::span<const int32_t> ids,
                                   std::span<const uint32_t> logit_rows);

    /// Makes the first n tokens of the last forward() real; the others are forgotten. A single one
    /// is taken up by the recurrent state in the next pass, which reads it anyway, or when somebody
    /// wants to see it.
    void commit(uint32_t n);

    uint32_t length() const { return length_; }  // committed tokens
    uint32_t room() const { return layout_.max_seq - length_; }
    std::span<const int32_t> ids() const { return {cached_ids_.data(), length_}; }
    uint64_t bytes_moved() const { return bytes_moved_; }  // by all passes so far
    const Model& model() const { return model_; }

    Checkpoint checkpoint();
    /// Goes back to a checkpoint of this session, or forward again.
    /// Errors  hf::Error when the cache no longer holds that checkpoint's tokens
    void restore(const Checkpoint& checkpoint);

    /// Who runs what in a pass of that class.
    const SegmentPlan& plan(TokenClass c) const { return plans_[size_t(c)]; }
    const LaneCounts& counts() const { return lanes_.counts(); }
    const CaptureGate& gate() const { return lanes_.gate(); }

    /// Rows [0, rows) of a slot as the last pass left them. For taps and tests.
    std::vector<float> read_slot(Slot slot, uint32_t rows) const;
    /// The committed recurrent state and how it is laid out. For tests.
    std::vector<std::byte> read_recurrent();
    const StateLayout& state_layout() const { return layout_; }

  private:
    const Model& model_;
    Device& device_;
    StateLayout layout_;
    StepList commit_steps_;
    ArenaLayout arena_layout_;
    std::vector<SegmentPlan> plans_;  // by token class
    Buffer state_;
    Lanes lanes_;
    uint32_t prompt_from_;
    TokenClass last_class_ = TokenClass::one;
    std::vector<float> logits_;
    std::vector<int32_t> cached_ids_;  // whose keys and values the cache rows hold
    uint32_t length_ = 0;
    uint32_t pending_ = 0;  // tokens of the last pass, until they are committed
    uint32_t owed_ = 0;     // committed ones of them that the recurrent state does not hold yet
    uint64_t bytes_moved_ = 0;

    Tokens tokens(uint32_t count) const;
    void settle();
};

}  // namespace hf
