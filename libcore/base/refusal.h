// Refusal: possible, but not allowed; with the way out in a line of its own.
#pragma once

#include <string>

#include "libcore/base/error.h"

namespace hf {

/// A sentence that begins with "refused: ", and a hint: which key to change. Tools print both.
class Refusal : public Error {
  public:
    Refusal(const std::string& sentence, const std::string& hint)
        : Error("refused: " + sentence, Fault::refused), hint_(printable(hint)) {}
    const std::string& hint() const { return hint_; }

  private:
    std::string hint_;
};

}  // namespace hf
