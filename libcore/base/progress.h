// Progress: how far a long piece of work is, for a person who waits.
#pragma once

#include <cstdint>
#include <functional>

namespace hf {

/// Called after each part of the work, with what is done and what there is in all, in the same
/// unit. Empty: nobody is told.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

}  // namespace hf
