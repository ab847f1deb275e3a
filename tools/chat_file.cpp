#include "tools/chat_file.h"

#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libcore/base/error.h"
#include "libcore/file/json.h"
#include "libcore/file/message.h"
#include "tools/terminal.h"

namespace hf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "hipfire chat";
constexpr std::string_view kVersion = "1";

/// Reads the members of an object; each key at most once.
template <class Member>
void read_object(JsonReader& json, std::string_view label, const Member& member) {
    std::set<std::string> seen;
    json.object([&](const std::string& key) {
        if (!seen.insert(key).second) fail_file(label, "the key {} comes twice", shown(key));
        if (!member(key)) fail_file(label, "the key {} is not known here", shown(key));
    });
}

ChatMessage read_message(JsonReader& json, std::string_view label, size_t number) {
    std::optional<std::string> role, content, reasoning;
    read_object(json, label, [&](std::string_view key) {
        auto* text = key == "role"        ? &role
                     : key == "content"   ? &content
                     : key == "reasoning" ? &reasoning
                                          : nullptr;
        if (text) *text = terminal_text(json.string());
        return text != nullptr;
    });
    if (!role || !content) fail_file(label, "message {} lacks its role or its content", number);
    return {*role, *content, reasoning};
}

}  // namespace

std::string chat_file_text(std::span<const ChatMessage> messages, std::string_view model) {
    Json list = Json::array();
    for (const ChatMessage& m : messages) {
        Json message = {{"role", m.role}, {"content", m.content}};
        if (m.reasoning) message["reasoning"] = *m.reasoning;
        list.push_back(std::move(message));
    }
    const Json file = {{"format", kFormat}, {"version", 1}, {"model", model}, {"messages", list}};
    return file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<ChatMessage> parse_chat_file(std::string_view text, std::string_view label) {
    const std::string where(label);
    JsonReader json(text, where);
    std::string format, version;
    std::vector<ChatMessage> messages;
    if (json.peek() != JsonReader::Kind::object) fail_file(label, "is not a saved chat");
    read_object(json, label, [&](std::string_view key) {
        if (key == "format")
            format = json.string();
        else if (key == "version")
            version = json.number();
        else if (key == "model")
            json.string();
        else if (key == "messages")
            json.array([&] { messages.push_back(read_message(json, label, messages.size() + 1)); });
        else
            return false;
        return true;
    });
    json.end();
    if (format != kFormat) fail_file(label, "is not a saved chat");
    if (version != kVersion)
        fail_file(label, "has version {} of the format; version {} is known", shown(version),
                  kVersion);
    if (messages.empty()) fail_file(label, "holds no messages");
    return messages;
}

}  // namespace hf
