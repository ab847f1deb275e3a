#include "libcore/file/hfq_sidecars.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "libcore/file/message.h"
#include "libcore/file/tensor_checks.h"

namespace hf {
namespace {

constexpr std::string_view kWeight = ".weight";

struct Sort {
    std::string_view suffix;  // instead of ".weight"
    uint8_t format;
    std::string_view format_name;
    bool (*takes)(const Codec&);
    bool (*needs)(const Codec&);
    uint64_t (*count)(const TensorView& weight);
    bool (*is_good)(float);
    std::string_view good;
};

bool takes_scales(const Codec& codec) {
    return codec.takes_awq;
}
bool has_levels(const Codec& codec) {
    return codec.sidecar == Sidecar::levels;
}
bool never(const Codec&) {
    return false;
}
uint64_t columns(const TensorView& weight) {
    return weight.shape.cols;
}
uint64_t sixteen(const TensorView&) {
    return kLloydLevels;
}
bool is_positive(float value) {
    return std::isfinite(value) && value > 0;
}
bool is_finite(float value) {
    return std::isfinite(value);
}

constexpr Sort kSorts[] = {
    {".awq_scale.weight", 1, "F16", takes_scales, never, columns, is_positive,
     "finite and above 0"},
    {".lloyd_levels.weight", 2, "F32", has_levels, has_levels, sixteen, is_finite, "finite"},
};

class Checker {
  public:
    Checker(const std::string& path, std::span<const HfqTensor> tensors)
        : path_(path), tensors_(tensors) {}

    void check(const HfqTensor& tensor) const {
        for (const Sort& sort : kSorts)
            if (tensor.view.name.ends_with(sort.suffix)) return check_sidecar(tensor, sort);
        check_weight(tensor.view);
    }

  private:
    const HfqTensor* find(const std::string& name) const {
        const auto by_name = [](const HfqTensor& t) -> const std::string& { return t.view.name; };
        const auto found = std::ranges::lower_bound(tensors_, name, {}, by_name);
        return found != tensors_.end() && found->view.name == name ? &*found : nullptr;
    }

    static std::string stem_of(const std::string& name, std::string_view suffix) {
        return name.substr(0, name.size() - (name.ends_with(suffix) ? suffix.size() : 0));
    }

    template <class... Args>
    [[noreturn]] void fail(const TensorView& t, fmt::format_string<Args...> what,
                           Args&&... args) const {
        fail_file(path_, "tensor {} (payload at byte {}) {}", shown(t.name), t.offset,
                  fmt::format(what, std::forward<Args>(args)...));
    }

    void check_sidecar(const HfqTensor& sidecar, const Sort& sort) const {
        const TensorView& t = sidecar.view;
        const std::string stem = stem_of(t.name, sort.suffix);
        const HfqTensor* weight = find(stem + std::string(kWeight));
        if (!weight) weight = find(stem);
        if (!weight) fail(t, "belongs to {}{}, which is not there; damaged", shown(stem), kWeight);
        const TensorView& w = weight->view;
        if (!w.codec || !sort.takes(*w.codec))
            fail(t, "belongs to {}, whose format {} takes none; quantise the model again",
                 shown(w.name), w.dtype);
        if (sidecar.format != sort.format)
            fail(t, "has format {} ({}); it must be {} ({}); damaged", sidecar.format, t.dtype,
                 sort.format, sort.format_name);
        const uint64_t count = sort.count(w);
        if (t.n_dims != 1 || t.shape.cols != count)
            fail(t, "has shape {}; it must be [{}], for {}; damaged",
                 dims_text(std::span(t.dims).first(t.n_dims)), count, shown(w.name));
        check_values(t, sort);
    }

    void check_values(const TensorView& t, const Sort& sort) const {
        std::vector<float> values(t.shape.cols);
        t.codec->cpu.decode_row(view_of(*t.codec, t.bytes.data(), t.shape), 0, values.data());
        const auto bad = std::ranges::find_if_not(values, sort.is_good);
        if (bad != values.end())
            fail(t, "has {} as value {}; all must be {}; damaged", *bad, bad - values.begin(),
                 sort.good);
    }

    void check_weight(const TensorView& t) const {
        for (const Sort& sort : kSorts)
            if (t.codec && sort.needs(*t.codec) &&
                !find(stem_of(t.name, kWeight) + std::string(sort.suffix)))
                fail(t, "has format {}, which needs {}{}, and that is not there; damaged", t.dtype,
                     shown(stem_of(t.name, kWeight)), sort.suffix);
    }

    const std::string& path_;
    std::span<const HfqTensor> tensors_;
};

}  // namespace

void check_hfq_sidecars(const std::string& path, std::span<const HfqTensor> tensors) {
    const Checker checker(path, tensors);
    for (const HfqTensor& tensor : tensors) checker.check(tensor);
}

}  // namespace hf
