#include "libcore/run/prompt.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "libcore/base/error.h"

namespace hf {
namespace {

[[noreturn]] void refuse_empty() {
    throw Error("the prompt is empty; write one in quotes, or send it through a pipe",
                Fault::usage);
}

}  // namespace

uint32_t piece_size(uint32_t length, size_t left) {
    const uint32_t to_grid = Session::kMaxTokens - length % Session::kMaxTokens;
    return uint32_t(std::min<size_t>(to_grid, left));
}

uint32_t context_size(std::optional<uint32_t> wanted, uint32_t model_most) {
    return wanted.value_or(std::min(model_most, 8192u));
}

std::string way_to_fit(size_t tokens, const ModelConfig& config) {
    const uint32_t most = config.max_positions;
    return tokens > most ? fmt::format("shorten it, for the model takes {} at most", most)
                         : fmt::format("shorten it, or raise memory.max_seq (--ctx) to {}", tokens);
}

void check_prompt(std::span<const int32_t> ids, const Session& session) {
    check_prompt(ids, session.room(), session.model().config);
}

void check_prompt(std::span<const int32_t> ids, uint32_t room, const ModelConfig& config) {
    if (ids.empty()) refuse_empty();
    if (ids.size() > room)
        throw Error(fmt::format("the prompt has {} tokens, but the context has room for {}; {}",
                                ids.size(), room, way_to_fit(ids.size(), config)),
                    Fault::refused);
    const uint32_t vocab = config.vocab;
    for (int32_t id : ids)
        if (id < 0 || uint32_t(id) >= vocab)
            throw Error(
                fmt::format("the prompt holds token id {}, but the vocabulary has {}", id, vocab),
                Fault::usage);
}

bool is_blank(std::string_view text) {
    return text.find_first_not_of(" \t\r\n") == text.npos;
}

std::optional<std::vector<float>> feed_prompt(Session& session, std::span<const int32_t> ids,
                                              const Progress& progress,
                                              const std::atomic<bool>& interrupt) {
    for (size_t done = 0;;) {
        if (interrupt) return std::nullopt;
        const uint32_t count = piece_size(session.length(), ids.size() - done);
        const bool is_last = done + count == ids.size();
        const uint32_t last_row[] = {count - 1};
        const auto logits =
            session.forward(ids.subspan(done, count), std::span(last_row).first(is_last ? 1 : 0));
        session.commit(count);
        done += count;
        if (progress) progress(done, ids.size());
        if (is_last) return std::vector(logits.begin(), logits.end());
    }
}

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                 const PromptText& prompt) {
    if (is_blank(prompt.text)) refuse_empty();
    std::vector<ChatMessage> messages;
    if (!prompt.system.empty()) messages.push_back({"system", prompt.system, {}});
    messages.push_back({"user", prompt.text, {}});
    return tokenizer.encode(render_chat(chat, messages, {true, prompt.thinking}));
}

std::string answer_beginning(const Tokenizer& tokenizer, const ChatTemplate& chat,
                             std::optional<bool> thinking) {
    if (!opens_thinking(chat, thinking)) return {};
    const std::optional<int32_t> think = tokenizer.id_of("<think>");
    return think && !tokenizer.is_special(*think) ? "<think>\n" : "";  // special ones print nothing
}

std::vector<int32_t> encode_raw(const Tokenizer& tokenizer, std::string_view text) {
    if (text.empty()) refuse_empty();
    return tokenizer.encode(text, {.parse_special = true, .add_special = true});
}

std::vector<int32_t> parse_ids(std::string_view text) {
    const auto skip_blank = [&] {
        text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    };
    std::vector<int32_t> ids;
    skip_blank();
    for (bool wants_one = !text.empty(); wants_one;) {
        const std::string_view word = text.substr(0, text.find_first_of(", \t\r\n"));
        int32_t id = -1;
        const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), id);
        if (fault != std::errc() || end != word.data() + word.size() || id < 0)
            throw Error(fmt::format("'{}' is not a token id: ids are numbers from 0, as in 1,2,3",
                                    word.substr(0, 40)),
                        Fault::usage);
        ids.push_back(id);
        text.remove_prefix(word.size());
        skip_blank();
        if (text.starts_with(',')) text.remove_prefix(1);
        skip_blank();
        wants_one = !text.empty();
    }
    return ids;
}

}  // namespace hf
