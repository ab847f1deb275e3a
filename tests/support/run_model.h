// Loading a model for a test, and running ids through it.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpuexec/isa.h"
#include "libcore/device/host_device.h"
#include "libcore/exec/session.h"

namespace hf::test {

/// How a model is loaded; the defaults are what the golden runs pin.
struct Setup {
    unsigned threads = 2;
    std::string kv = "f32";
    uint32_t max_seq = 512;
    uint32_t max_logits = Session::kMaxTokens;
    LoadOptions load = {};
    cpu::Level level = cpu::detect_level();
    cpu::Activations activations = cpu::Activations::f32;
    std::function<void(ModelPlan&)> place = [](ModelPlan&) {};  // default: all on the device
    LaneOptions lanes = {};
    uint32_t prompt_from = SessionOptions::kPromptFrom;
    std::function<SegmentPlan(std::span<const Step>, TokenClass)> planner = plan_segments;

    SessionOptions session() const {
        return {max_seq, kv_type_by_name(kv), max_logits, prompt_from, lanes, planner};
    }
    Model model(const std::string& folder, Device& device) const {
        LoadOptions options = load;
        options.activations = activations;
        ModelPlan plan =
            plan_model(std::make_shared<ModelFile>(open_model_file(folder, {})), options);
        place(plan);
        return load_model(std::move(plan), device, {});
    }
};

/// A device, a model and a session on it.
struct Loaded {
    explicit Loaded(const std::string& folder, const Setup& setup = {})
        : device({setup.threads, setup.level, setup.activations}),
          model(setup.model(folder, device)),
          session(model, device, setup.session()) {}

    HostDevice device;
    Model model;
    Session session;
};

/// Where a prompt is cut: all at once (up to 64), on the grid of 64, or every `piece` tokens.
inline std::vector<uint32_t> cut_every(size_t tokens, uint32_t piece) {
    std::vector<uint32_t> sizes;
    for (size_t at = 0; at < tokens; at += piece)
        sizes.push_back(uint32_t(std::min<size_t>(piece, tokens - at)));
    return sizes;
}

/// Forwards and commits ids in passes of the given sizes; returns the logits of every token.
inline std::vector<float> run_ids(Session& session, std::span<const int32_t> ids,
                                  std::span<const uint32_t> sizes) {
    std::vector<float> all;
    for (const uint32_t size : sizes) {
        std::vector<uint32_t> rows(size);
        for (uint32_t i = 0; i < size; ++i) rows[i] = i;
        const auto logits = session.forward(ids.first(size), rows);
        all.insert(all.end(), logits.begin(), logits.end());
        session.commit(size);
        ids = ids.subspan(size);
    }
    return all;
}

/// The index of the largest value; the first of equals.
inline int32_t argmax(std::span<const float> values) {
    return int32_t(std::max_element(values.begin(), values.end()) - values.begin());
}

/// Greedy continuation: `first` was chosen from the prompt's last logits.
inline std::vector<int32_t> greedy(Session& session, int32_t first, size_t count) {
    std::vector<int32_t> ids = {first};
    const uint32_t row = 0;
    while (ids.size() < count) {
        ids.push_back(argmax(session.forward({&ids.back(), 1}, {&row, 1})));
        session.commit(1);
    }
    return ids;
}

/// The largest |a - b|; infinity when a value is not finite or the sizes differ.
inline float worst_difference(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) return std::numeric_limits<float>::infinity();
    float worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const float d = std::abs(a[i] - b[i]);
        if (!(d <= worst)) worst = d;  // a NaN stays
    }
    return std::isfinite(worst) ? worst : std::numeric_limits<float>::infinity();
}

}  // namespace hf::test
