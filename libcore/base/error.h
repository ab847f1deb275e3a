// What goes wrong: errors for the people who use the tools, assertions for ourselves.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "libcore/base/printable.h"

namespace hf {

/// Why a tool stops; the value is its exit code.
enum class Fault {
    world = 1,      // a file, a format, a device or the memory is not as it must be
    usage = 2,      // a flag, a variable or the configuration is wrong
    no_device = 3,  // a device was required and there is none
    refused = 4,    // possible, but not allowed: policy, admission, nothing fits
    skipped = 5,    // something was skipped although nothing may be
};

/// The world is wrong. The sentence says what happened, where (file, tensor, key), both numbers,
/// and what to do. Tools catch it once, print it and exit with the fault's value. Only what is
/// printable() of it is kept.
class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& sentence, Fault fault = Fault::world)
        : std::runtime_error(printable(sentence)), fault_(fault) {}
    Fault fault() const { return fault_; }

  private:
    Fault fault_;
};

}  // namespace hf

/// We are wrong: a contract between our own functions is broken. Never reached by input.
#define HF_ASSERT(condition) ((condition) ? void(0) : ::std::abort())
