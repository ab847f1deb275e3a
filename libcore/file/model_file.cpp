#include "libcore/file/model_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "libcore/file/folder.h"
#include "libcore/file/gguf.h"
#include "libcore/file/hfq.h"
#include "libcore/file/message.h"

namespace hf {
namespace {

/// What tells containers apart.
struct Start {
    bool is_folder;
    std::string_view bytes;  // of a file: the first 16, or all; of a folder: none
};

struct Container {
    std::string_view what;
    bool (*recognise)(const Start&);
    ModelFile (*open)(const std::string& path, const Log& log);  // null: it is no model by itself
    std::string_view advice;                                     //   and this says what is
};

bool is_folder(const Start& start) {
    return start.is_folder;
}
bool is_gguf(const Start& start) {
    return start.bytes.starts_with("GGUF");
}
bool is_hfq(const Start& start) {
    return start.bytes.starts_with("HFQM") || start.bytes.starts_with("HFQ!");
}
bool is_safetensors(const Start& start) {
    return start.bytes.size() > 8 && start.bytes[8] == '{';  // behind the length of the header
}

constexpr std::string_view kAll =
    "models are Hugging Face folders with config.json and model.safetensors, GGUF files, and HFQ "
    "files";

constexpr Container kContainers[] = {
    {"a Hugging Face folder", is_folder, open_folder, ""},
    {"a GGUF file", is_gguf, open_gguf, ""},
    {"an HFQ file", is_hfq, open_hfq, ""},
    {"a safetensors file", is_safetensors, nullptr, "give the folder that holds it"},
};

std::string first_bytes(const std::string& path) {
    const MappedFile file(path);
    const auto bytes = file.bytes().first(std::min<size_t>(file.bytes().size(), 16));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

const TensorView* ModelFile::find(std::string_view name) const {
    const auto found = std::ranges::lower_bound(tensors, name, {}, &TensorView::name);
    return found != tensors.end() && found->name == name ? &*found : nullptr;
}

bool looks_like_model(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
        return std::filesystem::exists(std::filesystem::path(path) / "config.json", ignored);
    if (!std::filesystem::is_regular_file(path, ignored) || is_later_shard(path)) return false;
    char start[16];
    std::ifstream file(path, std::ios::binary);
    file.read(start, sizeof start);
    const std::string_view bytes(start, size_t(file.gcount()));
    return std::ranges::any_of(kContainers, [&](const Container& c) {
        return c.open && c.recognise({false, bytes});
    });
}

ModelFile open_model_file(const std::string& path, const Log& log) {
    std::error_code ignored;  // a path that leads nowhere is first_bytes' to report
    const bool folder = std::filesystem::is_directory(path, ignored);
    const std::string bytes = folder ? "" : first_bytes(path);
    for (const Container& container : kContainers) {
        if (!container.recognise({folder, bytes})) continue;
        if (container.open) return container.open(path, log);
        fail_file(path, "is {}; {}", container.what, container.advice);
    }
    fail_file(path, "starts with {} and is no model; {}", shown(bytes), kAll);
}

}  // namespace hf
