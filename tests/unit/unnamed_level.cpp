// What check-levels.sh must find: AVX2 in a function whose name does not say so.
#include "cpuexec/simd.h"

namespace hf {

HF_AVX512 float first_avx512(const float* x) {
    return _mm512_reduce_add_ps(_mm512_loadu_ps(x));
}
HF_AVX2 float first(const float* x) {
    return _mm256_cvtss_f32(_mm256_loadu_ps(x));
}

}  // namespace hf
