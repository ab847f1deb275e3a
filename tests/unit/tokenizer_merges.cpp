// Encoding against the definition, written down as plainly as possible.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <map>
#include <memory>
#include <random>

#include "libcore/text/unicode.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

namespace {

using Pieces = std::vector<std::string>;

/// A regular expression of a tokenizer.json.
class Regex {
  public:
    explicit Regex(const std::string& pattern) {
        int error = 0;
        size_t place = 0;
        code_.reset(pcre2_compile(PCRE2_SPTR(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                  &error, &place, nullptr));
        REQUIRE(code_ != nullptr);
        match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    }

    /// The matches, and what lies between them.
    Pieces split(const std::string& text) const {
        Pieces pieces;
        size_t done = 0;
        while (done < text.size()) {
            const auto subject = PCRE2_SPTR(text.data());
            if (pcre2_match(code_.get(), subject, text.size(), done, 0, match_.get(), nullptr) < 0)
                break;
            const size_t* range = pcre2_get_ovector_pointer(match_.get());
            if (range[0] > done) pieces.push_back(text.substr(done, range[0] - done));
            pieces.push_back(text.substr(range[0], range[1] - range[0]));
            done = range[1];
        }
        if (done < text.size()) pieces.push_back(text.substr(done));
        return pieces;
    }

  private:
    struct Free {
        void operator()(pcre2_code* p) const { pcre2_code_free(p); }
        void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
    };
    std::unique_ptr<pcre2_code, Free> code_;
    std::unique_ptr<pcre2_match_data, Free> match_;
};

/// One step after another over whole strings: no table, no cache, no heap.
class PlainTokenizer {
  public:
    explicit PlainTokenizer(const Json& file) {
        const Json& model = file.at("model");
        ids_ = model.at("vocab").get<std::map<std::string, int32_t>>();
        ignores_merges_ = model.value("ignore_merges", false);
        is_spaced_ = model.value("byte_fallback", false);
        has_nfc_ = !is_spaced_ && file.at("normalizer").is_object();
        for (const Json& merge : model.at("merges")) add_merge(merge);
        for (const Json& token : file.at("added_tokens"))
            added_[token.at("content")] = token.at("id");
        if (file.at("pre_tokenizer").is_object()) add_regexes(file.at("pre_tokenizer"));
        char32_t next = 0x100;
        for (int byte = 0; byte < 256; ++byte) {
            const bool prints = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
            append_utf8(spelling_[byte], prints ? char32_t(byte) : next++);
        }
    }

    Ids encode(const std::string& text) const {
        Ids ids;
        std::string plain;
        for (size_t at = 0; at < text.size();) {
            const auto token = added_at(text, at);
            if (token == added_.end()) {
                plain += text[at++];
                continue;
            }
            encode_plain(std::exchange(plain, ""), ids);
            ids.push_back(token->second);
            at += token->first.size();
        }
        encode_plain(plain, ids);
        return ids;
    }

    const std::map<std::string, int32_t>& added() const { return added_; }

  private:
    void add_merge(const Json& merge) {
        std::pair<std::string, std::string> parts;
        if (merge.is_array()) {
            parts = merge.get<std::pair<std::string, std::string>>();
        } else {
            const std::string text = merge;
            parts = {text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)};
        }
        ranks_.emplace(parts, ranks_.size());
    }

    void add_regexes(const Json& pre) {
        const std::string type = pre.at("type");
        if (type == "Sequence") {
            for (const Json& step : pre.at("pretokenizers")) add_regexes(step);
        } else if (type == "Split") {
            regexes_.emplace_back(pre.at("pattern").at("Regex").get<std::string>());
        } else if (type == "Digits") {
            regexes_.emplace_back(R"(\p{N})");
        } else if (pre.at("use_regex")) {
            regexes_.emplace_back(
                R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
        }
    }

    /// The longest added token that begins at text[at].
    std::map<std::string, int32_t>::const_iterator added_at(const std::string& text,
                                                            size_t at) const {
        auto best = added_.end();
        for (auto token = added_.begin(); token != added_.end(); ++token)
            if (text.compare(at, token->first.size(), token->first) == 0 &&
                (best == added_.end() || token->first.size() > best->first.size()))
                best = token;
        return best;
    }

    void encode_plain(const std::string& text, Ids& ids) const {
        if (text.empty()) return;
        Pieces pieces = {has_nfc_ ? nfc(text) : is_spaced_ ? " " + text : text};
        for (const Regex& regex : regexes_) {
            Pieces finer;
            for (const std::string& piece : pieces)
                for (const std::string& part : regex.split(piece)) finer.push_back(part);
            pieces = finer;
        }
        for (const std::string& piece : pieces) encode_piece(piece, ids);
    }

    void encode_piece(const std::string& piece, Ids& ids) const {
        Pieces parts = characters(piece);
        std::string whole;
        for (const std::string& part : parts) whole += part;
        if (ignores_merges_ && ids_.contains(whole)) parts = {whole};
        while (merge_best(parts)) {
        }
        for (const std::string& part : parts) add_id(part, ids);
    }

    /// Byte-level: each byte as its printable character, if the vocabulary has it.
    Pieces characters(const std::string& piece) const {
        Pieces parts;
        for (size_t at = 0; at < piece.size();) {
            const size_t bytes = is_spaced_ ? code_point_at(piece, at).bytes : 1;
            const std::string part = piece.substr(at, bytes);
            at += bytes;
            if (is_spaced_)
                parts.push_back(part == " " ? "\u2581" : part);
            else if (ids_.contains(spelling_[uint8_t(part[0])]))
                parts.push_back(spelling_[uint8_t(part[0])]);
        }
        return parts;
    }

    /// Merges the first pair of the best rank; false when there is none.
    bool merge_best(Pieces& parts) const {
        size_t best_rank = ranks_.size(), best = 0;
        for (size_t i = 0; i + 1 < parts.size(); ++i) {
            const auto found = ranks_.find({parts[i], parts[i + 1]});
            if (found == ranks_.end() || found->second >= best_rank) continue;
            best_rank = found->second;
            best = i;
        }
        if (best_rank == ranks_.size()) return false;
        parts[best] += parts[best + 1];
        parts.erase(parts.begin() + ptrdiff_t(best) + 1);
        return true;
    }

    void add_id(const std::string& part, Ids& ids) const {
        if (const auto found = ids_.find(part); found != ids_.end()) {
            ids.push_back(found->second);
            return;
        }
        for (const char c : part) {
            char name[7];
            std::snprintf(name, sizeof name, "<0x%02X>", unsigned(uint8_t(c)));
            ids.push_back(ids_.at(name));
        }
    }

    std::map<std::string, int32_t> ids_, added_;
    std::map<std::pair<std::string, std::string>, size_t> ranks_;
    std::vector<Regex> regexes_;
    std::string spelling_[256];
    bool ignores_merges_, is_spaced_, has_nfc_;
};

// clang-format off
/// Words, runs of one character, numbers, scripts with marks, symbols, kinds of white space.
const Pieces kParts = {
    "a", "e", "th", "ing", "str", "T", "Q", " ", " ", "  ", "\n", "\r\n", "\t", "1", "2024",
    "'s", "'LL", ".", "...", "==", "-", "(", ")", "_", "\"", "é", "e\u0301", "ß", "ж", "Привет",
    "中", "文字", "ひ", "한", "\u1100\u1161", "\u11A8", "क", "\u093F", "\u0902", "\U0001F600",
    "\U0001F468\u200D", "\u00A0", "\u2028", "\u3000", "½", "٣", "\u0300", "\u0323", "\u212B",
    "\uFFFD", "'t", "'S", "'\u017F", "½⅔", "0", "77", "Ⅷ", "\u2581", "<", ">", "|", "\u0085",
    "\v", "ſ", "İ", "\u200B", std::string(1, '\0'),
};
// clang-format on

std::string random_text(std::mt19937& random, const PlainTokenizer& plain) {
    std::string text;
    for (size_t parts = random() % 30; parts-- > 0;) {
        const std::string& part = kParts[random() % kParts.size()];
        for (size_t times = random() % 8 == 0 ? random() % 20 : 1; times-- > 0;) text += part;
        if (random() % 40 == 0)
            text +=
                std::next(plain.added().begin(), ptrdiff_t(random() % plain.added().size()))->first;
    }
    return text;
}

/// 10000 of them, the same each time.
void check_random_texts(const Json& file) {
    const Tokenizer tokenizer = Tokenizer::from_json("tokenizer.json", file.dump());
    const PlainTokenizer plain(file);
    std::mt19937 random(/*seed=*/20);
    for (int i = 0; i < 10000; ++i) {
        const std::string text = random_text(random, plain);
        const Ids want = plain.encode(text);
        if (tokenizer.encode(text) == want) continue;
        CAPTURE(i);
        CAPTURE(text);
        CHECK(tokenizer.encode(text) == want);
    }
}

}  // namespace

TEST_CASE("tokenizer: 10000 random texts give the ids of the plain definition") {
    for (const std::string& folder : tokenizer_folders()) {
        CAPTURE(folder);
        check_random_texts(read_json(folder + "/tokenizer.json"));
    }
}

TEST_CASE("tokenizer: and so they do with the pre-tokenizers of GPT-2 and SmolLM2") {
    const Json gpt2 = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
    const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
    const Json both = {{"type", "Sequence"}, {"pretokenizers", Json::array({digits, gpt2})}};
    Json file = read_json(data_path("tokenizers/small_qwen2/tokenizer.json"));
    for (const Json& pre_tokenizer : {gpt2, both}) {
        file["pre_tokenizer"] = pre_tokenizer;
        check_random_texts(file);
    }
}

TEST_CASE(
    "tokenizer: a word of a million letters takes the time of its length, not of its square") {
    for (const std::string& name : kSmallTokenizers) {
        const Tokenizer t = load_tokenizer(data_path("tokenizers/" + name));
        std::mt19937 random(/*seed=*/21);
        std::string word;
        while (word.size() < 1000000) word += char('a' + random() % 26);
        CHECK(t.decode(t.encode(word), false) == word);  // the time limit of the test is the check
    }
}
