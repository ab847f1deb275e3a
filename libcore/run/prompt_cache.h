// PromptCache: how much of the next prompt a session already holds, and the points to go back to.
//
// Keys and values can be cut anywhere; recurrent state cannot, so it is kept at a few points. All
// of them lie on the grid on which prompts are fed (run/prompt.h) and hold tokens of prompts only,
// never tokens that the model wrote one by one: what is fed from there on has the bits of a prompt
// fed from the start. A model without recurrent state is cut where two prompts part, tokens that it
// wrote included: on the host device their keys and values have those bits too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libcore/exec/session.h"

namespace hf {

class PromptCache {
  public:
    /// Points kept. Each turn of a chat goes back to that of the turn before; the others serve
    /// turns taken back. Recurrent state can be large (50 MB for 9 billion parameters), so their
    /// bytes have a bound as well; one point is kept whatever its size.
    static constexpr size_t kMostPoints = 4;
    static constexpr uint64_t kMostBytes = 256 << 20;

    /// The session outlives the cache, and every prompt it gets goes through rewind().
    explicit PromptCache(Session& session) : session_(session) {}

    /// Goes back to the longest beginning of `prompt` that the session holds, and returns its
    /// length: the caller feeds the rest, at least one token.
    ///
    /// prompt  not empty
    uint32_t rewind(std::span<const int32_t> prompt);

    /// To be called after each piece of a prompt. Keeps this point if a later prompt may want it:
    /// that is expected to be the same up to `fork` or somewhat further, so wanted are the last
    /// grid point not after it and all behind it.
    void keep(uint32_t fork);

    /// The lengths of the points kept, ascending.
    std::vector<uint32_t> lengths() const;

  private:
    Session& session_;
    std::vector<Checkpoint> points_;  // ascending, each a beginning of what was fed last

    uint32_t cut(std::span<const int32_t> prompt);
};

}  // namespace hf
