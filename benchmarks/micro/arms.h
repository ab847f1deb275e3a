// Arm: what is measured, as one dispatch to the thread pool at a time.
#pragma once

#include <functional>
#include <string>

#include "benchmarks/micro/matrices.h"
#include "cpuexec/thread_pool.h"

namespace hf::bench {

struct Arm {
    std::string name;                      // "read/sequential", "i16/avx2"
    uint64_t bytes;                        // that a dispatch must read
    uint64_t operations;                   // multiplications and additions of a dispatch
    std::function<void(size_t turn)> run;  // on the matrix whose turn it is
};

/// Rows are handed out in this many parts per thread, in all arms alike; the engine cuts a large
/// matrix so (libcore/ops/dispatches.cpp).
inline constexpr size_t kPartsPerThread = 16;

/// Reads a matrix's bytes and adds nothing up. The matrices and the pool must outlive the arms.
Arm sequential_read(const Matrices& matrices, cpu::Level level, cpu::ThreadPool& pool);
Arm four_stream_read(const Matrices& matrices, cpu::Level level, cpu::ThreadPool& pool);

/// Products of a matrix with `tokens` columns, by the format's own function at that level.
Arm products(const Matrices& matrices, cpu::Level level, cpu::Activations activations,
             size_t tokens, cpu::ThreadPool& pool);

/// A dispatch of nothing.
void dispatch_nothing(cpu::ThreadPool& pool);

}  // namespace hf::bench
