// What works on each element by itself is written once as a plain loop and compiled twice, for the
// plain machine and for AVX2: nothing is fused or reordered, so the bits are the same. Sums over a
// row and sums of rows are twins, because a compiler left alone keeps their lanes in memory.
#include "cpuexec/vector_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cpuexec/simd.h"

/// The next loop touches different elements each time round, whether or not pointers are the same.
#ifdef __clang__
#define HF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define HF_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace hf::cpu {
namespace {

// Element by element. ---------------------------------------------------------------------------

HF_INLINE float power_of_two(int32_t k) {
    return std::bit_cast<float>(uint32_t(k + 127) << 23);
}

/// exp(x) = 2^k exp(r), k the integer nearest to x / ln 2. ln 2 is taken in two parts, of which k
/// times the first is exact (Cody and Waite, "Software Manual for the Elementary Functions", 1980).
/// exp(r) = 1 + r + r^2 q(r), q by Remez' algorithm for |r| <= ln 2 / 2: relative error 3.1e-9.
/// 2^k comes in two factors, so that results up to 2^128 and denormals come out.
HF_INLINE float exp_of(float x) {
    constexpr float kLog2E = 0x1.715476p0f, kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
    constexpr float kRound = 0x1.8p23f;  // has no bits below 1, so a sum with it is an integer
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float rounded = x * kLog2E + kRound;
    const float n = rounded - kRound;
    const float r = (x - n * kLn2High) - n * kLn2Low;
    float q = 0x1.6a23d0p-10f;
    q = q * r + 0x1.123a20p-7f;
    q = q * r + 0x1.5558f2p-5f;
    q = q * r + 0x1.555492p-3f;
    q = q * r + 0x1.fffffcp-2f;
    const float p = (q * (r * r) + r) + 1.0f;
    const int32_t k =  // of a NaN: whatever, p is one too
        int32_t(std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(kRound));
    const int32_t half = k >> 1;
    return p * power_of_two(half) * power_of_two(k - half);
}
HF_INLINE float sigmoid(float x) {
    return 1.0f / (1.0f + exp_of(-x));
}
HF_INLINE float silu(float x) {
    return x / (1.0f + exp_of(-x));
}

HF_INLINE void add(const float* a, const float* b, size_t n, float* out) {
    HF_INDEPENDENT for (size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
HF_INLINE void scale(const float* x, float s, size_t n, float* out) {
    HF_INDEPENDENT for (size_t i = 0; i < n; ++i) out[i] = s * x[i];
}
HF_INLINE void mul_silu(const float* a, const float* b, size_t n, float* out) {
    HF_INDEPENDENT for (size_t i = 0; i < n; ++i) out[i] = a[i] * silu(b[i]);
}
HF_INLINE void mul_sigmoid(const float* a, const float* b, size_t n, float* out) {
    HF_INDEPENDENT for (size_t i = 0; i < n; ++i) out[i] = a[i] * sigmoid(b[i]);
}
HF_INLINE void exp_shifted(const float* x, float s, float shift, size_t n, float* out) {
    HF_INDEPENDENT for (size_t i = 0; i < n; ++i) out[i] = exp_of(s * x[i] - shift);
}

HF_INLINE float taps_at(const float* w, const float* const* x, size_t taps, size_t c) {
    float sum = 0;
    HF_UNROLL for (size_t j = 0; j < taps; ++j) sum += w[c * taps + j] * x[j][c];
    return sum;
}
/// All known models have four taps; only a number that the compiler knows becomes vector code.
HF_INLINE void conv_silu(const float* w, const float* const* x, size_t taps, size_t n, float* out) {
    if (taps == 4) {
        HF_INDEPENDENT for (size_t c = 0; c < n; ++c) out[c] = silu(taps_at(w, x, 4, c));
    } else {
        for (size_t c = 0; c < n; ++c) out[c] = silu(taps_at(w, x, taps, c));
    }
}

template <float (*dot)(const float*, const float*, size_t)>
HF_INLINE void rmsnorm(const float* x, const float* w, float eps, size_t n, float* out) {
    const float s = 1.0f / std::sqrt(dot(x, x, n) / float(n) + eps);
    HF_INDEPENDENT for (size_t i = 0; i < n; ++i) out[i] = x[i] * s * w[i];
}

/// A function of the above as AVX2 code.
template <auto function, class... Args>
HF_AVX2 void wide_avx2(Args... args) {
    function(args...);
}

// Sums over a row. ------------------------------------------------------------------------------

constexpr float kNone = -std::numeric_limits<float>::infinity();

float larger(float a, float b) {
    return a > b ? a : b;  // b if a is NaN, as in the instruction
}
float fold_largest(const float* lane) {
    float most = kNone;
    for (size_t l = 0; l < 8; ++l) most = larger(lane[l], most);
    return most;
}

float dot_plain(const float* a, const float* b, size_t n) {
    float lane[8] = {};
    for (size_t i = 0; i < n; ++i) lane[i % 8] += a[i] * b[i];
    return fold8(lane);
}
HF_AVX2 float dot_avx2(const float* a, const float* b, size_t n) {
    __m256 lanes = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        lanes = _mm256_add_ps(lanes, _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
    float lane[8];
    _mm256_storeu_ps(lane, lanes);
    for (; i < n; ++i) lane[i % 8] += a[i] * b[i];
    return fold8(lane);
}

float sum_plain(const float* x, size_t n) {
    float lane[8] = {};
    for (size_t i = 0; i < n; ++i) lane[i % 8] += x[i];
    return fold8(lane);
}
HF_AVX2 float sum_avx2(const float* x, size_t n) {
    __m256 lanes = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) lanes = _mm256_add_ps(lanes, _mm256_loadu_ps(x + i));
    float lane[8];
    _mm256_storeu_ps(lane, lanes);
    for (; i < n; ++i) lane[i % 8] += x[i];
    return fold8(lane);
}

float largest_plain(const float* x, size_t n) {
    float lane[8] = {kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone};
    for (size_t i = 0; i < n; ++i) lane[i % 8] = larger(x[i], lane[i % 8]);
    return fold_largest(lane);
}
HF_AVX2 float largest_avx2(const float* x, size_t n) {
    __m256 lanes = _mm256_set1_ps(kNone);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) lanes = _mm256_max_ps(_mm256_loadu_ps(x + i), lanes);
    float lane[8];
    _mm256_storeu_ps(lane, lanes);
    for (; i < n; ++i) lane[i % 8] = larger(x[i], lane[i % 8]);
    return fold_largest(lane);
}

// Products of rows. -----------------------------------------------------------------------------

void multiply_plain(const RowProducts& p) {
    for (size_t i = 0; i < p.rows; ++i)
        for (size_t j = 0; j < p.others; ++j) {
            float lane[16] = {};
            for (size_t c = 0; c < p.cols; ++c)
                lane[c % 16] = std::fma(p.x[i][c], p.y[j * p.stride + c], lane[c % 16]);
            p.out[i][j] = fold16(lane);
        }
}

/// Sums of 8 lanes, folded as fold8() does: four at once.
HF_AVX2_INLINE __m128 fold_four(const __m256 (&sum)[4]) {
    __m128 quarter[4];
    HF_UNROLL for (size_t i = 0; i < 4; ++i) {
        quarter[i] = _mm_add_ps(_mm256_castps256_ps128(sum[i]), _mm256_extractf128_ps(sum[i], 1));
    }
    _MM_TRANSPOSE4_PS(quarter[0], quarter[1], quarter[2], quarter[3]);
    return _mm_add_ps(_mm_add_ps(quarter[0], quarter[2]), _mm_add_ps(quarter[1], quarter[3]));
}

/// Where a tile of products finds its rows; what is missing at an edge repeats the last one.
template <size_t R>
struct TileRows {
    const float *x[R], *y[R];
    float* out[R];

    TileRows(const RowProducts& p, size_t i0, size_t j0) {
        for (size_t r = 0; r < R; ++r) {
            const size_t i = std::min(i0 + r, p.rows - 1), j = std::min(j0 + r, p.others - 1);
            x[r] = p.x[i], out[r] = p.out[i] + j0;
            y[r] = p.y + j * p.stride;
        }
    }
};

/// Adds to four sums of 8 lanes, of two rows and two others, numbers c .. c + 7.
HF_AVX2_INLINE void add_eight(const TileRows<2>& tile, size_t c, __m256 (&sum)[4]) {
    HF_UNROLL for (size_t i = 0; i < 4; ++i) {
        sum[i] = _mm256_fmadd_ps(_mm256_loadu_ps(tile.x[i / 2] + c),
                                 _mm256_loadu_ps(tile.y[i % 2] + c), sum[i]);
    }
}
/// The same for the first n of them. Other lanes stay as they are.
HF_AVX2_INLINE void add_fewer(const TileRows<2>& tile, size_t c, size_t n, __m256 (&sum)[4]) {
    const __m256i some =
        _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    HF_UNROLL for (size_t i = 0; i < 4; ++i) {
        const __m256 more = _mm256_fmadd_ps(_mm256_maskload_ps(tile.x[i / 2] + c, some),
                                            _mm256_maskload_ps(tile.y[i % 2] + c, some), sum[i]);
        sum[i] = _mm256_blendv_ps(sum[i], more, _mm256_castsi256_ps(some));
    }
}

/// Lanes 0 .. 7 of a product are in one vector, 8 .. 15 in another.
HF_AVX2 void multiply_tile_avx2(const RowProducts& p, size_t i0, size_t j0) {
    const TileRows<2> tile(p, i0, j0);
    __m256 low[4] = {}, high[4] = {};
    size_t c = 0;
    for (; c + 16 <= p.cols; c += 16) {
        add_eight(tile, c, low);
        add_eight(tile, c + 8, high);
    }
    if (c < p.cols) add_fewer(tile, c, std::min<size_t>(p.cols - c, 8), low);
    if (c + 8 < p.cols) add_fewer(tile, c + 8, p.cols - c - 8, high);
    HF_UNROLL for (size_t i = 0; i < 4; ++i) low[i] = _mm256_add_ps(low[i], high[i]);
    float products[4];
    _mm_storeu_ps(products, fold_four(low));
    for (size_t i = 0; i < 4; ++i)
        if (j0 + i % 2 < p.others) tile.out[i / 2][i % 2] = products[i];
}
void multiply_avx2(const RowProducts& p) {
    for (size_t j = 0; j < p.others; j += 2)
        for (size_t i = 0; i < p.rows; i += 2) multiply_tile_avx2(p, i, j);
}

/// Adds to sums of 16 lanes, of four rows and four others, numbers c .. c + 15 that are in `some`.
HF_AVX512_INLINE void add_sixteen(const TileRows<4>& tile, size_t c, __mmask16 some,
                                  __m512 (&sum)[4][4]) {
    __m512 y[4];
    HF_UNROLL for (size_t j = 0; j < 4; ++j) y[j] = _mm512_maskz_loadu_ps(some, tile.y[j] + c);
    HF_UNROLL for (size_t i = 0; i < 4; ++i) {
        const __m512 x = _mm512_maskz_loadu_ps(some, tile.x[i] + c);
        HF_UNROLL for (size_t j = 0; j < 4; ++j) {
            sum[i][j] = _mm512_mask3_fmadd_ps(x, y[j], sum[i][j], some);
        }
    }
}

HF_AVX512 void multiply_tile_avx512(const RowProducts& p, size_t i0, size_t j0) {
    const TileRows<4> tile(p, i0, j0);
    __m512 sum[4][4] = {};
    size_t c = 0;
    for (; c + 16 <= p.cols; c += 16) add_sixteen(tile, c, 0xffff, sum);
    if (c < p.cols) add_sixteen(tile, c, __mmask16((1u << (p.cols - c)) - 1), sum);
    const auto there = __mmask8((1u << std::min<size_t>(p.others - j0, 4)) - 1);
    HF_UNROLL for (size_t i = 0; i < 4; ++i) {
        __m256 halves[4];
        HF_UNROLL for (size_t j = 0; j < 4; ++j) {
            halves[j] = _mm256_add_ps(_mm512_castps512_ps256(sum[i][j]),
                                      _mm512_extractf32x8_ps(sum[i][j], 1));
        }
        _mm_mask_storeu_ps(tile.out[i], there, fold_four(halves));
    }
}
void multiply_avx512(const RowProducts& p) {
    for (size_t j = 0; j < p.others; j += 4)
        for (size_t i = 0; i < p.rows; i += 4) multiply_tile_avx512(p, i, j);
}

// Sums of rows. ---------------------------------------------------------------------------------

void add_weighted_plain(const WeightedRows& s) {
    for (size_t r = 0; r < s.rows; ++r)
        for (size_t j = 0; j < s.terms; ++j)
            for (size_t c = 0; c < s.cols; ++c)
                s.out[r][c] = std::fma(s.weights[r][j], s.values[j * s.stride + c], s.out[r][c]);
}

/// R rows and 8 V columns of the sums, in registers over terms [j0, j1).
template <size_t R, size_t V>
HF_AVX2_INLINE void add_tile(const WeightedRows& s, size_t r0, size_t j0, size_t j1, size_t c) {
    __m256 acc[R][V];
    const float* w[R];
    HF_UNROLL for (size_t r = 0; r < R; ++r) {
        w[r] = s.weights[r0 + r];
        HF_UNROLL for (size_t v = 0; v < V; ++v) {
            acc[r][v] = _mm256_loadu_ps(s.out[r0 + r] + c + 8 * v);
        }
    }
    const float* values = s.values + j0 * s.stride + c;
    for (size_t j = j0; j < j1; ++j, values += s.stride) {
        __m256 x[V];
        HF_UNROLL for (size_t v = 0; v < V; ++v) x[v] = _mm256_loadu_ps(values + 8 * v);
        HF_UNROLL for (size_t r = 0; r < R; ++r) {
            const __m256 weight = _mm256_broadcast_ss(w[r] + j);
            HF_UNROLL for (size_t v = 0; v < V; ++v) {
                acc[r][v] = _mm256_fmadd_ps(weight, x[v], acc[r][v]);
            }
        }
    }
    HF_UNROLL for (size_t r = 0; r < R; ++r) {
        HF_UNROLL for (size_t v = 0; v < V; ++v) {
            _mm256_storeu_ps(s.out[r0 + r] + c + 8 * v, acc[r][v]);
        }
    }
}

/// All columns of R rows. Eight accumulators hide the latency of fma.
template <size_t R>
HF_AVX2 void add_rows_avx2(const WeightedRows& s, size_t r0, size_t j0, size_t j1) {
    constexpr size_t V = R <= 2 ? 4 : 2;
    size_t c = 0;
    for (; c + 8 * V <= s.cols; c += 8 * V) add_tile<R, V>(s, r0, j0, j1, c);
    for (; c + 8 <= s.cols; c += 8) add_tile<R, 1>(s, r0, j0, j1, c);
    for (; c < s.cols; ++c)
        for (size_t r = r0; r < r0 + R; ++r)
            for (size_t j = j0; j < j1; ++j)
                s.out[r][c] = std::fma(s.weights[r][j], s.values[j * s.stride + c], s.out[r][c]);
}

/// R rows and 16 V columns of the sums, of the last 16 those in `last`, in registers over terms
/// [j0, j1).
template <size_t R, size_t V>
HF_AVX512_INLINE void add_tile_avx512(const WeightedRows& s, size_t r0, size_t j0, size_t j1,
                                      size_t c, __mmask16 last = 0xffff) {
    __m512 acc[R][V];
    __mmask16 some[V];
    const float* w[R];
    HF_UNROLL for (size_t v = 0; v < V; ++v) some[v] = v + 1 < V ? __mmask16(0xffff) : last;
    HF_UNROLL for (size_t r = 0; r < R; ++r) {
        w[r] = s.weights[r0 + r];
        HF_UNROLL for (size_t v = 0; v < V; ++v) {
            acc[r][v] = _mm512_maskz_loadu_ps(some[v], s.out[r0 + r] + c + 16 * v);
        }
    }
    const float* values = s.values + j0 * s.stride + c;
    for (size_t j = j0; j < j1; ++j, values += s.stride) {
        __m512 x[V];
        HF_UNROLL for (size_t v = 0; v < V; ++v) {
            x[v] = _mm512_maskz_loadu_ps(some[v], values + 16 * v);
        }
        HF_UNROLL for (size_t r = 0; r < R; ++r) {
            const __m512 weight = _mm512_set1_ps(w[r][j]);
            HF_UNROLL for (size_t v = 0; v < V; ++v) {
                acc[r][v] = _mm512_fmadd_ps(weight, x[v], acc[r][v]);
            }
        }
    }
    HF_UNROLL for (size_t r = 0; r < R; ++r) {
        HF_UNROLL for (size_t v = 0; v < V; ++v) {
            _mm512_mask_storeu_ps(s.out[r0 + r] + c + 16 * v, some[v], acc[r][v]);
        }
    }
}

template <size_t R>
HF_AVX512 void add_rows_avx512(const WeightedRows& s, size_t r0, size_t j0, size_t j1) {
    constexpr size_t V = R == 1 ? 8 : 4;
    size_t c = 0;
    for (; c + 16 * V <= s.cols; c += 16 * V) add_tile_avx512<R, V>(s, r0, j0, j1, c);
    for (; c < s.cols; c += 16) {
        const size_t left = std::min<size_t>(s.cols - c, 16);
        add_tile_avx512<R, 1>(s, r0, j0, j1, c, __mmask16((1u << left) - 1));
    }
}

/// Some terms at a time, whose values stay in the first cache over all rows.
using AddRows = void (*)(const WeightedRows& s, size_t r0, size_t j0, size_t j1);
void add_by_rows(const AddRows (&add)[4], const WeightedRows& s) {
    constexpr size_t kTerms = 16;
    for (size_t j = 0; j < s.terms; j += kTerms)
        for (size_t r = 0, some; r < s.rows; r += some) {
            some = std::min<size_t>(s.rows - r, 4);
            add[some - 1](s, r, j, std::min(j + kTerms, s.terms));
        }
}
void add_weighted_avx2(const WeightedRows& s) {
    constexpr AddRows kAdd[] = {add_rows_avx2<1>, add_rows_avx2<2>, add_rows_avx2<3>,
                                add_rows_avx2<4>};
    add_by_rows(kAdd, s);
}
void add_weighted_avx512(const WeightedRows& s) {
    constexpr AddRows kAdd[] = {add_rows_avx512<1>, add_rows_avx512<2>, add_rows_avx512<3>,
                                add_rows_avx512<4>};
    add_by_rows(kAdd, s);
}

// A matrix that changes and is read. -------------------------------------------------------------

void update_plain(const UpdatedMatrix& m) {
    for (size_t r = 0; r < m.rows; ++r) {
        float* x = m.x + r * m.cols;
        for (size_t c = 0; c < m.cols; ++c) {
            x[c] = std::fma(m.u[r], m.v[c], m.decay * x[c]);
            m.out[0][c] = std::fma(m.weights[0][r], x[c], m.out[0][c]);
            m.out[1][c] = std::fma(m.weights[1][r], x[c], m.out[1][c]);
        }
    }
}

/// 8 V columns over rows [r0, r1).
template <size_t V>
HF_AVX2_INLINE void update_tile_avx2(const UpdatedMatrix& m, size_t r0, size_t r1, size_t c) {
    __m256 v[V], sum[2][V];
    HF_UNROLL for (size_t i = 0; i < V; ++i) {
        v[i] = _mm256_loadu_ps(m.v + c + 8 * i);
        sum[0][i] = _mm256_loadu_ps(m.out[0] + c + 8 * i);
        sum[1][i] = _mm256_loadu_ps(m.out[1] + c + 8 * i);
    }
    const __m256 decay = _mm256_set1_ps(m.decay);
    for (size_t r = r0; r < r1; ++r) {
        float* row = m.x + r * m.cols + c;
        HF_UNROLL for (size_t i = 0; i < V; ++i) {
            const __m256 faded = _mm256_mul_ps(decay, _mm256_loadu_ps(row + 8 * i));
            const __m256 x = _mm256_fmadd_ps(_mm256_broadcast_ss(m.u + r), v[i], faded);
            _mm256_storeu_ps(row + 8 * i, x);
            sum[0][i] = _mm256_fmadd_ps(_mm256_broadcast_ss(m.weights[0] + r), x, sum[0][i]);
            sum[1][i] = _mm256_fmadd_ps(_mm256_broadcast_ss(m.weights[1] + r), x, sum[1][i]);
        }
    }
    HF_UNROLL for (size_t i = 0; i < V; ++i) {
        _mm256_storeu_ps(m.out[0] + c + 8 * i, sum[0][i]);
        _mm256_storeu_ps(m.out[1] + c + 8 * i, sum[1][i]);
    }
}

/// Some rows at a time, which stay in the first cache over all columns.
HF_AVX2 void update_avx2(const UpdatedMatrix& m) {
    constexpr size_t kRows = 16;
    for (size_t r = 0; r < m.rows; r += kRows) {
        const size_t end = std::min(r + kRows, m.rows);
        size_t c = 0;
        for (; c + 32 <= m.cols; c += 32) update_tile_avx2<4>(m, r, end, c);
        for (; c + 8 <= m.cols; c += 8) update_tile_avx2<1>(m, r, end, c);
        for (; c < m.cols; ++c)
            for (size_t i = r; i < end; ++i) {
                float& x = m.x[i * m.cols + c];
                x = std::fma(m.u[i], m.v[c], m.decay * x);
                for (size_t o = 0; o < 2; ++o)
                    m.out[o][c] = std::fma(m.weights[o][i], x, m.out[o][c]);
            }
    }
}

/// 16 V columns, of the last 16 those in `last`, over rows [r0, r1).
template <size_t V>
HF_AVX512_INLINE void update_tile_avx512(const UpdatedMatrix& m, size_t r0, size_t r1, size_t c,
                                         __mmask16 last = 0xffff) {
    __m512 v[V], sum[2][V];
    __mmask16 some[V];
    HF_UNROLL for (size_t i = 0; i < V; ++i) {
        some[i] = i + 1 < V ? __mmask16(0xffff) : last;
        v[i] = _mm512_maskz_loadu_ps(some[i], m.v + c + 16 * i);
        sum[0][i] = _mm512_maskz_loadu_ps(some[i], m.out[0] + c + 16 * i);
        sum[1][i] = _mm512_maskz_loadu_ps(some[i], m.out[1] + c + 16 * i);
    }
    const __m512 decay = _mm512_set1_ps(m.decay);
    for (size_t r = r0; r < r1; ++r) {
        float* row = m.x + r * m.cols + c;
        const __m512 u = _mm512_set1_ps(m.u[r]), w0 = _mm512_set1_ps(m.weights[0][r]),
                     w1 = _mm512_set1_ps(m.weights[1][r]);
        HF_UNROLL for (size_t i = 0; i < V; ++i) {
            const __m512 old = _mm512_maskz_loadu_ps(some[i], row + 16 * i);
            const __m512 x = _mm512_fmadd_ps(u, v[i], _mm512_mul_ps(decay, old));
            _mm512_mask_storeu_ps(row + 16 * i, some[i], x);
            sum[0][i] = _mm512_fmadd_ps(w0, x, sum[0][i]);
            sum[1][i] = _mm512_fmadd_ps(w1, x, sum[1][i]);
        }
    }
    HF_UNROLL for (size_t i = 0; i < V; ++i) {
        _mm512_mask_storeu_ps(m.out[0] + c + 16 * i, some[i], sum[0][i]);
        _mm512_mask_storeu_ps(m.out[1] + c + 16 * i, some[i], sum[1][i]);
    }
}

/// Rows of 128 columns, as models have them, in one walk.
HF_AVX512 void update_avx512(const UpdatedMatrix& m) {
    size_t c = 0;
    for (; c + 128 <= m.cols; c += 128) update_tile_avx512<8>(m, 0, m.rows, c);
    for (; c < m.cols; c += 16) {
        const size_t left = std::min<size_t>(m.cols - c, 16);
        update_tile_avx512<1>(m, 0, m.rows, c, __mmask16((1u << left) - 1));
    }
}

constexpr VectorMath kPlain = {.dot = dot_plain,
                               .sum = sum_plain,
                               .largest = largest_plain,
                               .add = add,
                               .scale = scale,
                               .mul_silu = mul_silu,
                               .mul_sigmoid = mul_sigmoid,
                               .exp_shifted = exp_shifted,
                               .rmsnorm = rmsnorm<dot_plain>,
                               .conv_silu = conv_silu,
                               .multiply = multiply_plain,
                               .add_weighted = add_weighted_plain,
                               .update = update_plain};
constexpr VectorMath kAvx2 = {.dot = dot_avx2,
                              .sum = sum_avx2,
                              .largest = largest_avx2,
                              .add = wide_avx2<add>,
                              .scale = wide_avx2<scale>,
                              .mul_silu = wide_avx2<mul_silu>,
                              .mul_sigmoid = wide_avx2<mul_sigmoid>,
                              .exp_shifted = wide_avx2<exp_shifted>,
                              .rmsnorm = wide_avx2<rmsnorm<dot_avx2>>,
                              .conv_silu = wide_avx2<conv_silu>,
                              .multiply = multiply_avx2,
                              .add_weighted = add_weighted_avx2,
                              .update = update_avx2};
constexpr VectorMath kAvx512 = [] {
    VectorMath math = kAvx2;
    math.multiply = multiply_avx512;
    math.add_weighted = add_weighted_avx512;
    math.update = update_avx512;
    return math;
}();

}  // namespace

const VectorMath& vector_math(Level level) {
    return level >= Level::avx512vnni ? kAvx512 : level >= Level::avx2 ? kAvx2 : kPlain;
}

}  // namespace hf::cpu
