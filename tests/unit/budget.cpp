// The arithmetic of budgets: layers that leave, rows that are shared, lines that say so.
#include "libcore/load/budget.h"

#include <doctest/doctest.h>

#include "libcore/base/error.h"
#include "libcore/load/placement.h"

using namespace hf;

namespace {

using Lines = std::vector<std::string>;

Budget budget_of(Budget::Layers kind, uint32_t layers = 0) {
    Budget budget;
    budget.layers = kind;
    budget.device_layers = layers;
    return budget;
}

}  // namespace

TEST_CASE("budget: the layers that leave are counted from the front, whatever is asked for") {
    const struct {
        const char* input;
        uint32_t layers;
        std::optional<uint32_t> stay;
        uint32_t spilled;
    } rows[] = {
        {"unset", 32, {}, 0},
        {"0", 32, 0, 32},
        {"1", 32, 1, 31},
        {"24", 32, 24, 8},
        {"n - 1", 32, 31, 1},
        {"n exactly", 32, 32, 0},
        {"> n", 32, 33, 0},
        {"far beyond n", 32, UINT32_MAX, 0},
        {"no layers, budget 0", 0, 0, 0},
        {"no layers, unset", 0, {}, 0},
        {"one layer, budget 999", 1, 999, 0},
    };
    for (const auto& row : rows) {
        CAPTURE(row.input);
        CHECK(spilled_layers(row.layers, row.stay) == row.spilled);
    }
    for (uint32_t n = 0; n <= 70; ++n)
        for (uint32_t r = 0; r <= 80; ++r) CHECK(spilled_layers(n, r) + std::min(n, r) == n);
}

TEST_CASE("budget: what was asked for is said in lines that scripts can read") {
    const struct {
        const char* input;
        uint32_t layers, spilled;
        Budget budget;
        Lines lines;
    } rows[] = {
        {"unset, fits", 32, 0, {}, {}},
        {"unset, does not fit",
         32,
         8,
         {},
         {"  partial offload: not everything fits, so as many layers stay as do "
          "(memory.gpu_layer_budget = auto)",
          "  partial offload: 24 resident / 8 offloaded, i_gpu_start=8"}},
        {"0",
         32,
         32,
         budget_of(Budget::Layers::fixed, 0),
         {"  partial offload: 0 resident / 32 offloaded, i_gpu_start=32"}},
        {"24",
         32,
         8,
         budget_of(Budget::Layers::fixed, 24),
         {"  partial offload: 24 resident / 8 offloaded, i_gpu_start=8"}},
        {"n exactly",
         32,
         0,
         budget_of(Budget::Layers::fixed, 32),
         {"  partial offload: 0 offloaded (32 resident), i_gpu_start=0"}},
        {"> n",
         32,
         0,
         budget_of(Budget::Layers::fixed, 33),
         {"  partial offload: 33 layers asked for, more than the 32 of this model; everything "
          "stays on the device"}},
        {"one layer, budget 999",
         1,
         0,
         budget_of(Budget::Layers::fixed, 999),
         {"  partial offload: 999 layers asked for, more than the 1 of this model; everything "
          "stays on the device"}},
        {"auto, fits",
         32,
         0,
         budget_of(Budget::Layers::automatic),
         {"  partial offload: auto keeps 32 of 32 layers",
          "  partial offload: 0 offloaded (32 resident), i_gpu_start=0"}},
        {"auto, does not fit",
         32,
         8,
         budget_of(Budget::Layers::automatic),
         {"  partial offload: auto keeps 24 of 32 layers",
          "  partial offload: 24 resident / 8 offloaded, i_gpu_start=8"}},
    };
    for (const auto& row : rows) {
        CAPTURE(row.input);
        CHECK(split_lines(row.layers, row.spilled, row.budget) == row.lines);
    }
    Budget ffn = budget_of(Budget::Layers::fixed, 24);
    ffn.spill = Spill::ffn;
    CHECK(split_lines(32, 8, ffn) == Lines{"  partial offload: 24 resident / 8 offloaded, "
                                           "i_gpu_start=8 (feed-forward only)"});
}

TEST_CASE("budget: both sides of a split matrix get whole steps of 8 rows, and at least one") {
    const struct {
        uint64_t rows;
        double share;
        uint64_t device_rows;
    } cases[] = {
        {1024, 0, 0},    {1024, 1, 1024},     {1024, 0.375, 384}, {1024, 0.3749, 376},
        {1024, 1e-9, 8}, {1024, 0.999, 1016}, {1000, 0.5, 496},   {1001, 0.9999, 993},
        {16, 0.5, 8},    {16, 0.01, 8},       {16, 0.99, 8},      {17, 0.99, 9},
        {15, 0.5, 0},    {8, 0.99, 0},        {15, 1, 15},        {1, 0, 0},
    };
    for (const auto& c : cases) {
        CAPTURE(c.rows);
        CAPTURE(c.share);
        CHECK(split_row(c.rows, c.share) == c.device_rows);
    }
}

TEST_CASE("layout: the first layers leave, the rest and the output stay on device 0") {
    for (uint32_t n : {0u, 1u, 5u})
        for (uint32_t s = 0; s <= n; ++s) {
            const Layout layout = lay_out_layers(n, s);
            CHECK(layout.spilled() == s);
            CHECK(layout.output_device == 0);
            for (uint32_t l = 0; l < n; ++l) {
                CHECK(layout.layer_device[l] == 0);
                CHECK((layout.layer_residency[l] == Residency::host_mapped) == (l < s));
            }
            CHECK_NOTHROW(check_layout(layout, n, 1));
        }
}

TEST_CASE("layout: devices that are not there and lists of another length are refused by number") {
    const auto sentence = [](const Layout& layout, uint32_t devices) -> std::string {
        try {
            check_layout(layout, 4, devices);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    };
    const auto has = [](const std::string& text, const char* part) {
        return text.find(part) != text.npos;
    };
    Layout layout = lay_out_layers(4, 2);
    CHECK(sentence(layout, 1) == "");
    layout.output_device = 1;
    CHECK(has(sentence(layout, 1), "output is placed on device 1, but there are 1"));
    CHECK(sentence(layout, 2) == "");
    layout.layer_device[3] = 7;
    CHECK(has(sentence(layout, 2), "layer 3 is placed on device 7, but there are 2"));
    CHECK(has(sentence(lay_out_layers(3, 0), 1), "3 devices and 3 residencies for the 4 layers"));
    Layout uneven = lay_out_layers(4, 0);
    uneven.layer_residency.pop_back();
    CHECK(has(sentence(uneven, 1), "4 devices and 3 residencies"));
}
