// The table of keys. A row is all there is to a key: the TOML reader, the variables, the flags,
// --set, --explain-config, and the tests of the example file and of docs/configuration.md loop
// over these rows.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/config.h"

namespace hf {

/// path: text that, read from a file and holding a '/', starts at the file's folder.
/// word: one of a few. In TOML a word may be a boolean; integer and number are no strings. Where
/// true and false are words, 1 and 0 are taken for them.
enum class Kind { text, path, integer, number, word };

/// What a key takes, and the field it goes to.
struct Value {
    Kind kind;
    std::vector<std::string_view> words;  // Kind::word: all; otherwise those beside the rest
    std::string least, most;              // inclusive bounds of integer and number
    /// Writes the field. False, with nothing written: the text is not a value of this key.
    /// Numbers are read the same way in every locale.
    std::function<bool(Config&, std::string_view text)> set;
};

struct Key {
    std::string_view path;      // in TOML and for --set: "memory.kv_cache"
    std::string_view variable;  // "HIPFIRE_" + path in capitals, dots as underscores, no MEMORY_;
                                // a few keep the name under which scripts know them
    std::string_view flag;      // as CLI11 takes it: "-m,--model"; empty: --set only
    std::string_view preset;    // the built-in value, as text that `value` takes
    Value value;
    std::string_view meaning;  // one line for --help and the documents
};

std::span<const Key> config_keys();
/// By its path or by another name of it; null: there is no such key.
const Key* find_key(std::string_view path);

/// Another name that a key goes by, in files and as a variable.
struct KeyAlias {
    std::string_view path, variable, of;
};
std::span<const KeyAlias> key_aliases();

/// What can be given as a flag alone: a key that takes true and false and nothing else.
bool is_switch(const Key& key);

/// "f16, f32 or q8", "an integer from 1 to 4096, or auto".
std::string accepted(const Value& value);

/// One source's word about one key. The text was checked and is not empty.
struct Setting {
    const Key* key;
    std::string text;
    std::string source;  // "flag --kv", "variable HIPFIRE_KV_CACHE", "hipfire.toml:7"
};

/// Checks a text from outside. Throws hf::Error(usage) naming source, text, key and what it takes.
Setting checked_setting(const Key& key, std::string_view text, std::string source);

/// The error that checked_setting throws, for what is not even text: `found` is "an array".
[[noreturn]] void refuse_value(const Key& key, std::string_view found, std::string_view source);

/// The key, or the group of keys, that is near to a path or to a name without its group
/// (nearest.h); empty: none is.
std::string_view nearest_key(std::string_view wrong_path);

/// Text from outside as part of one line: control characters escaped, text of more than `longest`
/// bytes cut.
std::string one_line(std::string_view text, size_t longest = 60);

}  // namespace hf
