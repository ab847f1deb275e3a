#include "libcore/file/chat_template.h"

#include <optional>

#include "libcore/file/json.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

/// Reads one {"name": ..., "template": ...}; the template when the name is "default".
std::optional<std::string> default_template(JsonReader& json) {
    std::string name, text;
    json.object([&](const std::string& key) {
        if (key == "name")
            name = json.string();
        else if (key == "template")
            text = json.string();
        else
            json.skip();
    });
    if (name == "default") return text;
    return std::nullopt;
}

}  // namespace

std::string embedded_chat_template(const std::string& tokenizer_config, std::string_view where,
                                   const Log& log) {
    using Kind = JsonReader::Kind;
    std::string text;
    JsonReader json(tokenizer_config, where);
    const auto read_list = [&] {
        std::optional<std::string> found;
        json.array([&] {
            if (auto entry = default_template(json)) found = entry;
        });
        if (!found)
            log.warn(fmt::format("{}: none of the chat templates is called 'default'; none is used",
                                 where));
        text = found.value_or("");
    };
    json.object([&](const std::string& key) {
        if (key != "chat_template") return json.skip();
        const Kind kind = json.peek();
        if (kind == Kind::string)
            text = json.string();
        else if (kind == Kind::array)
            read_list();
        else if (kind == Kind::null)
            json.skip();
        else
            fail_file(where, "'chat_template' is neither a string nor a list");
    });
    json.end();
    return text;
}

}  // namespace hf
