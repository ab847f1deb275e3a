// StreamDecoder: prints tokens as they come, never half a character.
#pragma once

#include <cstdint>
#include <string>

#include "libcore/text/tokenizer.h"

namespace hf {

/// All that push() and the last flush() return, put together, is what Tokenizer::decode() returns.
/// Each returned text is valid UTF-8.
class StreamDecoder {
  public:
    /// The tokenizer must outlive it. skip_special: special tokens print nothing.
    StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
        : tokenizer_(tokenizer),
          skip_special_(skip_special),
          drops_space_(tokenizer.drops_first_space()) {}

    /// What may be printed now. Holds back up to 3 bytes that may still become a character; bytes
    /// that cannot become U+FFFD.
    std::string push(int32_t id);

    /// The end: what was held back is incomplete for good. The decoder is as new afterwards.
    std::string flush();

  private:
    const Tokenizer& tokenizer_;
    bool skip_special_;
    bool drops_space_;  // at the start, if the next byte is one
    std::string held_;
};

}  // namespace hf
