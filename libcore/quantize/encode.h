// The functions of the table of encoders, by family; encoder.h explains their arguments.
#pragma once

#include <cstddef>

namespace hf::quantize {

using Encode = void(const float* row, size_t cols, std::byte* out, std::byte* scales);

// encode_plain.cpp; f16 is truncated, bf16 rounded to nearest
Encode f32, f16, bf16;

// encode_affine.cpp
template <unsigned width, size_t group>
void affine(const float* row, size_t cols, std::byte* out, std::byte*);
template <unsigned width>
void affine_v2(const float* row, size_t cols, std::byte* out, std::byte*);
Encode mq4c, mq4_g128_v2, q4_f16;

// encode_codebook.cpp; three_levels is for rows that has_three_levels()
template <unsigned width>
void lloyd(const float* row, size_t cols, std::byte* out, std::byte*);
template <unsigned width>
void gl(const float* row, size_t cols, std::byte* out, std::byte* scales);
Encode three_levels;
bool has_three_levels(const float* row, size_t cols);

// encode_q8.cpp
Encode q8_0, q8hfq, mq8, ternary, binary;

// encode_fp4.cpp
Encode hfp4, mfp4, mfp4p, e8_soa;
template <unsigned width>
void e8(const float* row, size_t cols, std::byte* out, std::byte*);

}  // namespace hf::quantize
