#include "benchmarks/micro/arms.h"

#include <atomic>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "benchmarks/micro/plain_read.h"
#include "cpuexec/isa.h"
#include "libcore/base/error.h"
#include "libcore/run/crosscheck_dots.h"

namespace hf::bench {
namespace {

using Read = uint64_t (*)(cpu::Level, const std::byte*, size_t);

/// A multiple of what plain_read.h wants; what is left over at the end of a part is not read.
constexpr size_t kReadUnit = 1024;

Arm read_arm(const char* name, Read read, const Matrices& matrices, cpu::Level level,
             cpu::ThreadPool& pool) {
    const size_t parts = pool.size() * kPartsPerThread;
    const size_t part_bytes = matrices.bytes() / parts / kReadUnit * kReadUnit;
    auto sum = std::make_shared<std::atomic<uint64_t>>(0);  // keeps the reads from being left out
    return {name, parts * part_bytes, 0, [=, &matrices, &pool](size_t turn) {
                const std::byte* tensor = matrices.tensor(turn);
                pool.run(uint32_t(parts), [&](uint32_t part, unsigned) {
                    sum->fetch_xor(read(level, tensor + part * part_bytes, part_bytes),
                                   std::memory_order_relaxed);
                });
            }};
}

OwnDot own_dot(const Codec& codec, cpu::Level level, cpu::Activations activations) {
    for (const OwnDot& own : own_dots(codec))
        if (own.level == level && own.activations == activations) return own;
    HF_ASSERT(false);
    return {};
}

/// Columns of numbers between -1 and 1, prepared.
PreparedColumns random_columns(const Codec& codec, size_t cols, const OwnDot& own, size_t tokens) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<DotInput> inputs(tokens);
    for (DotInput& input : inputs) {
        input.x.resize(cols);
        for (float& x : input.x) x = uniform(random);
    }
    return {codec, own, inputs};
}

}  // namespace

Arm sequential_read(const Matrices& matrices, cpu::Level level, cpu::ThreadPool& pool) {
    return read_arm("read/sequential", read_sequential, matrices, level, pool);
}

Arm four_stream_read(const Matrices& matrices, cpu::Level level, cpu::ThreadPool& pool) {
    return read_arm("read/four streams", read_four_streams, matrices, level, pool);
}

Arm products(const Matrices& matrices, cpu::Level level, cpu::Activations activations,
             size_t tokens, cpu::ThreadPool& pool) {
    const OwnDot own = own_dot(matrices.codec(), level, activations);
    const cpu::WeightView first = matrices.view(0);
    const auto x = std::make_shared<PreparedColumns>(
        random_columns(matrices.codec(), first.cols, own, tokens));
    const auto y = std::make_shared<std::vector<float>>(tokens * first.rows);
    const size_t parts = pool.size() * kPartsPerThread;
    return {fmt::format("{}/{}", name(activations), cpu::name(level)), matrices.bytes(),
            2 * first.rows * first.cols * tokens, [=, &matrices, &pool](size_t turn) {
                const cpu::WeightView W = matrices.view(turn);
                pool.run(uint32_t(parts), [&](uint32_t part, unsigned) {
                    const size_t r0 = W.rows * part / parts, r1 = W.rows * (part + 1) / parts;
                    own.dot(W, r0, r1, x->columns(0, tokens), y->data() + r0, W.rows);
                });
            }};
}

void dispatch_nothing(cpu::ThreadPool& pool) {
    pool.run(pool.size(), [](uint32_t, unsigned) {});
}

}  // namespace hf::bench
