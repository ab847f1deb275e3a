// The state slab and the activation arena: regions that do not overlap, and sizes that are checked.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/model/slots.h"
#include "libcore/model/state.h"

using namespace hf;

namespace {

StateSpec small_spec() {
    StateSpec spec;
    spec.kv_layers = 2;
    spec.kv_heads = 3;
    spec.head_dim = 32;
    spec.delta_layers = 3;
    spec.key_heads = 1;
    spec.value_heads = 2;
    spec.key_dim = 5;
    spec.value_dim = 7;
    spec.conv_kernel = 4;
    return spec;
}

struct Region {
    uint64_t begin, bytes;
};

std::vector<Region> regions(const StateLayout& l) {
    const StateSpec& s = l.spec;
    const uint64_t f = sizeof(float), pending = l.max_pending;
    std::vector<Region> all;
    for (const DeltaLayer& d : l.delta_layers) {
        all.push_back({d.s, f * s.value_heads * s.key_dim * s.value_dim});
        all.push_back({d.conv, f * (s.conv_kernel - 1) * s.channels()});
        all.push_back({d.pending_m, f * pending * s.channels()});
        all.push_back({d.pending_k, f * pending * s.key_heads * s.key_dim});
        all.push_back({d.pending_d, f * pending * s.value_heads * s.value_dim});
        all.push_back({d.pending_g, f * pending * s.value_heads});
    }
    for (const KvLayer& k : l.kv_layers)
        for (const uint64_t begin : {k.k, k.v}) all.push_back({begin, l.max_seq * l.kv_row_bytes});
    std::ranges::sort(all, {}, &Region::begin);
    return all;
}

}  // namespace

TEST_CASE("state: the regions of a slab are aligned, inside it, and do not overlap") {
    for (const KvType& kv : kv_types())
        for (const uint32_t max_seq : {1u, 63u, 1000u}) {
            CAPTURE(kv.name);
            CAPTURE(max_seq);
            const StateLayout l = lay_out_state(small_spec(), kv, max_seq, std::min(max_seq, 64u));
            CHECK(l.kv_row_bytes == kv.codec->row_bytes(3 * 32));
            uint64_t end = 0;
            for (const Region& r : regions(l)) {
                CHECK(r.begin % 64 == 0);
                CHECK(r.begin >= end);
                end = r.begin + r.bytes;
            }
            CHECK(end <= l.bytes);
        }
}

TEST_CASE("state: the keys of a head lie one after another, and all heads in the layer's region") {
    StateSpec spec;
    spec.kv_layers = 1;
    spec.kv_heads = 3;
    spec.head_dim = 64;
    for (const KvType& kv : kv_types()) {
        CAPTURE(std::string(kv.name));
        const StateLayout l = lay_out_state(spec, kv, 100, 64);
        const uint64_t k = l.kv_layers[0].k, row = kv.codec->row_bytes(64);
        CHECK(l.kv_row(k, 0, 0) == k);
        CHECK(l.kv_row(k, 1, 7) == k + (100 + 7) * row);
        CHECK(l.kv_row(k, 2, 99) + row == k + l.max_seq * l.kv_row_bytes);
    }
}

TEST_CASE("state: what a checkpoint copies is the recurrent state of all layers and nothing else") {
    const StateLayout l = lay_out_state(small_spec(), *kv_type_by_name("f16"), 100, 64);
    for (const DeltaLayer& d : l.delta_layers) {
        CHECK(d.s < l.recurrent_bytes);
        CHECK(d.conv < l.recurrent_bytes);
        CHECK(d.pending_m >= l.recurrent_bytes);
    }
    for (const KvLayer& k : l.kv_layers) CHECK(k.k >= l.recurrent_bytes);
}

TEST_CASE("state: a cache type whose blocks do not fit the heads is refused with both numbers") {
    StateSpec spec = small_spec();
    spec.head_dim = 40;
    CHECK_THROWS_WITH_AS(
        lay_out_state(spec, *kv_type_by_name("q8"), 100, 64),
        doctest::Contains("stores 32 values at a time, but the model's head_dim is 40"), Error);
    CHECK_NOTHROW(lay_out_state(spec, *kv_type_by_name("f16"), 100, 64));
}

TEST_CASE("state: sizes that do not fit are an error and not a small slab") {
    StateSpec spec = small_spec();
    spec.kv_layers = 1u << 20;
    spec.kv_heads = 1024;
    spec.head_dim = 512;
    CHECK_THROWS_AS(lay_out_state(spec, *kv_type_by_name("f32"), 1u << 24, 64), Error);
}

TEST_CASE("arena: slots have as many rows as their kind, and none overlap") {
    SlotTable table;
    table.add("a", 5);
    table.add("b", 17, Rows::logits);
    table.add("c", 1);
    const ArenaLayout l = lay_out_arena(table, /*max_tokens=*/10, /*max_logits=*/3);
    CHECK(l.offset == std::vector<uint64_t>{0, 64, 128});  // 50 and 51 floats, rounded up to 16
    CHECK(l.floats == 144);
}
