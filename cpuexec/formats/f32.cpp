// f32: plain float32, four bytes a weight.
#include "cpuexec/formats/formats.h"
#include "cpuexec/formats/steps.h"

namespace hf::cpu {

constinit const CpuOps f32 = step_ops<PlainDecoder>();

}  // namespace hf::cpu
