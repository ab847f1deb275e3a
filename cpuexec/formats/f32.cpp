// f32: plain float32, four bytes a weight.
#include "cpuexec/formats/dot_f32.h"
#include "cpuexec/formats/formats.h"

namespace hf::cpu {

constinit const CpuOps f32 = {
    .prepare = {.group = 0, .offsets = false},
    .decode_row = decode_row<PlainDecoder>,
    .dot = f32_dots<PlainDecoder>(),
    .f32_only = true,
};

}  // namespace hf::cpu
