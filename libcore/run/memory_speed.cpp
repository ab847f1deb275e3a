#include "libcore/run/memory_speed.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

namespace hf {

double measure_read_speed(cpu::ThreadPool& pool) {
    constexpr size_t kWords = (128 << 20) / sizeof(uint64_t), kParts = 512, kRounds = 4;
    const std::vector<uint64_t> words(kWords, 1);
    std::atomic<uint64_t> sum = 0;  // so that the reading is not left out
    const auto read_part = [&](uint32_t part, unsigned) {
        const auto begin = words.begin() + part * (kWords / kParts);
        sum += std::accumulate(begin, begin + kWords / kParts, uint64_t{0});
    };
    double best = 0;
    for (size_t round = 0; round < kRounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        pool.run(kParts, read_part);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        best = std::max(best, double(kWords * sizeof(uint64_t)) / took.count());
    }
    return sum == kRounds * kWords ? best : 0;
}

}  // namespace hf
