// How fast the cores read memory: what bounds the CPU's share of a token.
#pragma once

#include "cpuexec/thread_pool.h"

namespace hf {

/// Reads 128 MiB a few times with all threads of the pool; takes a tenth of a second or so.
/// Returns bytes a second of the fastest time
double measure_read_speed(cpu::ThreadPool& pool);

}  // namespace hf
