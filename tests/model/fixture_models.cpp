// The tiny models against the outputs of Hugging Face's classes (float32, CPU), which lie beside
// them. The models are chaotic: an error anywhere is visible in the logits.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr float kTolerance = 2e-4f;  // on logits of size 1 to 10; the references differ by 6e-5

std::vector<std::string> fixture_models() {
    std::vector<std::string> folders;
    for (const auto& entry : std::filesystem::directory_iterator(data_path("models")))
        if (entry.is_directory()) folders.push_back(entry.path().string());
    std::ranges::sort(folders);
    REQUIRE(folders.size() >= 2);
    return folders;
}

template <class T>
std::vector<T> expected(const std::string& folder, const char* name) {
    const auto values = read_values<T>(folder + "/" + name);
    REQUIRE(!values.empty());
    return values;
}

void check_close(const std::string& what, std::span<const float> got, std::span<const float> want) {
    const float worst = worst_difference(got, want);
    MESSAGE(what << ": worst difference " << worst);
    CHECK(worst <= kTolerance);
}

/// Every prompt length has one set of pass sizes that the reference must match.
std::vector<uint32_t> one_by_one(size_t n) {
    return cut_every(n, 1);
}
std::vector<uint32_t> on_the_grid(size_t n) {
    return cut_every(n, Session::kMaxTokens);
}

}  // namespace

TEST_CASE("fixtures: a prompt in one pass has the reference's logits at every position") {
    for (const std::string& folder : fixture_models()) {
        CAPTURE(folder);
        Loaded m(folder);
        const auto ids = expected<int32_t>(folder, "input_ids.i32");
        check_close("prompt", run_ids(m.session, ids, on_the_grid(ids.size())),
                    expected<float>(folder, "logits_full.f32"));
    }
}

TEST_CASE("fixtures: one token at a time has the reference's logits") {
    for (const std::string& folder : fixture_models()) {
        CAPTURE(folder);
        Loaded m(folder);
        const auto ids = expected<int32_t>(folder, "input_ids.i32");
        check_close("steps", run_ids(m.session, ids, one_by_one(ids.size())),
                    expected<float>(folder, "logits_step.f32"));
    }
}

TEST_CASE("fixtures: token by token and whole prompts agree within the references' own spread") {
    for (const std::string& folder : fixture_models()) {
        CAPTURE(folder);
        Loaded a(folder), b(folder);
        const auto ids = expected<int32_t>(folder, "long_input_ids.i32");
        check_close("steps against prompt", run_ids(a.session, ids, one_by_one(ids.size())),
                    run_ids(b.session, ids, on_the_grid(ids.size())));
    }
}

TEST_CASE("fixtures: the residual stream behind every layer is the reference's") {
    for (const std::string& folder : fixture_models()) {
        CAPTURE(folder);
        Setup setup;
        setup.load.tap_layers = {LoadOptions::kTapEmbedding, 0, 1, 2, 3};
        const auto want = expected<float>(folder, "hidden_last.f32");
        const uint32_t dim = Loaded(folder).model.config.dim;
        const uint32_t layers = uint32_t(want.size() / dim) - 2;
        setup.load.tap_layers.resize(layers + 1);
        Loaded m(folder, setup);
        REQUIRE(layers == m.model.config.n_layers);

        const auto ids = expected<int32_t>(folder, "input_ids.i32");
        run_ids(m.session, ids, on_the_grid(ids.size()));
        const uint32_t rows = uint32_t(ids.size());
        const auto taps = m.session.read_slot(m.model.taps, rows);
        const auto normed = m.session.read_slot(m.model.normed, rows);
        std::vector<float> got(taps.end() - ptrdiff_t(dim * (layers + 1)), taps.end());
        got.insert(got.end(), normed.end() - ptrdiff_t(dim), normed.end());
        check_close("hidden", got, want);
    }
}

TEST_CASE("fixtures: the greedy continuation is the reference's") {
    for (const std::string& folder : fixture_models()) {
        CAPTURE(folder);
        Loaded m(folder);
        const auto ids = expected<int32_t>(folder, "input_ids.i32");
        const auto want = expected<int32_t>(folder, "greedy_ids.i32");
        const auto logits = run_ids(m.session, ids, on_the_grid(ids.size()));
        const std::span<const float> last = std::span(logits).last(m.model.config.vocab);
        CHECK(greedy(m.session, argmax(last), want.size()) == want);
    }
}

TEST_CASE("fixtures: a long prompt keeps the reference's choice at every position, however cut") {
    for (const std::string& folder : fixture_models())
        for (const uint32_t piece : {1u, 7u, 64u}) {
            CAPTURE(folder);
            CAPTURE(piece);
            Loaded m(folder);
            const size_t vocab = m.model.config.vocab;
            const auto ids = expected<int32_t>(folder, "long_input_ids.i32");
            const auto logits = run_ids(m.session, ids, cut_every(ids.size(), piece));
            std::vector<int32_t> choice;
            for (size_t t = 0; t < ids.size(); ++t)
                choice.push_back(argmax(std::span(logits).subspan(t * vocab, vocab)));
            CHECK(choice == expected<int32_t>(folder, "long_argmax.i32"));
            check_close("long prompt", std::span(logits).last(vocab),
                        expected<float>(folder, "long_logits_last.f32"));
        }
}

TEST_CASE("fixtures: the first delta-net layer remembers what the reference remembers") {
    const std::string folder = data_path("models/tiny_qwen35_a");
    for (const uint32_t piece : {1u, 64u}) {
        CAPTURE(piece);
        Loaded m(folder);
        const auto ids = expected<int32_t>(folder, "input_ids.i32");
        run_ids(m.session, ids, cut_every(ids.size(), piece));
        const StateLayout& layout = m.session.state_layout();
        const auto bytes = m.session.read_recurrent();
        const auto floats = [&](uint64_t offset, size_t n) {
            std::vector<float> v(n);
            std::memcpy(v.data(), bytes.data() + offset, n * sizeof(float));
            return v;
        };

        const auto want_s = expected<float>(folder, "dn_state.f32");  // (value_heads, dk, dv)
        check_close("delta state", floats(layout.delta_layers[0].s, want_s.size()), want_s);

        const auto want_conv = expected<float>(folder, "dn_conv_state.f32");  // (channels, 3)
        const auto conv = floats(layout.delta_layers[0].conv, want_conv.size());
        const size_t channels = layout.spec.channels(), kept = layout.spec.conv_kernel - 1;
        std::vector<float> transposed(conv.size());
        for (size_t r = 0; r < kept; ++r)
            for (size_t c = 0; c < channels; ++c) transposed[c * kept + r] = conv[r * channels + c];
        check_close("convolution state", transposed, want_conv);
    }
}
