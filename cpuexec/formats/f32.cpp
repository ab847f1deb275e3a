// f32: plain float32, four bytes a weight.
#include "cpuexec/formats/f32.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {

constinit const CpuOps f32 = step_ops<F32Decoder>();

}  // namespace hf::cpu
