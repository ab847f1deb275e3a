#include "libcore/quantize/awq.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cpuexec/float16.h"
#include "libcore/base/error.h"
#include "libcore/device/host_device.h"
#include "libcore/exec/session.h"

namespace hf {
namespace {

constexpr uint32_t kWindow = 2048;

/// The host device, stopping in front of each product of a layer to look at its input, which it
/// leaves in float32.
class ObservingDevice : public HostDevice {
  public:
    explicit ObservingDevice(const DeviceOptions& options)
        : HostDevice({options.threads, options.level, cpu::Activations::f32}) {}

    void submit(std::span<const Step> steps, const Tokens& tokens) override {
        size_t done = 0;
        for (size_t i = 0; i < steps.size(); ++i) {
            if (!is_product(steps[i].op) || steps[i].layer == Step::kNoLayer) continue;
            HostDevice::submit(steps.subspan(done, i - done), tokens);
            done = i;
            observe(steps[i], tokens);
        }
        HostDevice::submit(steps.subspan(done), tokens);
    }

    SquareSums sums;

  private:
    void observe(const Step& step, const Tokens& tokens) {
        const Slot in = step.in[0];
        std::vector<double>& sum = sums[step.w->name];
        sum.resize(in.width);
        for (uint32_t t = 0; t < tokens.rows(in); ++t) {
            const float* x = tokens.row(in, t);
            for (uint32_t k = 0; k < in.width; ++k) sum[k] += double(x[k]) * x[k];
        }
    }
};

void refuse_rotated(const Model& model) {
    for (const auto& [weight, source] : model.weights)
        if (weight->codec->rotation != Rotation::none)
            throw Error(
                fmt::format("{}: tensor '{}' is in format {}, whose weights are rotated; "
                            "calibrate with the model that it was made from",
                            model.file->path, weight->name, weight->codec->name));
}

}  // namespace

std::optional<SquareSums> sum_squares(std::shared_ptr<const ModelFile> file,
                                      std::span<const int32_t> ids, const DeviceOptions& options,
                                      const Log& log, const Progress& on_progress,
                                      const std::atomic<bool>& interrupt) {
    if (ids.empty()) throw Error("the calibration text is empty", Fault::usage);
    ObservingDevice device(options);
    const Model model = load_model(std::move(file), device, {}, log);
    refuse_rotated(model);
    const SessionOptions window{std::min(kWindow, model.config.max_positions),
                                kv_type_by_name("f32"), 1};
    std::optional<Session> session;
    for (size_t done = 0; done < ids.size();) {
        if (interrupt) return std::nullopt;
        if (!session || session->room() == 0) session.emplace(model, device, window);
        const size_t most = std::min<size_t>(Session::kMaxTokens, session->room());
        const auto piece = ids.subspan(done, std::min(most, ids.size() - done));
        session->forward(piece, {});
        session->commit(uint32_t(piece.size()));
        done += piece.size();
        if (on_progress) on_progress(done, ids.size());
    }
    return std::move(device.sums);
}

std::vector<float> awq_scales(std::span<const double> sums) {
    std::vector<double> logs;
    double mean = 0;
    for (const double sum : sums) {
        logs.push_back(0.25 * std::log(std::clamp(sum, 1e-12, 1e30)));
        mean += logs.back() / double(sums.size());
    }
    std::vector<float> scales;
    for (const double l : logs) {
        const double scale = std::clamp(std::exp(l - mean), 0.01, 100.0);
        scales.push_back(cpu::f16_to_f32(cpu::f32_to_f16_truncated(float(scale))));
    }
    return scales;
}

}  // namespace hf
