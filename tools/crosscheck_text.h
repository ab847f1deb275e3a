// hf-crosscheck for scripts: a JSON object per line in, one per line out.
// docs/hf-crosscheck.md describes them.
#pragma once

#include <string>

#include "libcore/text/chat.h"
#include "libcore/text/tokenizer.h"
#include "tools/output.h"

namespace hf {

/// Each line {"text" or "bytes_hex", "parse_special", "add_special"} to {"ids", "decoded"}. A line
/// is answered before the next one is read; ends early when there is no reader left.
///
/// path    "-": standard input
/// Errors  hf::Error naming file and line: no JSON, or not such an object
void tokenize_lines(const Tokenizer& tokenizer, const std::string& path, Output& output);

/// Each line {"messages", "options"} to {"text", "ids"}, or to {"error"} for a conversation that
/// the template or the tokenizer refuses.
void render_lines(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                  const std::string& path, Output& output);

}  // namespace hf
