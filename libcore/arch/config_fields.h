// ConfigFields: reads numbers out of a config.json, and says which key is wrong when one is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// The language model's keys of a config.json: those of "text_config" if there is one, then those
/// of the whole. Keys may be dotted ("rope_parameters.rope_theta"). A key that is null counts as
/// absent.
class ConfigFields {
  public:
    /// Errors  hf::Error when the text is not a JSON object
    ConfigFields(std::string label, std::string_view json);
    ~ConfigFields();
    ConfigFields(const ConfigFields&) = delete;
    ConfigFields& operator=(const ConfigFields&) = delete;

    /// A whole number in [least, most]. Without a fallback the key must be there.
    /// Errors  hf::Error with file, key, the value and the bounds
    uint32_t uint(std::string_view key, uint32_t least, uint32_t most,
                  std::optional<uint32_t> fallback = std::nullopt) const;
    /// A finite number in [least, most].
    double number(std::string_view key, double least, double most,
                  std::optional<double> fallback = std::nullopt) const;
    std::string text(std::string_view key, std::string_view fallback) const;
    bool boolean(std::string_view key, bool fallback) const;
    /// Strings of a list; absent: nullopt.
    std::optional<std::vector<std::string>> texts(std::string_view key) const;
    /// A whole number or a list of them, each in [0, 2^31); absent: empty.
    std::vector<int32_t> ids(std::string_view key) const;
    bool has(std::string_view key) const;
    /// Errors  hf::Error when the key is there and is no object: what is in it would be overlooked
    void check_object(std::string_view key) const;

    /// hf::Error about a key of this file.
    [[noreturn]] void fail(std::string_view key, std::string_view what) const;

  private:
    struct Document;
    std::string label_;
    std::unique_ptr<Document> document_;
};

}  // namespace hf
