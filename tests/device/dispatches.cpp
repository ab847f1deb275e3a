// How steps are handed to threads: who may run beside whom, and into how many claims.
#include "libcore/ops/dispatches.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "libcore/ops/ops_table.h"
#include "libcore/ops/run_steps.h"
#include "tests/device/bench.h"

using namespace hf;
using namespace hf::test;

namespace {

/// A matrix of zeros, as (rows, cols) float32.
Weight matrix(Bench& bench, uint64_t rows, uint64_t cols) {
    Weight w;
    w.codec = codec_by_name("f32");
    w.shape = {rows, cols};
    w.data.buffer = bench.device.allocate(rows * cols * sizeof(float), Residency::device);
    return w;
}

/// "gemv gemv | rmsnorm": the names of the ops, dispatch by dispatch.
std::string names(const std::vector<Dispatch>& plan) {
    std::string text;
    for (const Dispatch& d : plan) {
        text += text.empty() ? "" : " |";
        for (size_t i = 0; i < d.count; ++i)
            text += fmt::format("{}{}", text.empty() ? "" : " ", row_of(d.step[i]->op).name);
    }
    return text;
}

/// What the claims of a dispatch do, in order: "0.0 0.1 1.0+2.0" is parts 0 and 1 of step 0, then
/// steps 1 and 2 as one.
std::string claims(const Dispatch& d) {
    std::string text;
    for (uint32_t c = 0; c < d.claims(); ++c) {
        const char* between = c == 0 ? "" : " ";
        d.for_claim(c, [&](size_t i, uint32_t part) {
            text += fmt::format("{}{}.{}", between, i, part);
            between = "+";
        });
    }
    return text;
}

StateSpec small_state() {
    StateSpec spec;
    spec.kv_layers = 2;
    spec.kv_heads = 2;
    spec.head_dim = 16;
    spec.delta_layers = 20;
    spec.key_heads = spec.value_heads = 2;
    spec.key_dim = spec.value_dim = 16;
    spec.conv_kernel = 4;
    return spec;
}

}  // namespace

TEST_CASE("dispatches: steps share one exactly when none writes what another uses") {
    SlotTable slots;
    const Slot x = slots.add("x", 32), a = slots.add("a", 32), b = slots.add("b", 32),
               c = slots.add("c", 32);
    Bench bench(small_state(), slots, 8);
    const Weight w = matrix(bench, 32, 32);
    const Tokens t = bench.pass(0, 1);
    const auto list = [](auto emit) {
        StepList steps;
        emit(steps);
        return steps.steps;
    };
    struct Case {
        std::string plan;
        std::vector<Step> steps;
    };
    const Case cases[] = {
        {"gemv gemv gemv", list([&](StepList& s) {
             s.gemv(w, x, a);
             s.gemv(w, x, b);
             s.gemv(w, x, c);
         })},
        {"gemv | gemv", list([&](StepList& s) {  // reads what is written
             s.gemv(w, x, a);
             s.gemv(w, a, b);
         })},
        {"gemv | gemv", list([&](StepList& s) {  // writes what is read
             s.gemv(w, x, a);
             s.gemv(w, b, x);
         })},
        {"gemv | gemv", list([&](StepList& s) {  // writes what is written
             s.gemv(w, x, a);
             s.gemv(w, b, a);
         })},
        {"gemv gemv | gemv", list([&](StepList& s) {  // the third needs the first alone
             s.gemv(w, x, a);
             s.gemv(w, x, b);
             s.gemv(w, a, c);
         })},
        {"gemv_residual | gemv_residual", list([&](StepList& s) {
             s.gemv_residual(w, a, x);
             s.gemv_residual(w, b, x);
         })},
        {"kv_write | attend | kv_write kv_write", list([&](StepList& s) {  // state of two layers
             s.kv_write(a, b, 0);
             s.attend(x, 2, 0, c);
             s.kv_write(a, b, 0);
             s.kv_write(a, b, 1);
         })},
        {"conv_commit | delta_commit", list([&](StepList& s) {
             s.conv_commit(3);
             s.delta_commit(3);
         })},
    };
    for (const Case& k : cases)
        for (const unsigned threads : {1u, 2u, 9u})
            CHECK(names(plan_dispatches(k.steps, t, threads)) == k.plan);
}

TEST_CASE("dispatches: at most so many steps share one, and rowless ones are left out") {
    SlotTable slots;
    const Slot x = slots.add("x", 32), y = slots.add("y", 32, Rows::logits);
    Bench bench(small_state(), slots, 8);
    StepList list;
    for (uint32_t i = 0; i < 20; ++i) list.conv_commit(i);
    const auto plan = plan_dispatches(list.steps, bench.pass(0, 1), 2);
    REQUIRE(plan.size() == 3);
    CHECK(plan[0].count == Dispatch::kMostSteps);
    CHECK(plan[2].count == 20 - 2 * Dispatch::kMostSteps);

    StepList head;
    head.take_rows(x, y);
    Tokens t = bench.pass(0, 1);
    CHECK(plan_dispatches(head.steps, t, 2).empty());
    t.logit_count = 1;
    CHECK(plan_dispatches(head.steps, t, 2).size() == 1);
}

TEST_CASE("dispatches: small steps are not cut, and neighbours of that kind are one claim") {
    SlotTable slots;
    const Slot x = slots.add("x", 1024), tall = slots.add("tall", 96), b = slots.add("b", 16),
               a = slots.add("a", 16), z = slots.add("z", 64);
    Bench bench(small_state(), slots, 8);
    const Weight w_tall = matrix(bench, 96, 1024), w_small = matrix(bench, 4, 1024),
                 w_b = matrix(bench, 16, 1024), w_z = matrix(bench, 64, 1024);
    StepList list;
    list.gemv(w_tall, x, tall);  // 384 KiB
    list.gemv(w_b, x, b);        // 64 KiB
    list.gemv(w_b, x, a);
    list.gemv(w_z, x, z);  // 256 KiB
    const Tokens one = bench.pass(0, 1);
    const auto plan = plan_dispatches(list.steps, one, 2);
    REQUIRE(plan.size() == 1);
    CHECK(claims(plan[0]) == "0.0 0.1 0.2 0.3 0.4 0.5 1.0+2.0 3.0 3.1 3.2 3.3");

    // two columns are twice the work
    const auto wider = plan_dispatches(list.steps, bench.pass(0, 2), 2);
    CHECK(wider[0].parts[0] == 12);
    CHECK(wider[0].parts[1] == 2);

    // one thread has no use for parts
    CHECK(claims(plan_dispatches(list.steps, one, 1)[0]) == "0.0+1.0+2.0+3.0");
}

TEST_CASE("dispatches: a large step has parts for all threads, and no more than serve them") {
    SlotTable slots;
    const Slot x = slots.add("x", 1024), y = slots.add("y", 8192);
    Bench bench(small_state(), slots, 8);
    const Weight w = matrix(bench, 8192, 1024);  // 32 MiB
    StepList list;
    list.gemv(w, x, y);
    for (const unsigned threads : {2u, 3u, 16u, 64u}) {
        CAPTURE(threads);
        const uint32_t parts = plan_dispatches(list.steps, bench.pass(0, 1), threads)[0].parts[0];
        CHECK(parts >= 4 * threads);
        CHECK(parts <= 512);  // of 64 KiB
        CHECK(parts <= 16 * threads);
    }
}

TEST_CASE("run_steps: dispatches of several steps give the bits of one step after another") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), a = slots.add("a", 512), b = slots.add("b", 8),
               c = slots.add("c", 512);
    Bench bench(small_state(), slots, 8);
    const auto values = random_floats(512 * 256, /*seed=*/31);
    Weight w = matrix(bench, 512, 256), w_b = matrix(bench, 8, 256);
    bench.device.upload(w.data.buffer, 0, std::as_bytes(std::span(values)));
    bench.device.upload(w_b.data.buffer, 0, std::as_bytes(std::span(values).first(8 * 256)));
    StepList list;
    list.gemv(w, x, a);
    list.gemv(w_b, x, b);
    list.gemv(w, x, c);
    list.silu_mul(a, c, c);
    const auto input = random_floats(5 * 256, /*seed=*/32);
    const auto outputs = [&](unsigned threads) {
        const Tokens t = bench.pass(0, 5);
        for (uint32_t i = 0; i < 5; ++i) put(t, x, i, &input[i * 256]);
        cpu::ThreadPool pool(threads);
        run_steps(list.steps, t, pool);
        return std::vector<float>(t.row(a, 0), t.row(c, 5));
    };
    const auto expected = outputs(1);
    for (const unsigned threads : {2u, 3u, 8u, 64u}) CHECK(outputs(threads) == expected);
}

TEST_CASE("run_steps: a profile counts every step once, with its bytes, and changes no bit") {
    SlotTable slots;
    const Slot x = slots.add("x", 256), a = slots.add("a", 512), b = slots.add("b", 512);
    Bench bench(small_state(), slots, 8);
    const auto values = random_floats(512 * 256, /*seed=*/33);
    Weight w = matrix(bench, 512, 256);
    bench.device.upload(w.data.buffer, 0, std::as_bytes(std::span(values)));
    StepList list;
    list.gemv(w, x, a);
    list.gemv(w, x, b);
    list.silu_mul(a, b, b);
    for (const unsigned threads : {1u, 2u}) {
        CAPTURE(threads);
        cpu::ThreadPool pool(threads);
        StepProfile profile;
        for (const uint32_t count : {1u, 3u, 3u}) {
            const Tokens t = bench.pass(0, count);
            std::fill_n(t.row(x, 0), count * 256, 0.5f);
            run_steps(list.steps, t, pool);
            const std::vector<float> plain(t.row(b, 0), t.row(b, count));
            std::fill(t.row(a, 0), t.row(b, count), 0.0f);
            run_steps(list.steps, t, pool, &profile);
            CHECK(std::vector<float>(t.row(b, 0), t.row(b, count)) == plain);
        }
        REQUIRE(profile.rows.size() == 4);  // two ops, passes of one and of several tokens
        for (const StepTimes& row : profile.rows) {
            const bool is_product = row.op == Op::gemv;
            const uint64_t calls = (is_product ? 2 : 1) * (row.several_tokens ? 2 : 1);
            CHECK(row.calls == calls);
            CHECK(row.bytes == (is_product ? calls * w.data.buffer.bytes() : 0));
            CHECK((row.codec == w.codec) == is_product);
            CHECK(row.shape.rows == (is_product ? 512 : 0));
            CHECK(row.seconds > 0);
            CHECK(row.thread_seconds > 0);
        }
    }
}
