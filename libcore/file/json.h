// JsonReader: JSON read from front to back, in place. Builds no tree, so a header of 100 MB costs
// no more than the strings that are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hf {

/// A position in a JSON text; each call consumes what it is named after. Strict: RFC 8259, UTF-8,
/// no unpaired surrogates, at most 64 levels deep.
/// Errors  hf::Error "<where>: unusable JSON at byte <n>: ..."; a value of another kind than the
///         call asks for is one too
class JsonReader {
  public:
    enum class Kind { object, array, string, number, boolean, null };

    /// Both must outlive the reader. `where` begins the error messages: a file, or a part of one.
    JsonReader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

    /// What the next value is, by its first byte. Consumes white space only.
    Kind peek();

    /// Calls member(key) for each member, in the order of the text, keys that come twice included.
    /// member must consume one value.
    void object(const std::function<void(const std::string& key)>& member);

    /// Calls element() for each element; it must consume one value.
    void array(const std::function<void()>& element);

    std::string string();
    std::string_view number();         // as it is spelled
    void skip();                       // a value of any kind
    std::string_view raw();            // a value of any kind, as it is spelled
    void end();                        // only white space may be left
    size_t at() const { return at_; }  // bytes consumed so far

  private:
    [[noreturn]] void fail(std::string_view what) const;
    char next_visible();
    bool take_if(char c);
    void take(char c, std::string_view what);
    void take_word(std::string_view word);
    void take_digits();
    bool open_or_continue(bool first, char close);
    size_t string_bytes() const;
    void escape_into(std::string& out);
    void utf8_into(std::string& out);
    uint32_t hex4();

    std::string_view text_, where_;
    size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace hf
