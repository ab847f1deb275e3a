// The products of ggml, llama.cpp's library, under the conditions of hf-bandwidth: matrices of
// 12288 x 4096 that are walked in turn, in one graph. Prints GB/s of the weights' bytes in the file
// format, for each kind of buffer that takes the type: as it is, repacked, and for AMX.
//
//     ggml-gemv TYPE[,TYPE] [THREADS] [GB] [WINDOWS] [COLUMNS]       types: q4_0 q4_K q6_K q8_0 ...
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

namespace {

constexpr int64_t kRows = 12288, kCols = 4096;

using Clock = std::chrono::steady_clock;

ggml_type type_of(const std::string& name) {
    for (int t = 0; t < GGML_TYPE_COUNT; ++t)
        if (ggml_type_name(ggml_type(t)) == name) return ggml_type(t);
    std::fprintf(stderr, "ggml-gemv: no type is called %s\n", name.c_str());
    std::exit(2);
}

/// The plain buffer, and those that ggml's CPU device adds.
std::vector<ggml_backend_buffer_type_t> buffer_types() {
    std::vector<ggml_backend_buffer_type_t> all = {ggml_backend_cpu_buffer_type()};
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const auto extra =
        reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
    for (auto* more = extra ? extra(device) : nullptr; more && *more; ++more) all.push_back(*more);
    return all;
}

/// Weights of ordinary size in the type's own encoding.
std::vector<char> random_matrix(ggml_type type) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    constexpr int64_t kPool = 64;  // rows that are drawn; the others repeat them
    std::vector<float> x(kPool * kCols);
    for (float& v : x) v = normal(random);
    const size_t row = ggml_row_size(type, kCols);
    std::vector<char> out(kRows * row);
    ggml_quantize_chunk(type, x.data(), out.data(), 0, kPool, kCols, nullptr);
    for (int64_t r = kPool; r < kRows; ++r) std::memcpy(&out[r * row], &out[r % kPool * row], row);
    return out;
}

/// One kind of buffer: matrices, some columns, and a graph of all products.
class Arm {
  public:
    Arm(ggml_type type, ggml_backend_buffer_type_t where, size_t matrices, int64_t columns,
        int threads)
        : backend_(ggml_backend_cpu_init()),
          weights_(ggml_init({.mem_size = ggml_tensor_overhead() * (matrices + 8),
                              .mem_buffer = nullptr,
                              .no_alloc = true})),
          work_(ggml_init({.mem_size = ggml_tensor_overhead() * (2 * matrices + 8) +
                                       ggml_graph_overhead_custom(2 * matrices + 8, false),
                           .mem_buffer = nullptr,
                           .no_alloc = true})) {
        ggml_backend_cpu_set_n_threads(backend_, threads);
        for (size_t i = 0; i < matrices; ++i)
            w_.push_back(ggml_new_tensor_2d(weights_, type, kCols, kRows));
        held_.push_back(ggml_backend_alloc_ctx_tensors_from_buft(weights_, where));
        if (!held_.back()) return;
        const std::vector<char> bytes = random_matrix(type);
        ggml_tensor* x = ggml_new_tensor_2d(work_, GGML_TYPE_F32, kCols, columns);
        graph_ = ggml_new_graph_custom(work_, 2 * matrices + 8, false);
        for (ggml_tensor* w : w_) {
            ggml_backend_tensor_set(w, bytes.data(), 0, bytes.size());
            ggml_tensor* y = ggml_mul_mat(work_, w, x);
            if (!ggml_backend_supports_op(backend_, y)) return;
            ggml_build_forward_expand(graph_, y);
        }
        held_.push_back(ggml_backend_alloc_ctx_tensors(work_, backend_));
        if (!held_.back()) return;
        const std::vector<float> ones(size_t(kCols * columns), 0.5f);
        ggml_backend_tensor_set(x, ones.data(), 0, ones.size() * sizeof(float));
        is_usable = true;
    }

    Arm(const Arm&) = delete;
    ~Arm() {
        for (ggml_backend_buffer_t buffer : held_) ggml_backend_buffer_free(buffer);
        ggml_free(work_);
        ggml_free(weights_);
        ggml_backend_free(backend_);
    }

    /// GB/s of all matrices once.
    double window() const {
        const auto began = Clock::now();
        ggml_backend_graph_compute(backend_, graph_);
        const std::chrono::duration<double> seconds = Clock::now() - began;
        return double(w_.size()) * double(ggml_nbytes(w_[0])) / 1e9 / seconds.count();
    }
    bool is_usable = false;

  private:
    ggml_backend_t backend_;
    ggml_context *weights_, *work_;
    std::vector<ggml_backend_buffer_t> held_;
    std::vector<ggml_tensor*> w_;
    ggml_cgraph* graph_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: ggml-gemv TYPE[,TYPE] [THREADS] [GB] [WINDOWS] [COLUMNS]\n");
        return 2;
    }
    ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
    const double gb = argc > 3 ? std::atof(argv[3]) : 1.5;
    const int windows = argc > 4 ? std::atoi(argv[4]) : 5;
    const int64_t columns = argc > 5 ? std::atoi(argv[5]) : 1;
    std::string names = argv[1];
    for (size_t at = 0; at <= names.size();) {
        const size_t end = std::min(names.find(',', at), names.size());
        const ggml_type type = type_of(names.substr(at, end - at));
        at = end + 1;
        const double bytes = double(ggml_row_size(type, kCols)) * kRows;
        for (ggml_backend_buffer_type_t where : buffer_types()) {
            const Arm arm(type, where, size_t(gb * 1e9 / bytes) + 1, columns, threads);
            if (!arm.is_usable) continue;
            arm.window();
            std::vector<double> speeds;
            for (int i = 0; i < windows; ++i) speeds.push_back(arm.window());
            std::sort(speeds.begin(), speeds.end());
            std::printf("%-6s %-12s %6.2f (%.2f .. %.2f) GB/s\n", ggml_type_name(type),
                        ggml_backend_buft_name(where), speeds[speeds.size() / 2], speeds.front(),
                        speeds.back());
            std::fflush(stdout);
        }
    }
}
