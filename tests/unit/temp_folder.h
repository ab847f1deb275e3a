// What the tests of file readers share: a folder that goes away, files to put in it or in memory,
// and the sentence that a reader refuses them with.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "libcore/base/error.h"

namespace hf::test {

/// An empty folder, removed with everything in it at the end of its scope.
class TempFolder {
  public:
    TempFolder() {
        std::string path = (std::filesystem::temp_directory_path() / "hipfire-XXXXXX").string();
        if (!mkdtemp(path.data())) throw std::runtime_error("cannot make " + path);
        path_ = path;
    }
    ~TempFolder() { std::filesystem::remove_all(path_); }
    TempFolder(const TempFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    void write(const std::string& name, const std::string& bytes) const {
        std::ofstream(*this / name, std::ios::binary) << bytes;
    }

  private:
    std::string path_;
};

/// A file in memory that ends exactly where its bytes end, so that sanitizers see over-reads.
struct ExactBytes {
    explicit ExactBytes(const std::string& file) : size(file.size()), bytes(new std::byte[size]) {
        std::memcpy(bytes.get(), file.data(), size);
    }
    std::span<const std::byte> first(size_t n) const { return {bytes.get(), n}; }

    size_t size;
    std::unique_ptr<std::byte[]> bytes;
};

/// A safetensors file: the length of the header, the header, and so many bytes of data.
inline std::string safetensors(const std::string& header, size_t data_bytes) {
    std::string file(8, '\0');
    const uint64_t length = header.size();
    std::memcpy(file.data(), &length, 8);
    file += header;
    for (size_t i = 0; i < data_bytes; ++i) file += char(i * 37 + 11);
    return file;
}

/// Seconds that this process computes for in `action`.
template <class Action>
double cpu_seconds(Action&& action) {
    const std::clock_t start = std::clock();
    action();
    return double(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Debug builds and sanitizers: long loops are thinned.
#if defined(__has_feature)
#define HF_TEST_CLANG_SANITIZES __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#else
#define HF_TEST_CLANG_SANITIZES 0
#endif
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    HF_TEST_CLANG_SANITIZES
inline constexpr bool kIsSlowBuild = true;
#else
inline constexpr bool kIsSlowBuild = false;
#endif
/// What the largest header of a usual model may take.
inline constexpr double kHeaderSeconds = kIsSlowBuild ? 6 : 0.3;

/// The sentence of the hf::Error that `action` throws; empty when it throws none.
template <class Action>
std::string error_of(Action&& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

/// True when `sentence` has all words that `words` separates by " + ".
inline bool has_words(const std::string& sentence, std::string words) {
    while (!words.empty()) {
        const size_t plus = words.find(" + ");
        if (sentence.find(words.substr(0, plus)) == sentence.npos) return false;
        words = plus == words.npos ? "" : words.substr(plus + 3);
    }
    return !sentence.empty();
}

}  // namespace hf::test
