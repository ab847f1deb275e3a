#include "libcore/run/generate.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/run/stop_strings.h"
#include "libcore/text/stream_decoder.h"

namespace hf {
namespace {

/// Adds the time and the bytes between its birth and its death to a phase.
class Measure {
  public:
    Measure(Phase& phase, const Session& session, uint32_t tokens)
        : phase_(phase), session_(session), bytes_(session.bytes_moved()) {
        phase_.tokens += tokens;
    }
    ~Measure() {
        phase_.seconds += std::chrono::duration<double>(Clock::now() - start_).count();
        phase_.bytes += session_.bytes_moved() - bytes_;
    }

  private:
    using Clock = std::chrono::steady_clock;
    Phase& phase_;
    const Session& session_;
    uint64_t bytes_;
    Clock::time_point start_ = Clock::now();
};

std::optional<Finish> why_end(const Generation& g, const Session& session,
                              const GenerateOptions& options, bool is_interrupted) {
    const auto& stop = options.stop_ids;
    if (std::find(stop.begin(), stop.end(), g.ids.back()) != stop.end()) return Finish::stop;
    if (g.ids.size() >= options.max_tokens) return Finish::length;
    if (session.room() == 0) return Finish::context;
    if (is_interrupted) return Finish::interrupted;
    return std::nullopt;
}

/// The readable side of an answer: whole characters, and nothing of a stop string.
class AnswerText {
  public:
    AnswerText(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings)
        : decoder_(tokenizer, /*skip_special=*/true), stop_strings_(stop_strings) {}

    /// What became readable by a token. At a stop string `end` becomes that reason.
    std::string add(int32_t id, std::optional<Finish>& end) {
        std::string text = end == Finish::stop ? "" : decoder_.push(id);
        if (end) text += decoder_.flush();
        text = stop_strings_.push(text);
        if (stop_strings_.found()) end = Finish::stop_string;
        if (end) text += stop_strings_.flush();
        return text;
    }

  private:
    StreamDecoder decoder_;
    StopStrings stop_strings_;
};

}  // namespace

std::string_view finish_name(Finish finish) {
    constexpr std::string_view kNames[] = {"stop", "length", "context", "interrupted",
                                           "stop_string"};
    return kNames[size_t(finish)];
}

Generation generate(Session& session, std::span<const int32_t> prompt, Sampler& sampler,
                    const Tokenizer* tokenizer, const GenerateOptions& options,
                    const std::function<void(const GeneratedToken&)>& on_token,
                    const Progress& on_progress, const std::atomic<bool>& interrupt) {
    check_prompt(prompt, session);
    std::optional<AnswerText> answer;
    if (tokenizer) answer.emplace(*tokenizer, options.stop_strings);
    HF_ASSERT(tokenizer || options.stop_strings.empty());
    Generation g;
    {
        const uint32_t before = session.length();
        Measure measure(g.prompt, session, 0);
        auto logits = feed_prompt(session, prompt, on_progress, interrupt);
        g.prompt.tokens = session.length() - before;
        if (!logits) return g;
        g.last_logits = std::move(*logits);
    }
    sampler.see_prompt(prompt);

    while (true) {
        int32_t id;
        {
            Measure measure(g.decode, session, 0);
            id = sampler.pick(g.last_logits);
        }
        g.ids.push_back(id);
        auto end = why_end(g, session, options, interrupt);
        std::string text;
        if (answer) text = answer->add(id, end);
        if (on_token) on_token({id, text, g.last_logits});
        if (end) {
            g.finish = *end;
            return g;
        }
        Measure measure(g.decode, session, 1);
        constexpr uint32_t kFirstRow[] = {0};
        const auto logits = session.forward({&id, 1}, kFirstRow);
        session.commit(1);
        g.last_logits.assign(logits.begin(), logits.end());
    }
}

}  // namespace hf
