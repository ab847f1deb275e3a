// Perplexity of texts that are longer than the context.
#include <doctest/doctest.h>

#include <cmath>

#include "libcore/base/error.h"
#include "libcore/run/open_tokenizer.h"
#include "libcore/run/perplexity.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;

namespace {

const std::string kModel = data_path("models/tiny_qwen35_a");  // recurrent, and attention

std::vector<int32_t> some_ids(size_t n) {
    Random random(9);
    std::vector<int32_t> ids(n);
    for (int32_t& id : ids) id = int32_t(random.next() % 256);
    return ids;
}

Setup with_context(uint32_t tokens) {
    Setup setup;
    setup.max_seq = tokens;
    return setup;
}

/// The sum of a window's likelihoods from a session of its own, without what is only read.
double sum_of_window(std::span<const int32_t> text, const std::vector<int32_t>& front,
                     TextWindow w) {
    std::vector<int32_t> ids = front;
    ids.insert(ids.end(), text.begin() + ptrdiff_t(w.begin), text.begin() + ptrdiff_t(w.end));
    Loaded m(kModel);
    const std::vector<double> nll = negative_log_likelihoods(m.session, ids);
    double sum = 0;
    for (size_t i = nll.size() - (w.end - w.predict); i < nll.size(); ++i) sum += nll[i];
    return sum;
}

}  // namespace

TEST_CASE("text windows: every token but the first is predicted once, with half a window before") {
    for (size_t size : {2, 3, 4, 7, 64, 2048})
        for (size_t tokens : {1, 2, 3, 5, 63, 64, 65, 100, 4096, 5000}) {
            CAPTURE(size);
            CAPTURE(tokens);
            const auto windows = text_windows(tokens, size);
            size_t next = 1;
            for (const TextWindow& w : windows) {
                CHECK(w.predict == next);
                CHECK(w.begin < w.predict);
                CHECK(w.end - w.begin <= size);
                if (w.begin > 0) CHECK(w.predict - w.begin == size / 2);
                next = w.end;
            }
            CHECK(next == std::max<size_t>(tokens, 1));
            CHECK((windows.size() == 1) == (tokens <= size));
        }
    CHECK(text_windows(0, 2).empty());
    CHECK(text_windows(10, 6) == std::vector<TextWindow>{{0, 1, 6}, {3, 6, 9}, {6, 9, 10}});
}

TEST_CASE("text score: a text that fits is one window, with the likelihoods of one pass") {
    const auto text = some_ids(100);
    Loaded whole(kModel), m(kModel, with_context(100));
    const double want = mean(negative_log_likelihoods(whole.session, text));
    const TextScore score = score_text(m.session, text, {});
    CHECK(score.mean_nll == want);
    CHECK(score.perplexity() == std::exp(want));
    CHECK(score.tokens == 100);
    CHECK(score.predicted == 99);
    CHECK(score.windows == 1);
    CHECK(score.passes.tokens == 100);
    CHECK(score.passes.bytes == m.session.bytes_moved());
}

TEST_CASE("text score: a longer text is the sum of its windows, each from an empty context") {
    const auto text = some_ids(300);
    for (const std::vector<int32_t>& front : {std::vector<int32_t>{}, {7}, {7, 8, 9}}) {
        for (const uint32_t context : {20u, 70u, 130u, 512u}) {
            CAPTURE(front.size());
            CAPTURE(context);
            double want = 0;
            auto windows = text_windows(text.size(), context - front.size());
            if (!front.empty()) windows[0].predict = 0;
            for (const TextWindow& w : windows) want += sum_of_window(text, front, w);
            Loaded m(kModel, with_context(context));
            const TextScore score = score_text(m.session, text, front);
            CHECK(score.windows == windows.size());
            CHECK(score.predicted == text.size() - front.empty());
            // Other cuts of a prompt are within the error budget of attention and delta rule.
            CHECK(score.mean_nll == doctest::Approx(want / double(score.predicted)).epsilon(1e-5));
        }
    }
}

TEST_CASE("text score: progress goes to the end and never back") {
    Loaded m(kModel, with_context(70));
    size_t last = 0;
    score_text(m.session, some_ids(300), {}, [&](size_t done, size_t total) {
        CHECK(total == 300);
        CHECK(done <= total);
        last = done;
    });
    CHECK(last == 300);
}

TEST_CASE("text score: nothing to predict, and a context that holds no window, are usage errors") {
    const int32_t id[] = {1, 2};
    Loaded m(kModel), small(kModel, with_context(2));
    const auto fault = [](Session& session, std::span<const int32_t> text,
                          std::span<const int32_t> front) {
        try {
            score_text(session, text, front);
        } catch (const Error& error) {
            return int(error.fault());
        }
        return 0;
    };
    CHECK(fault(m.session, {}, {}) == int(Fault::usage));
    CHECK(fault(m.session, {}, std::span(id)) == int(Fault::usage));
    CHECK(fault(m.session, std::span(id, 1), {}) == int(Fault::usage));
    CHECK(fault(small.session, std::span(id), std::span(id, 1)) == int(Fault::usage));
    CHECK(fault(m.session, std::span(id, 1), std::span(id, 1)) == 0);
    CHECK(fault(small.session, std::span(id), {}) == 0);
}

TEST_CASE("text score: a likelihood that is not finite is an error that names the token") {
    auto file = std::make_shared<ModelFile>(open_model_file(kModel, {}));
    std::vector<std::byte> norm;  // NaN in all weights: logits of every token are NaN
    for (TensorView& t : file->tensors)
        if (t.name == "model.norm.weight") {
            norm.assign(t.bytes.size(), std::byte(0xFF));
            t.bytes = norm;
        }
    HostDevice device{{1, cpu::Level::scalar, cpu::Activations::f32}};
    const Model model = load_model(file, device, {}, {});
    Session session(model, device, {100, kv_type_by_name("f32"), Session::kMaxTokens});
    CHECK_THROWS_WITH_AS(score_text(session, some_ids(80), {}),
                         doctest::Contains("token 1 of the text"), Error);
}

TEST_CASE("ids in front: what a tokenizer puts before every text, and nothing else") {
    const auto front = [](const std::string& path) {
        return ids_in_front(*open_tokenizer(open_model_file(path, {})));
    };
    CHECK(front(demo_model_path()).empty());
    const ModelFile llama = open_model_file(data_path("tokenizers/small_llama3/vocab.gguf"), {});
    CHECK(front(llama.path) == std::vector<int32_t>{int32_t(
                                   llama.gguf.uint("tokenizer.ggml.bos_token_id", 0, 1 << 24))});
}
