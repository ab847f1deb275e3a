// The integer dots of one level. Compiled once per level: avx2.h, avxvnni.h and avx512.h include
// this inside their namespaces, after they have defined HF_LEVEL and HF_LEVEL_INLINE (the target
// attributes) and what is used here: Isa, Bytes, Ints, Floats, kHalves, and the functions on them.

/// What a format says of the scales of four rows, and of the v-th four terms of a step.
template <class F>
struct ScalesOf {
    HF_LEVEL_INLINE static Floats rows(Rows rows) {
        Floats scales{};
        if constexpr (requires { F::row_scales(Isa{}, rows, scales); })
            F::row_scales(Isa{}, rows, scales);
        return scales;
    }
    HF_LEVEL_INLINE static void terms(Rows w, size_t v, const Place<Floats>& place, Floats& scale,
                                      Floats& zero) {
        if constexpr (HasFrame<F>)
            F::scales(Isa{}, w, place, scale, zero);
        else
            F::scales(Isa{}, w, v, scale, zero);
    }
};

template <class F, Activations a>
struct Driver {
    using S = Shape<F>;

    /// The exact sums of four terms, four rows and T columns.
    template <size_t T>
    HF_LEVEL_INLINE static void sum_terms(Rows w, size_t v, const std::byte* x, size_t stride,
                                          Ints (&sums)[T]) {
        // Where a term has all lanes, both halves of a vector belong to it
        constexpr size_t piled = S::lanes == 4 ? kHalves : 1, halves = kHalves / piled;
        Bytes piles[T][S::lanes][halves];
        HF_UNROLL for (size_t k = 0; k < S::lanes; ++k) {
            HF_UNROLL for (size_t h = 0; h < halves; ++h) {
                Bytes partial[T][kStreams];
                HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
                    Bytes codes[piled * S::parts];
                    HF_UNROLL for (size_t j = 0; j < piled; ++j) {
                        F::unpack(Isa{}, w[s], v, k, h + j, codes + j * S::parts);
                    }
                    HF_UNROLL for (size_t t = 0; t < T; ++t) {
                        partial[t][s] = products<F, a>(codes, x + t * stride, k, h);
                    }
                }
                HF_UNROLL for (size_t t = 0; t < T; ++t) piles[t][k][h] = add_rows(partial[t]);
            }
        }
        HF_UNROLL for (size_t t = 0; t < T; ++t) sums[t] = join(piles[t]);
    }

    /// acc += zero * (d * S), then acc += sum * (scale * d).
    HF_LEVEL_INLINE static void add_terms(const Ints& sums, const Floats& scale, const Floats& zero,
                                          const std::byte* x, Floats& acc) {
        constexpr Prepare p = F::prepare;
        HF_UNROLL for (size_t h = 0; h < kHalves; ++h) {
            const std::byte* d = x + scales_at(p, a) + h * 64 / kHalves;
            const std::byte* s = x + sums_at(p, a) + h * 64 / kHalves;
            auto complete = sums.v[h];
            if constexpr (p.zeros) {
                acc.v[h] = fused(zero.v[h], load_floats(s), acc.v[h]);
            } else if constexpr (subtracts_offset<F>) {
                complete = subtract(complete, load_bytes(s));
            }
            acc.v[h] = fused(to_floats(complete), times(scale.v[h], load_floats(d)), acc.v[h]);
        }
    }

    template <size_t T>
    HF_LEVEL_INLINE static void add_step(Rows w, const Place<Floats>& place, const std::byte* x,
                                         size_t stride, Floats (&acc)[T]) {
        HF_UNROLL for (size_t v = 0; v < S::step / S::unit; ++v) {
            const std::byte* at = x + v * unit_bytes(F::prepare, a);
            Ints sums[T];
            sum_terms(w, v, at, stride, sums);
            Floats scale, zero;
            ScalesOf<F>::terms(w, v, place, scale, zero);
            HF_UNROLL for (size_t t = 0; t < T; ++t) {
                add_terms(sums[t], scale, zero, at + t * stride, acc[t]);
            }
        }
    }

    /// The end of a row, less than a step: a copy, since nothing behind a row may be read.
    static const std::byte* copy_rest(const std::byte* w, size_t cols, std::byte* copy) {
        std::memset(copy, 0, S::step_bytes);
        std::memcpy(copy, w, S::rest_bytes(cols));
        return copy;
    }

    template <size_t T>
    HF_LEVEL static void dot_tile(Rows rows, size_t cols, const float* columns, size_t stride,
                                  float (*y)[kStreams]) {
        constexpr bool may_rest = F::weights < S::step;
        alignas(64) std::byte copies[kStreams][may_rest ? S::step_bytes : 1];
        const std::byte* w[kStreams];
        const std::byte* x = reinterpret_cast<const std::byte*>(columns);
        Floats acc[T], before[T];
        const Floats row_scales = ScalesOf<F>::rows(rows);
        HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] = rows[s] + blocks_at<F>(cols);
        HF_UNROLL for (size_t t = 0; t < T; ++t) acc[t] = before[t] = Floats{};
        stride *= sizeof(float);
        for (size_t column = 0; cols > 0; column += S::step, cols -= std::min(cols, S::step)) {
            const bool rest = may_rest && cols < S::step;
            HF_UNROLL for (size_t s = 0; s < kStreams; ++s) {
                if (rest) w[s] = copy_rest(w[s], cols, copies[s]);
                HF_UNROLL for (size_t line = 0; line < S::step_bytes; line += 64) {
                    _mm_prefetch(reinterpret_cast<const char*>(w[s] + kPrefetch + line),
                                 _MM_HINT_T0);
                }
            }
            if (rest) {
                HF_UNROLL for (size_t t = 0; t < T; ++t) before[t] = acc[t];
            }
            add_step(w, {rows, row_scales, column}, x, stride, acc);
            HF_UNROLL for (size_t s = 0; s < kStreams; ++s) w[s] += S::step_bytes;
            x += S::step / S::unit * unit_bytes(F::prepare, a);
            if (rest) {  // terms that the row does not have are left out of the lanes
                const size_t terms = (cols + F::prepare.term - 1) / F::prepare.term;
                HF_UNROLL for (size_t t = 0; t < T; ++t) {
                    take_terms(terms, acc[t], before[t]);
                    acc[t] = before[t];
                }
            }
        }
        HF_UNROLL for (size_t t = 0; t < T; ++t) store_sums(acc[t], y[t]);
    }

    static DotTile tile_of(size_t count) {
        if constexpr (kTile >= 4)
            if (count == 4) return dot_tile<4>;
        return count == 2 ? dot_tile<2> : dot_tile<1>;
    }
};

template <class F, Activations a>
void dot(const WeightView& W, size_t r0, size_t r1, const Columns& X, float* y, size_t y_stride) {
    dot_by_tiles(Driver<F, a>::tile_of, kTile, W, r0, r1, X, y, y_stride);
}
