// What the configuration tests share: values to try for any row, and sources built from them.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/config/resolve.h"

namespace hf::test {

/// A folder of its own, removed with everything in it.
struct TempFolder {
    std::filesystem::path path;
    TempFolder() {
        std::string name = std::filesystem::temp_directory_path() / "hf_config_XXXXXX";
        if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
        path = name;
    }
    TempFolder(const TempFolder&) = delete;
    ~TempFolder() { std::filesystem::remove_all(path); }

    /// Writes a file, making its folders; returns its path.
    std::string write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((path / name).parent_path());
        std::ofstream(path / name, std::ios::binary) << text;
        return path / name;
    }
};

/// Sources that see no file at all.
inline Sources empty_sources() {
    Sources sources;
    sources.working_folder = "/nonexistent";
    return sources;
}

inline std::string group_of(const Key& key) {
    return std::string(key.path.substr(0, key.path.rfind('.')));
}
inline std::string name_of(const Key& key) {
    return std::string(key.path.substr(key.path.rfind('.') + 1));
}

/// Texts that the key takes.
inline std::vector<std::string> good_texts(const Key& key) {
    std::vector<std::string> texts(key.value.words.begin(), key.value.words.end());
    if (key.value.kind == Kind::text || key.value.kind == Kind::path)
        texts.insert(texts.end(), {"alpha", "beta gamma", "h\xC3\xA9, \"quoted\""});
    if (!key.value.least.empty()) texts.insert(texts.end(), {key.value.least, key.value.most, "1"});
    return texts;
}

/// Texts that no key of this kind takes.
inline std::vector<std::string> bad_texts(const Key& key) {
    const std::string nul(1, '\0');
    switch (key.value.kind) {
        case Kind::text:
        case Kind::path:
            return {nul, "a" + nul, "a" + nul + "b"};
        case Kind::word:
            return {"AUTO", " auto", "auto ", "autoauto", "-1", "i8", "int16", nul};
        case Kind::integer:
        case Kind::number:
            break;
    }
    std::vector<std::string> texts = {"x",
                                      "1x",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "1,5",
                                      "0x10",
                                      "-99",
                                      "nan",
                                      "inf",
                                      "1e",
                                      "1e999",
                                      "--1",
                                      "1\n",
                                      nul,
                                      "-inf",
                                      key.value.most + "0",
                                      "999999999999999999999999"};
    if (key.value.kind == Kind::integer) texts.insert(texts.end(), {"1.0", "1e1"});
    return texts;
}

/// The text as a TOML string.
inline std::string toml_quoted(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text)
        if (c == '"' || c == '\\')
            quoted += {'\\', c};
        else if (c < ' ' && c >= 0)
            quoted += fmt::format("\\u{:04x}", int(c));
        else
            quoted += c;
    return quoted + "\"";
}

/// The text as TOML holds a good value of this key: numbers bare, all else quoted.
inline std::string toml_literal(const Key& key, std::string_view text) {
    const bool is_word = std::ranges::find(key.value.words, text) != key.value.words.end();
    return key.value.least.empty() || is_word ? toml_quoted(text) : std::string(text);
}

/// "kv_cache = ..." below its group; `owner` is "" or "models.small.".
inline std::string toml_for(const Key& key, const std::string& literal,
                            const std::string& owner = "") {
    return fmt::format("[{}{}]\n{} = {}\n", owner, group_of(key), name_of(key), literal);
}

/// The sentence of the hf::Error(usage) that `call` throws; "" when it does not.
template <class Call>
std::string usage_error(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.fault() == Fault::usage ? error.what() : "wrong fault";
    }
    return "";
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace hf::test
