// Packed weights as they lie in files. CPU and GPU code read the same structs; blocks follow each
// other without padding and may start at any address, so every struct has alignment 1.
//
// Words:   f16 is IEEE binary16, f32 binary32, little-endian. UE8M0 and E4M3 are the 8-bit scales
// of
//          formats/fp4.h.
// Codes:   unless a drawing says otherwise, the codes of a block are one little-endian bit stream:
//          code i of width w occupies bits [i * w, (i + 1) * w), and bit j of the stream is bit
//          j % 8 of byte j / 8. So 4-bit codes are low nibble first, 3-bit codes are 8 in 3 bytes.
// Nibbles in halves: byte j holds code j (low nibble) and code j + n/2 (high nibble) of n codes.
#pragma once

#include <cstddef>
#include <cstdint>

#define HF_BLOCK struct __attribute__((packed))

namespace hf {

// HFQ: affine, w[i] = scale * q[i] + zero ------------------------------------------------------

/// hfq*, mq* (first version): one pair of f32 for a group.
///   byte 0..3   4..7  8 ...
///        scale  zero  codes
template <unsigned width, size_t group>
HF_BLOCK AffineBlock {
    float scale, zero;
    uint8_t codes[group * width / 8];
};
static_assert(sizeof(AffineBlock<2, 128>) == 40 && sizeof(AffineBlock<2, 256>) == 72);
static_assert(sizeof(AffineBlock<3, 128>) == 56 && sizeof(AffineBlock<3, 256>) == 104);
static_assert(sizeof(AffineBlock<4, 128>) == 72 && sizeof(AffineBlock<4, 256>) == 136);
static_assert(sizeof(AffineBlock<5, 256>) == 168 && sizeof(AffineBlock<6, 256>) == 200);

/// A scale and a zero, both f16.
HF_BLOCK F16Pair {
    uint16_t scale, zero;
};

/// mq*v2: 256 weights, one pair for each half.
///   byte 0..1    2..3   4..5    6..7   8 ...
///        scale0  zero0  scale1  zero1  codes of all 256
template <unsigned width>
HF_BLOCK AffineV2Block {
    F16Pair half[2];  // of weights 0..127 and 128..255
    uint8_t codes[32 * width];
};
static_assert(sizeof(AffineV2Block<2>) == 72 && sizeof(AffineV2Block<3>) == 104);
static_assert(sizeof(AffineV2Block<4>) == 136 && sizeof(AffineV2Block<5>) == 168);
static_assert(sizeof(AffineV2Block<6>) == 200);

/// mq4cg256: 256 weights, one pair for all; the padding is written as zeros and never read.
HF_BLOCK Mq4cBlock {
    F16Pair all;
    uint8_t padding[4];
    uint8_t codes[128];
};
static_assert(sizeof(Mq4cBlock) == 136);

/// mq4g128v2: 128 weights, one pair.
HF_BLOCK Mq4g128V2Block {
    F16Pair all;
    uint8_t codes[64];
};
static_assert(sizeof(Mq4g128V2Block) == 68);

/// q4f16g64: 64 weights, one pair, nibbles in halves.
HF_BLOCK Q4F16Block {
    F16Pair all;
    uint8_t nibbles[32];
};
static_assert(sizeof(Q4F16Block) == 36);

// HFQ: codebooks -------------------------------------------------------------------------------

/// *lloyd: 256 weights, w[i] = level[q[i]], levels f16 and of this group alone.
template <unsigned width>
HF_BLOCK LloydBlock {
    uint16_t level[1 << width];
    uint8_t codes[32 * width];
};
static_assert(sizeof(LloydBlock<2>) == 72 && sizeof(LloydBlock<3>) == 112);
static_assert(sizeof(LloydBlock<4>) == 160);

/// *gl: 256 codes; the f16 scales of all groups lie behind all codes of the matrix.
template <unsigned width>
HF_BLOCK GlBlock {
    uint8_t codes[32 * width];
};

// HFQ and GGUF: a scale alone ------------------------------------------------------------------

/// tq2g128, bq1g128: 128 weights of 2 or 1 bits.
///   byte 0 1    2 ...
///        scale  codes
template <unsigned width>
HF_BLOCK TernaryBlock {
    uint16_t scale;  // f16
    uint8_t codes[16 * width];
};
static_assert(sizeof(TernaryBlock<2>) == 34 && sizeof(TernaryBlock<1>) == 18);

/// Integers of a byte: w[i] = scale * q[i]. -128 is a legal code.
///   byte 0 1    2 ...
///        scale  q[0] ...
template <size_t group>
HF_BLOCK Int8Block {
    uint16_t scale;  // f16
    int8_t q[group];
};
using Q8_0Block = Int8Block<32>;  // the same bytes in HFQ (3) and GGUF (8)
using Mq8Block = Int8Block<256>;
static_assert(sizeof(Q8_0Block) == 34 && alignof(Q8_0Block) == 1 && sizeof(Mq8Block) == 258);

// HFQ: 4-bit floats and E8 points in rows with a header ------------------------------------------

/// The first 16 bytes of a row.
HF_BLOCK Fp4RowHeader {
    uint16_t scale;   // f16, of the whole row
    uint16_t unused;  // a second scale that nobody writes
    uint16_t blocks;  // cols / 32
    uint8_t flags;    // bit 0 rotated, bit 1 second scale, bits 2..3 kind; read by nobody
    uint8_t zeros[9];
};
static_assert(sizeof(Fp4RowHeader) == 16);

/// 32 weights: a scale (UE8M0 or E4M3) and 4 bytes for each bit of width.
template <unsigned width>
HF_BLOCK Fp4Block {
    uint8_t scale;
    uint8_t codes[4 * width];
};
static_assert(sizeof(Fp4Block<4>) == 17 && sizeof(Fp4Block<3>) == 13 && sizeof(Fp4Block<2>) == 9);

// GGUF: 32 weights, nibbles in halves ------------------------------------------------------------

/// q4_0, iq4_nl.
HF_BLOCK Q4_0Block {
    uint16_t d;
    uint8_t nibbles[16];
};
static_assert(sizeof(Q4_0Block) == 18);

/// q4_1.
HF_BLOCK Q4_1Block {
    uint16_t d, m;
    uint8_t nibbles[16];
};
static_assert(sizeof(Q4_1Block) == 20);

/// q5_0: bit 4 of code i is bit i of `high`.
HF_BLOCK Q5_0Block {
    uint16_t d;
    uint32_t high;
    uint8_t nibbles[16];
};
static_assert(sizeof(Q5_0Block) == 22);

/// q5_1: as q5_0.
HF_BLOCK Q5_1Block {
    uint16_t d, m;
    uint32_t high;
    uint8_t nibbles[16];
};
static_assert(sizeof(Q5_1Block) == 24);

/// mxfp4: scale is UE8M0.
HF_BLOCK Mxfp4Block {
    uint8_t scale;
    uint8_t nibbles[16];
};
static_assert(sizeof(Mxfp4Block) == 17);

/// nvfp4: 64 weights, four runs of 16, each with a scale (E4M3) and its own nibbles in halves.
HF_BLOCK Nvfp4Block {
    uint8_t scale[4];
    uint8_t nibbles[4][8];
};
static_assert(sizeof(Nvfp4Block) == 36);

// GGUF: 256 weights with scales of their own for runs of 16 or 32 --------------------------------

/// Scale and minimum of 8 runs, 6 bits each:
///   byte   0..3                4..7              8..11
///   low 6  scale of run 0..3   min of run 0..3   -
///   bits   6..7: upper two     6..7: upper two   0..3: lower four bits of scale of run 4..7
///          of scale 4..7       of min 4..7       4..7: lower four bits of min of run 4..7
using PackedScales = uint8_t[12];

/// q2_k: run r has scale and minimum in the nibbles of scales[r] (low: scale). Byte 32 h + l holds
/// weights 128 h + 32 j + l in bits 2j, 2j + 1.
HF_BLOCK Q2KBlock {
    uint8_t scales[16];
    uint8_t codes[64];
    uint16_t d, dmin;
};
static_assert(sizeof(Q2KBlock) == 84);

/// q3_k: low two bits as in q2_k; bit 4 h + j of high[l] is the top bit of weight 128 h + 32 j + l,
/// inverted in value: 0 stands for -4. scales: lower four bits of run r in nibble r / 8 of byte
/// r % 8, upper two bits in bits 2 (r / 4) of byte 8 + r % 4; the value is less 32.
HF_BLOCK Q3KBlock {
    uint8_t high[32];
    uint8_t codes[64];
    uint8_t scales[12];
    uint16_t d;
};
static_assert(sizeof(Q3KBlock) == 110);

/// q4_k: the same in HFQ (4) and GGUF (12). Four runs of 64, each with its nibbles in halves.
HF_BLOCK Q4KBlock {
    uint16_t d, dmin;
    PackedScales scales;
    uint8_t nibbles[4][32];
};
static_assert(sizeof(Q4KBlock) == 144);

/// q5_k: as q4_k; bit r of high[l] is bit 4 of weight l in run r of 32.
HF_BLOCK Q5KBlock {
    uint16_t d, dmin;
    PackedScales scales;
    uint8_t high[32];
    uint8_t nibbles[4][32];
};
static_assert(sizeof(Q5KBlock) == 176);

/// q6_k: two halves of 128, each with 64 bytes of lower nibbles (quarters 0 and 1 low, 2 and 3
/// high, 32 bytes a quarter) and 32 bytes with the upper two bits of quarter t in bits 2t. Less 32.
HF_BLOCK Q6KBlock {
    uint8_t low[2][2][32];
    uint8_t high[2][32];
    int8_t scales[16];
    uint16_t d;
};
static_assert(sizeof(Q6KBlock) == 210);

/// iq4_xs: eight runs of 32, nibbles in halves. The 6-bit scale of run r is nibble r % 2 of
/// scales_low[r / 2] and bits 2r, 2r + 1 of scales_high; the value is less 32.
HF_BLOCK Iq4XsBlock {
    uint16_t d, scales_high;
    uint8_t scales_low[4];
    uint8_t nibbles[8][16];
};
static_assert(sizeof(Iq4XsBlock) == 136);

}  // namespace hf

#undef HF_BLOCK
