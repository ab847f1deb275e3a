#include "benchmarks/micro/plain_read.h"

#include "cpuexec/simd.h"

namespace hf::bench {
namespace {

#define HF_BENCH_AVX512 __attribute__((target("avx512f")))

constexpr size_t kStep = 256;  // bytes of one stream between two branches

/// streams[s] is walked for `bytes`, all of them in lockstep.
template <size_t n>
uint64_t read_words(const std::byte* const (&streams)[n], size_t bytes) {
    uint64_t sum[4] = {};
    for (size_t at = 0; at < bytes; at += kStep)
        for (size_t s = 0; s < n; ++s)
            for (size_t k = 0; k < kStep; k += 8)
                sum[k / 8 % 4] ^= cpu::load<uint64_t>(streams[s] + at + k);
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
}

template <size_t n>
HF_AVX2 uint64_t read_avx2(const std::byte* const (&streams)[n], size_t bytes) {
    __m256i sum[4] = {};
    for (size_t at = 0; at < bytes; at += kStep) HF_UNROLL for (size_t s = 0; s < n; ++s) {
            const auto* p = reinterpret_cast<const __m256i*>(streams[s] + at);
            HF_UNROLL for (size_t k = 0; k < kStep / 32; ++k) {
                sum[k % 4] = _mm256_xor_si256(sum[k % 4], _mm256_loadu_si256(p + k));
            }
        }
    const __m256i all =
        _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
    alignas(32) uint64_t words[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(words), all);
    return words[0] ^ words[1] ^ words[2] ^ words[3];
}

template <size_t n>
HF_BENCH_AVX512 uint64_t read_avx512(const std::byte* const (&streams)[n], size_t bytes) {
    __m512i sum[4] = {};
    for (size_t at = 0; at < bytes; at += kStep) HF_UNROLL for (size_t s = 0; s < n; ++s) {
            const std::byte* p = streams[s] + at;
            HF_UNROLL for (size_t k = 0; k < kStep / 64; ++k) {
                sum[k] = _mm512_xor_si512(sum[k], _mm512_loadu_si512(p + 64 * k));
            }
        }
    const __m512i all =
        _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]), _mm512_xor_si512(sum[2], sum[3]));
    alignas(64) uint64_t words[8];
    _mm512_store_si512(words, all);
    uint64_t result = 0;
    for (uint64_t word : words) result ^= word;
    return result;
}

template <size_t n>
uint64_t read(cpu::Level level, const std::byte* const (&streams)[n], size_t bytes) {
    if (level >= cpu::Level::avx512vnni) return read_avx512(streams, bytes);
    if (level >= cpu::Level::avx2) return read_avx2(streams, bytes);
    return read_words(streams, bytes);
}

}  // namespace

uint64_t read_sequential(cpu::Level level, const std::byte* from, size_t bytes) {
    const std::byte* const stream[] = {from};
    return read(level, stream, bytes);
}

uint64_t read_four_streams(cpu::Level level, const std::byte* from, size_t bytes) {
    const size_t quarter = bytes / 4;
    const std::byte* const streams[] = {from, from + quarter, from + 2 * quarter,
                                        from + 3 * quarter};
    return read(level, streams, quarter);
}

}  // namespace hf::bench
