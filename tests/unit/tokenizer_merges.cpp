// Merging against the definition, written down as plainly as possible.
#include <map>
#include <random>

#include "libcore/text/unicode.h"
#include "tests/unit/tokenizer_files.h"

using namespace hf;
using namespace hf::test;

namespace {

/// Byte-pair encoding by the book: strings, a map, one merge after another over the whole piece.
class PlainBpe {
  public:
    explicit PlainBpe(const Json& file) {
        ids_ = file.at("model").at("vocab").get<std::map<std::string, int32_t>>();
        for (const Json& merge : file.at("model").at("merges"))
            ranks_.emplace(std::pair<std::string, std::string>(merge.at(0), merge.at(1)),
                           ranks_.size());
        char32_t next = 0x100;
        for (int byte = 0; byte < 256; ++byte) {
            const bool prints = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
            append_utf8(spelling_[byte], prints ? char32_t(byte) : next++);
        }
    }

    Ids encode(std::string_view piece) const {
        std::vector<std::string> parts;
        for (const char c : piece) parts.push_back(spelling_[uint8_t(c)]);
        for (;;) {
            size_t best_rank = ranks_.size(), best = 0;
            for (size_t i = 0; i + 1 < parts.size(); ++i) {
                const auto found = ranks_.find({parts[i], parts[i + 1]});
                if (found == ranks_.end() || found->second >= best_rank) continue;
                best_rank = found->second;
                best = i;
            }
            if (best_rank == ranks_.size()) break;
            parts[best] += parts[best + 1];
            parts.erase(parts.begin() + ptrdiff_t(best) + 1);
        }
        Ids ids;
        for (const std::string& part : parts) ids.push_back(ids_.at(part));
        return ids;
    }

  private:
    std::map<std::string, int32_t> ids_;
    std::map<std::pair<std::string, std::string>, size_t> ranks_;
    std::string spelling_[256];
};

/// Words, runs of one character, scripts with marks, symbols: no '<', so no added token.
std::string random_text(std::mt19937& random) {
    static const std::vector<std::string> kParts = {"a",
                                                    "e",
                                                    "th",
                                                    "ing",
                                                    "str",
                                                    "T",
                                                    "Q",
                                                    " ",
                                                    " ",
                                                    "  ",
                                                    "\n",
                                                    "\r\n",
                                                    "\t",
                                                    "1",
                                                    "2024",
                                                    "'s",
                                                    "'LL",
                                                    ".",
                                                    "...",
                                                    "==",
                                                    "-",
                                                    "(",
                                                    ")",
                                                    "_",
                                                    "\"",
                                                    "é",
                                                    "e\u0301",
                                                    "ß",
                                                    "ж",
                                                    "Привет",
                                                    "中",
                                                    "文字",
                                                    "ひ",
                                                    "한",
                                                    "\u1100\u1161",
                                                    "\u11A8",
                                                    "क",
                                                    "\u093F",
                                                    "\u0902",
                                                    "\U0001F600",
                                                    "\U0001F468\u200D",
                                                    "\u00A0",
                                                    "\u2028",
                                                    "\u3000",
                                                    "½",
                                                    "٣",
                                                    "\u0300",
                                                    "\u0323",
                                                    "\u212B",
                                                    "\uFFFD",
                                                    std::string(1, '\0')};
    std::string text;
    for (size_t parts = random() % 30; parts-- > 0;) {
        const std::string& part = kParts[random() % kParts.size()];
        for (size_t times = random() % 8 == 0 ? random() % 20 : 1; times-- > 0;) text += part;
    }
    return text;
}

}  // namespace

TEST_CASE("tokenizer: 2000 random texts merge as plain byte-pair encoding does") {
    for (const std::string& folder : tokenizer_folders()) {
        const Json file = read_json(folder + "/tokenizer.json");
        const PlainBpe plain(file);
        const Tokenizer tokenizer = load_tokenizer(folder);
        const SplitPattern* pattern = find_split_pattern(file.at("pre_tokenizer")
                                                             .at("pretokenizers")
                                                             .at(0)
                                                             .at("pattern")
                                                             .at("Regex")
                                                             .get<std::string>());
        REQUIRE(pattern != nullptr);
        std::mt19937 random(/*seed=*/20);
        for (int i = 0; i < 2000; ++i) {
            const std::string text = random_text(random);
            CAPTURE(i);
            CAPTURE(text);
            const std::string normal = nfc(text);
            Ids want;
            for (size_t at = 0, end; at < normal.size(); at = end) {
                end = pattern->piece_end(normal, at);
                const Ids ids = plain.encode(std::string_view(normal).substr(at, end - at));
                want.insert(want.end(), ids.begin(), ids.end());
            }
            CHECK(tokenizer.encode(text) == want);
            CHECK(tokenizer.decode(want, false) == normal);
        }
    }
}

TEST_CASE(
    "tokenizer: a word of a million letters takes the time of its length, not of its square") {
    const Tokenizer t = load_tokenizer(data_path("tokenizers/small_qwen35"));
    std::mt19937 random(/*seed=*/21);
    std::string word;
    while (word.size() < 1000000) word += char('a' + random() % 26);
    CHECK(t.decode(t.encode(word), false) == word);  // the time limit of the test is the check
}
