// The chat template that a tokenizer_config.json carries.
#pragma once

#include <string>
#include <string_view>

#include "libcore/base/log.h"

namespace hf {

/// "chat_template" of a tokenizer_config.json: a string, or of a list of {name, template} the one
/// called "default"; a list without one is warned about. Empty when there is none.
/// where   begins the messages: the file, or the part of one
/// Errors  hf::Error when the text is not a JSON object, or the template neither string nor list
std::string embedded_chat_template(const std::string& tokenizer_config, std::string_view where,
                                   const Log& log);

}  // namespace hf
