// Dispatches: how a list of steps is handed to threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"

namespace hf {

/// Neighbours in the list that may run at once: none writes a slot that another reads or writes,
/// and no two use the same layer's state. Between dispatches all threads wait.
struct Dispatch {
    static constexpr size_t kMostSteps = 8;

    size_t count = 0;
    const Step* step[kMostSteps];
    uint32_t parts[kMostSteps];  // into which each is cut

    /// What threads claim one by one: parts of the steps that are cut, in order. Steps that are not
    /// worth cutting are one claim together with such neighbours.
    uint32_t claims() const;

    /// Calls f(i, part) for everything in a claim, i being the index of the step.
    template <class F>
    void for_claim(uint32_t claim, F f) const {
        for (size_t i = 0, end; i < count; i = end) {
            end = end_of_claims(i);
            if (claim < parts[i]) {
                for (; i < end; ++i) f(i, claim);
                return;
            }
            claim -= parts[i];
        }
    }

  private:
    /// Behind the last step that shares the claims of step i.
    size_t end_of_claims(size_t i) const {
        size_t end = i + 1;
        while (parts[i] == 1 && end < count && parts[end] == 1) ++end;
        return end;
    }
};

/// Cuts a list for so many threads: a step into as many parts as its row in the table says that it
/// is worth, but no more than serve to keep the threads busy; for one thread, into one. Steps that
/// have no rows in this pass are left out.
std::vector<Dispatch> plan_dispatches(std::span<const Step> steps, const Tokens& tokens,
                                      unsigned threads);

/// False for a step that has no rows in this pass (the head, when no logits are wanted).
bool has_rows(const Step& step, const Tokens& tokens);

}  // namespace hf
