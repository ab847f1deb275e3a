// Segments: a list of steps cut by who runs them, with what changes sides in between.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/model/lane.h"
#include "libcore/model/steps.h"

namespace hf {

/// How many tokens a pass has: that decides who multiplies spilled weights.
enum class TokenClass : uint8_t {
    one,     // an answer, token by token
    few,     // a verify pass, the end of a prompt
    prompt,  // from a number of tokens on that the session records
};
inline constexpr size_t kTokenClasses = 3;
std::string_view name_of(TokenClass c);
TokenClass class_of(uint32_t tokens, uint32_t prompt_from);

/// Who multiplies a matrix in a pass of that class. In a prompt the device reads host_mapped
/// weights over the link once for all tokens, whatever their exec; host_plain ones it cannot read.
Exec side_of(const Weight& w, TokenClass c);

/// Columns [begin, end) of a slot's rows, copied to the other side.
struct SlotCopy {
    Slot slot;
    uint32_t begin = 0, end = 0;

    uint64_t bytes(uint64_t rows) const { return rows * (end - begin) * sizeof(float); }
};

/// Steps of one side, or a window: products of both sides at once that do not depend on each other.
/// At its front is a border, where activations go `up` to the device, then `down` to the CPU. Each
/// of the two that is not empty is one crossing.
struct Segment {
    std::vector<SlotCopy> up, down;
    std::array<std::vector<Step>, kLanes> steps;  // by lane; a cut product is in both, by rows

    const std::vector<Step>& on(Lane lane) const { return steps[size_t(lane)]; }
    bool is_window() const { return !on(Lane::cpu).empty() && !on(Lane::device).empty(); }
};

/// A list of steps, ready to be executed on two lanes.
struct SegmentPlan {
    TokenClass token_class = TokenClass::one;
    std::vector<Segment> segments;
    std::vector<Lane> last_lanes;  // by slot id, see last_lane()

    /// Where a slot's last value is after the pass.
    Lane last_lane(Slot slot) const;
    uint32_t crossings() const;
    /// Bytes copied by a pass of so many tokens, of which so many want logits.
    uint64_t bytes_copied(uint64_t tokens, uint64_t logits) const;
    bool has_steps_on(Lane lane) const;
};

/// Gives every step a side and cuts the list where the side changes.
///
/// Products and embedding rows go where side_of() says, steps with state to the device, all others
/// where the crossings are fewest; of equal plans the one that copies fewest bytes, then the one of
/// fewest segments, then the one with fewest steps on the CPU. A step that reads a vector may run
/// on the CPU only if the vector is mirrored. Neighbouring products that are cut between the sides,
/// and products of the CPU among them, are one window as long as none needs another's result; the
/// CPU's rows go up behind it.
///
/// A border copies only what the other side reads before it is written again. Nothing lives from
/// pass to pass: a slot that no step wrote counts as present on both sides.
///
/// Cost  see choose_lanes.cpp; some milliseconds for a model of 64 layers
SegmentPlan plan_segments(std::span<const Step> steps, TokenClass token_class);

}  // namespace hf
