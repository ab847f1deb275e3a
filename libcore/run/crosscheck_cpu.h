// Checks of the CPU engine on this CPU: every format's functions at every instruction level against
// float64 and against each other. docs/hf-crosscheck.md lists the checks.
#pragma once

#include "cpuexec/thread_pool.h"
#include "libcore/file/model_file.h"
#include "libcore/run/check_record.h"

namespace hf {

struct CpuCheckOptions {
    cpu::Level highest = cpu::Level::amx;  // what is above it is skipped, with a reason
};

/// One format, on random weights of awkward shapes, with activations from subnormal to 6e4, zero,
/// and of very different sizes.
///
/// decode   float32 dots with unit vectors give the weights of decode_row
/// dot      dots, after the rotation of the format, against float64
/// awq      the same with activations that were divided by AWQ scales, where the format takes them
/// integers dots of i16 and int8 against float64 of the integers that activations become
/// twins    the bits of the scalar dot, for one column and for several
/// threads  the bits of one call, however many threads share the rows
///
/// One record for each check and function of the format's table. A function of a level that this
/// CPU lacks is skipped; so is a way of preparing activations that the format wants and has no
/// function for.
void crosscheck_codec(const Codec& codec, const CpuCheckOptions& options,
                      const OnRecord& on_record);

/// rotation  cpu::rotate against its definition in float64, at both sizes and each level
/// inverse   cpu::unrotate of that, against what was rotated
void crosscheck_rotation(const CpuCheckOptions& options, const OnRecord& on_record);

/// The same `dot` and `twins` on a model's own weights: for each format the two largest matrices,
/// at most 64 Mi weights of each. Their checks are called `model-dot` and `model-twins`.
///
/// Errors  hf::Error: the model's tensors are not those of its architecture
void crosscheck_model(const ModelFile& file, const CpuCheckOptions& options, cpu::ThreadPool& pool,
                      const OnRecord& on_record);

}  // namespace hf
