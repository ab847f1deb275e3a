// The ops with state against slow references in double, on random data.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "cpuexec/activations.h"
#include "libcore/ops/ops_table.h"
#include "tests/device/bench.h"

using namespace hf;
using namespace hf::test;

namespace {

/// eps * terms * largest partial sum: what float sums of that length may lose.
double budget(double magnitude, size_t terms) {
    return std::numeric_limits<float>::epsilon() * std::sqrt(double(terms)) * magnitude;
}

/// What a cache of that type gives back for rows of `dim` numbers.
std::vector<float> stored(const KvType& kv, std::vector<float> values, size_t dim) {
    std::vector<std::byte> bytes(kv.codec->row_bytes(dim));
    for (size_t i = 0; i < values.size(); i += dim) {
        kv.encode(&values[i], dim, bytes.data());
        kv.codec->cpu.decode_row({bytes.data(), 1, dim, bytes.size(), nullptr}, 0, &values[i]);
    }
    return values;
}

}  // namespace

TEST_CASE("ops: every row has a name, pieces, bytes and a host function") {
    for (const OpRow& row : ops_table()) {
        CAPTURE(row.name);
        CHECK(!row.name.empty());
        CHECK(bool(row.pieces));
        CHECK(bool(row.bytes));
        CHECK(bool(row.host));
    }
}

TEST_CASE("attend: equals softmax in double, over caches, groups of heads, positions and borders") {
    struct Case {
        uint32_t heads, kv_heads, dim, before, count;
    };
    for (const Case& c : {Case{1, 1, 8, 0, 1}, Case{4, 2, 64, 0, 64}, Case{6, 2, 32, 63, 2},
                          Case{8, 1, 16, 100, 29}, Case{3, 3, 40, 129, 1}})
        for (const KvType& kv : kv_types()) {
            if (c.dim % kv.codec->group != 0) continue;
            CAPTURE(std::string(kv.name));
            CAPTURE(c.heads);
            CAPTURE(c.before);
            CAPTURE(c.count);
            StateSpec spec;
            spec.kv_layers = 2;
            spec.kv_heads = c.kv_heads;
            spec.head_dim = c.dim;
            SlotTable slots;
            const Slot q = slots.add("q", c.heads * c.dim), k = slots.add("k", c.kv_heads * c.dim),
                       v = slots.add("v", c.kv_heads * c.dim),
                       out = slots.add("o", c.heads * c.dim);
            const uint32_t length = c.before + c.count;
            Bench bench(spec, slots, length, std::string(kv.name).c_str());
            const auto k_in = random_floats(length * k.width, 1),
                       v_in = random_floats(length * k.width, 2);
            const auto keys = stored(kv, k_in, c.dim), values = stored(kv, v_in, c.dim);
            const auto queries = random_floats(length * q.width, 3, -4, 4);

            StepList write, all;
            write.kv_write(k, v, 1);  // the second layer: offsets matter
            all.kv_write(k, v, 1);
            all.attend(q, c.heads, 1, out);
            for (uint32_t at = 0; at < c.before; ++at) {
                const Tokens t = bench.pass(at, 1);
                put(t, k, 0, &k_in[at * k.width]);
                put(t, v, 0, &v_in[at * k.width]);
                bench.run(write, t);
            }
            const Tokens t = bench.pass(c.before, c.count);
            for (uint32_t i = 0; i < c.count; ++i) {
                put(t, k, i, &k_in[(c.before + i) * k.width]);
                put(t, v, i, &v_in[(c.before + i) * k.width]);
                put(t, q, i, &queries[(c.before + i) * q.width]);
            }
            bench.run(all, t);

            double worst = 0;
            for (uint32_t i = 0; i < c.count; ++i)
                for (uint32_t h = 0; h < c.heads; ++h) {
                    const uint32_t m = h / (c.heads / c.kv_heads), seen = c.before + i + 1;
                    std::vector<double> p(seen);
                    double sum = 0;
                    for (uint32_t j = 0; j < seen; ++j) {
                        double s = 0;
                        for (uint32_t e = 0; e < c.dim; ++e)
                            s += double(queries[(c.before + i) * q.width + h * c.dim + e]) *
                                 double(keys[j * k.width + m * c.dim + e]);
                        sum += p[j] = std::exp(s / std::sqrt(double(c.dim)));
                    }
                    for (uint32_t e = 0; e < c.dim; ++e) {
                        double want = 0;
                        for (uint32_t j = 0; j < seen; ++j)
                            want += p[j] / sum * double(values[j * k.width + m * c.dim + e]);
                        worst =
                            std::max(worst, std::abs(want - double(t.row(out, i)[h * c.dim + e])));
                    }
                }
            MESSAGE("worst " << worst << " of " << budget(4, c.dim));
            CHECK(worst <= budget(4, c.dim));
        }
}

TEST_CASE("delta rule: chunks of any size equal the token loop in double, in both head orders") {
    for (const HeadOrder order : {HeadOrder::grouped, HeadOrder::tiled})
        for (const uint32_t chunk : {1u, 2u, 7u, 64u}) {
            CAPTURE(int(order));
            CAPTURE(chunk);
            StateSpec spec;
            spec.delta_layers = 1;
            spec.key_heads = 2;
            spec.value_heads = 6;
            spec.key_dim = 16;
            spec.value_dim = 24;
            spec.conv_kernel = 4;
            spec.head_order = order;
            const uint32_t n = 80, heads = 6, dk = 16, dv = 24, key_width = 2 * dk;
            SlotTable slots;
            const Slot qkv = slots.add("qkv", spec.channels()), g = slots.add("g", heads),
                       beta = slots.add("beta", heads), out = slots.add("o", heads * dv);
            Bench bench(spec, slots, n);
            const auto x = random_floats(n * qkv.width, 11),
                       decays = random_floats(n * heads, 12, -3, 0),
                       betas = random_floats(n * heads, 13, 0, 1);
            StepList forward, commit;
            forward.delta_norm_qk(qkv, 0);
            forward.delta_rule(qkv, g, beta, 0, out);
            forward.delta_keep(qkv, 0);
            commit.delta_commit(0);

            std::vector<double> s(heads * dk * dv);  // the reference's state
            double worst = 0;
            for (uint32_t at = 0; at < n; at += chunk) {
                const uint32_t count = std::min(chunk, n - at);
                const Tokens t = bench.pass(at, count);
                for (uint32_t i = 0; i < count; ++i) {
                    put(t, qkv, i, &x[(at + i) * qkv.width]);
                    put(t, g, i, &decays[(at + i) * heads]);
                    put(t, beta, i, &betas[(at + i) * heads]);
                }
                bench.run(forward, t);
                for (uint32_t i = 0; i < count; ++i)
                    for (uint32_t h = 0; h < heads; ++h) {
                        const uint32_t kh = order == HeadOrder::grouped ? h / 3 : h % 2;
                        const float* row = &x[(at + i) * qkv.width];
                        const float *q = row + kh * dk, *k = row + key_width + kh * dk,
                                    *v = row + 2 * key_width + h * dv;
                        double qq = 1e-6, kk = 1e-6;
                        for (uint32_t a = 0; a < dk; ++a) {
                            qq += double(q[a]) * double(q[a]);
                            kk += double(k[a]) * double(k[a]);
                        }
                        const double alpha = std::exp(double(decays[(at + i) * heads + h]));
                        double* state = &s[h * dk * dv];
                        for (uint32_t e = 0; e < dv; ++e) {
                            double predicted = 0, o = 0;
                            for (uint32_t a = 0; a < dk; ++a) {
                                state[a * dv + e] *= alpha;
                                predicted += state[a * dv + e] * double(k[a]) / std::sqrt(kk);
                            }
                            const double d =
                                double(betas[(at + i) * heads + h]) * (double(v[e]) - predicted);
                            for (uint32_t a = 0; a < dk; ++a) {
                                state[a * dv + e] += double(k[a]) / std::sqrt(kk) * d;
                                o += state[a * dv + e] * double(q[a]) / std::sqrt(qq) /
                                     std::sqrt(double(dk));
                            }
                            worst =
                                std::max(worst, std::abs(o - double(t.row(out, i)[h * dv + e])));
                        }
                    }
                bench.run(commit, t);
            }
            const float* got =
                reinterpret_cast<float*>(bench.state.data() + bench.layout.delta_layers[0].s);
            for (size_t e = 0; e < s.size(); ++e)
                worst = std::max(worst, std::abs(s[e] - double(got[e])));
            MESSAGE("worst " << worst << " of " << budget(2, dk + chunk));
            CHECK(worst <= budget(2, dk + chunk));
        }
}

TEST_CASE("delta rule: a head that forgets fast leaves no denormal numbers in the state") {
    StateSpec spec;
    spec.delta_layers = spec.key_heads = spec.value_heads = 1;
    spec.key_dim = spec.value_dim = 8;
    spec.conv_kernel = 4;
    constexpr uint32_t kCount = 64;
    SlotTable slots;
    const Slot qkv = slots.add("qkv", spec.channels()), g = slots.add("g", 1),
               beta = slots.add("beta", 1), out = slots.add("o", 8);
    Bench bench(spec, slots, kCount);
    const Tokens t = bench.pass(0, kCount);
    const std::vector<float> ones(qkv.width, 1.0f);
    const float decay = -1.42f;  // 63 of it: exp(-89.5), 1.3e-39
    for (uint32_t i = 0; i < kCount; ++i) {
        put(t, qkv, i, ones.data());
        put(t, g, i, &decay);
        const float learns = i == 0 ? 1.0f : 0.0f;
        put(t, beta, i, &learns);
    }
    StepList pass;
    pass.delta_norm_qk(qkv, 0);
    pass.delta_rule(qkv, g, beta, 0, out);
    pass.delta_keep(qkv, 0);
    pass.delta_commit(0);
    bench.run(pass, t);
    const auto* s = reinterpret_cast<float*>(bench.state.data() + bench.layout.delta_layers[0].s);
    for (size_t e = 0; e < 64; ++e) CHECK(std::fpclassify(s[e]) != FP_SUBNORMAL);
    for (uint32_t i = 0; i < kCount; ++i)
        for (uint32_t e = 0; e < 8; ++e) CHECK(std::fpclassify(t.row(out, i)[e]) != FP_SUBNORMAL);
}

TEST_CASE("convolution: passes of any size and partial commits equal one walk over all inputs") {
    for (const uint32_t kernel : {2u, 4u, 7u}) {
        CAPTURE(kernel);
        StateSpec spec;
        spec.delta_layers = 1;
        spec.key_heads = spec.value_heads = 1;
        spec.key_dim = spec.value_dim = 7;
        spec.conv_kernel = kernel;
        const uint32_t n = 40, channels = 21;
        SlotTable slots;
        const Slot m = slots.add("m", channels), y = slots.add("y", channels);
        Bench bench(spec, slots, n);
        const auto x = random_floats(n * channels, 21), taps = random_floats(channels * kernel, 22);
        const Weight w = bench.weight({channels, kernel}, taps);
        StepList forward, commit;
        forward.conv_silu(m, w, 0, y);
        commit.conv_commit(0);

        double worst = 0;
        const uint32_t kept[] = {1, 0, 3, 2, 5, 1, 8};  // of passes of eight
        for (uint32_t at = 0, pass = 0; at + 8 <= n; at += kept[pass++ % std::size(kept)]) {
            const Tokens t = bench.pass(at, 8);
            for (uint32_t i = 0; i < 8; ++i) put(t, m, i, &x[(at + i) * channels]);
            bench.run(forward, t);
            for (uint32_t i = 0; i < 8; ++i)
                for (uint32_t c = 0; c < channels; ++c) {
                    double sum = 0;
                    for (uint32_t j = 0; j < kernel; ++j)
                        if (at + i + j + 1 >= kernel)
                            sum += double(taps[c * kernel + j]) *
                                   double(x[(at + i + j + 1 - kernel) * channels + c]);
                    const double want = sum / (1 + std::exp(-sum));
                    worst = std::max(worst, std::abs(want - double(t.row(y, i)[c])));
                }
            const uint32_t keep = kept[pass % std::size(kept)];
            if (keep > 0) bench.run(commit, bench.pass(at, keep));
        }
        CHECK(worst <= budget(2, kernel));
    }
}

TEST_CASE("rope: turns half-split pairs by the angle of the position and leaves the rest alone") {
    SlotTable slots;
    const Slot x = slots.add("x", 2 * 12);
    StateSpec spec;
    spec.kv_layers = 1;
    spec.kv_heads = 1;
    spec.head_dim = 12;
    Bench bench(spec, slots, 8);
    const std::vector<float> freqs = {1.0f, 0.01f, 1e-4f, 1e-6f};  // 8 of 12 dims turn
    const Weight w = bench.weight({1, 4}, freqs);
    StepList list;
    list.rope(x, w, 2, RopePairs::half_split);
    for (const uint32_t pos : {0u, 1u, 1000u, 262143u}) {
        const auto before = random_floats(3 * x.width, pos);
        const Tokens t = bench.pass(pos, 3);
        for (uint32_t i = 0; i < 3; ++i) put(t, x, i, &before[i * x.width]);
        bench.run(list, t);
        for (uint32_t i = 0; i < 3; ++i)
            for (uint32_t h = 0; h < 2; ++h)
                for (uint32_t e = 0; e < 12; ++e) {
                    const float* in = &before[i * x.width + h * 12];
                    double want = double(in[e]);
                    if (e < 8) {
                        const double angle = double(pos + i) * double(freqs[e % 4]);
                        const double other = double(in[e < 4 ? e + 4 : e - 4]);
                        want = double(in[e]) * std::cos(angle) +
                               (e < 4 ? -1 : 1) * other * std::sin(angle);
                    }
                    CHECK(double(t.row(x, i)[h * 12 + e]) == doctest::Approx(want).epsilon(1e-6));
                }
    }
}

TEST_CASE("prepare and gemv: pieces on threads equal a column prepared and multiplied at once") {
    const Codec& codec = *codec_by_name("hfq4g128");  // takes any number of columns
    const cpu::Prepare& how = codec.cpu.prepare;
    constexpr uint32_t kRows = 37, kCols = 3000, kTokens = 3;
    std::vector<std::byte> bytes(kRows * codec.row_bytes(kCols));
    std::mt19937 random(4);
    for (uint32_t r = 0; r < kRows; ++r)
        for (uint32_t c = 0; c < kCols; c += codec.group) {
            std::byte* block = &bytes[r * codec.row_bytes(kCols) + codec.row_bytes(c)];
            for (size_t i = 0; i < codec.row_bytes(1); ++i) block[i] = std::byte(random());
            const float pair[] = {0.5f + float(c), -3.25f};
            std::memcpy(block, pair, sizeof(pair));
        }
    Weight w;
    w.codec = &codec;
    w.shape = {kRows, kCols};
    w.data.buffer = Buffer::view(bytes, Residency::device);
    const auto values = random_floats(kTokens * kCols, 5);
    for (const auto a : {cpu::Activations::i16, cpu::Activations::int8}) {
        const size_t width = cpu::prepared_floats(how, a, kCols);
        SlotTable slots;
        const Slot x = slots.add("x", kCols), prepared = slots.add("p", width),
                   y = slots.add("y", kRows);
        StepList list;
        list.prepare(w, a, x, prepared);
        list.gemv(w, x, y);
        list.steps.back().in[0] = prepared;
        list.steps.back().params.activations = a;
        Bench bench({}, slots, kTokens);
        const Tokens t = bench.pass(0, kTokens);
        for (uint32_t i = 0; i < kTokens; ++i) put(t, x, i, &values[i * kCols]);
        bench.run(list, t);
        for (uint32_t i = 0; i < kTokens; ++i) {
            std::vector<float> column(width), want(kRows);
            cpu::prepare(cpu::Level::scalar, how, a, &values[i * kCols], kCols, column.data());
            codec.cpu.dot[0][size_t(a)](w.view(Lane::device), 0, kRows, {column.data(), width, 1},
                                        want.data(), kRows);
            CHECK(std::equal(want.begin(), want.end(), t.row(y, i)));
        }
    }
}
