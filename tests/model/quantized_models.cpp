// Models written as HFQ files, read again and run.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "libcore/load/tensor_plan.h"
#include "libcore/quantize/quantize_model.h"
#include "libcore/quantize/synthetic.h"
#include "libcore/run/open_tokenizer.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;
using nlohmann::json;

namespace {

const std::atomic<bool> kNoInterrupt = false;

SourceModel open_source(const std::string& path) {
    return open_source_model(std::make_shared<ModelFile>(open_model_file(path, {})), {});
}

QuantizeReport write(const SourceModel& source, std::string_view format, const std::string& to,
                     const SquareSums& sums = {}, unsigned threads = 2) {
    cpu::ThreadPool pool(threads);
    const auto tensors = plan_output(source, {&format_by_name(format), {}}, sums);
    return quantize_model(source, tensors, to, true, pool, {}, kNoInterrupt).value();
}

std::vector<float> logits_of(const std::string& model, const std::vector<int32_t>& ids) {
    Loaded m(model);
    return run_ids(m.session, ids, cut_every(ids.size(), Session::kMaxTokens));
}

const json& golden() {
    static const json text = json::parse(read_file(demo_model_path() + "/golden.json"));
    return text;
}

std::vector<int32_t> ids_of(std::string_view text) {
    const ModelFile file = open_model_file(demo_model_path(), {});
    return open_tokenizer(file)->encode(text, {});
}

}  // namespace

TEST_CASE("quantized: a GGUF file in f32 has the logits of the GGUF file") {
    const TempFolder folder;
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data_path("gguf"))) {
        const std::string file = entry.path();
        const std::string suffix = ".logits.f32";
        if (!file.ends_with(suffix)) continue;
        const std::string name = file.substr(0, file.size() - suffix.size());
        CAPTURE(name);
        const std::string model = std::filesystem::path(name).stem();
        const auto ids = read_values<int32_t>(data_path("models/" + model + "/input_ids.i32"));
        write(open_source(name + ".gguf"), "f32", folder / "x.hfq");
        const float worst =
            worst_difference(logits_of(folder / "x.hfq", ids), read_values<float>(file));
        MESSAGE(model << ": worst difference " << worst);
        CHECK(worst <= 2e-4f);
        ++count;
    }
    CHECK(count >= 7);
}

TEST_CASE("quantized: a GGUF file's texts name the model, its end and its tokens") {
    const TempFolder folder;
    write(open_source(data_path("gguf/tiny_llama.q8_0.gguf")), "f16", folder / "x.hfq");
    const ModelFile file = open_model_file(folder / "x.hfq", {});
    CHECK(file.naming == Naming::hugging_face);
    CHECK(architecture_of(file).name == "llama");
    const json want = json::parse(read_file(data_path("models/tiny_llama/config.json")));
    const json got = json::parse(file.config);
    for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "head_dim",
                            "num_attention_heads", "num_key_value_heads", "rms_norm_eps",
                            "max_position_embeddings", "tie_word_embeddings", "rope_theta"})
        CHECK_MESSAGE(got.at(key) == want.at(key), key);
    for (const auto& [key, value] : want.at("rope_scaling").items())
        CHECK_MESSAGE(got.at("rope_parameters").at(key) == value, key);
    CHECK(got.at("eos_token_id") == json::array({2}));
    CHECK(open_tokenizer(file)->id_of("<|im_end|>") == 2);
}

TEST_CASE("quantized: what Hugging Face's files cannot express is refused by name") {
    struct Case {
        const char *file, *tensor;
        float value;  // in place of its first one
    };
    constexpr Case cases[] = {
        {"tiny_llama.q8_0.gguf", "rope_freqs.weight", 3.0f},
        {"tiny_llama.q8_0.gguf", "rope_freqs.weight", NAN},
        {"tiny_qwen35_a.q8_0.gguf", "blk.0.ssm_a", 0.0f},
    };
    const TempFolder folder;
    for (const Case& c : cases) {
        CAPTURE(c.tensor);
        const std::string path = data_path(std::string("gguf/") + c.file);
        std::string bytes = read_file(path);
        std::memcpy(&bytes[open_model_file(path, {}).find(c.tensor)->offset], &c.value, 4);
        folder.write("x.gguf", bytes);
        CHECK_THROWS_WITH_AS(open_source(folder / "x.gguf"), doctest::Contains(c.tensor), Error);
    }
}

TEST_CASE("quantized: f32 and bf16 are the model itself, with its texts") {
    const TempFolder folder;
    const auto ids = golden().at("prompts")[0].at("input_ids").get<std::vector<int32_t>>();
    const auto want = logits_of(demo_model_path(), ids);
    const ModelFile original = open_model_file(demo_model_path(), {});
    for (const char* format : {"f32", "bf16"}) {
        CAPTURE(format);
        write(open_source(demo_model_path()), format, folder / "x.hfq");
        CHECK(logits_of(folder / "x.hfq", ids) == want);
        const ModelFile file = open_model_file(folder / "x.hfq", {});
        CHECK(json::parse(file.config) == json::parse(original.config));
        CHECK(file.tokenizer == original.tokenizer);
        CHECK(file.chat_template == original.chat_template);
        CHECK(json::parse(file.generation_config) == json::parse(original.generation_config));
    }
}

TEST_CASE("quantized: what was written is what quantising again reads, and rows are copied") {
    const TempFolder folder;
    write(open_source(demo_model_path()), "mq4", folder / "a.hfq");
    write(open_source(folder / "a.hfq"), "mq4", folder / "b.hfq");
    CHECK(read_file(folder / "a.hfq") == read_file(folder / "b.hfq"));
    write(open_source(data_path("gguf/tiny_qwen3.q8_0.gguf")), "q8", folder / "c.hfq");
    const ModelFile gguf = open_model_file(data_path("gguf/tiny_qwen3.q8_0.gguf"), {});
    const ModelFile hfq = open_model_file(folder / "c.hfq", {});
    CHECK(std::ranges::equal(gguf.find("blk.1.ffn_up.weight")->bytes,
                             hfq.find("model.layers.1.mlp.up_proj.weight")->bytes));
}

TEST_CASE("quantized: f16 and 8 bits give the golden answers of the demo") {
    const TempFolder folder;
    for (const char* format : {"f16", "q8"}) {
        CAPTURE(format);
        write(open_source(demo_model_path()), format, folder / "x.hfq");
        Loaded m(folder / "x.hfq");
        const Checkpoint empty = m.session.checkpoint();
        for (const json& prompt : golden().at("prompts")) {
            CAPTURE(prompt.at("text").get<std::string>());
            m.session.restore(empty);
            const auto ids = prompt.at("input_ids").get<std::vector<int32_t>>();
            auto want = prompt.at("greedy_ids").get<std::vector<int32_t>>();
            if (!prompt.at("stop_index").is_null())
                want.resize(prompt.at("stop_index").get<size_t>() + 1);
            const auto logits = run_ids(m.session, ids, cut_every(ids.size(), 64));
            const auto last = std::span(logits).last(m.model.config.vocab);
            CHECK(greedy(m.session, argmax(last), want.size()) == want);
        }
    }
}

TEST_CASE("quantized: the report adds up, and the number of threads changes no byte") {
    const TempFolder folder;
    const SourceModel source = open_source(demo_model_path());
    for (const char* format : {"mq4", "mq3g256gl"}) {  // the second has scales behind its rows
        CAPTURE(format);
        const QuantizeReport r = write(source, format, folder / "1.hfq", {}, 1);
        write(source, format, folder / "3.hfq", {}, 3);
        CHECK(read_file(folder / "1.hfq") == read_file(folder / "3.hfq"));
        uint64_t bytes = 0, tensors = 0, weights = 0;
        for (const FormatShare& share : r.formats) {
            bytes += share.bytes;
            tensors += share.tensors;
            weights += share.weights;
        }
        CHECK(bytes == r.payload_bytes);
        CHECK(tensors == r.tensors);
        CHECK(weights == r.weights);
        CHECK(r.weights == 11'316'488);  // models/demo/README.md
        CHECK(r.source_bytes == 2 * r.weights);
        CHECK(r.file_bytes == std::filesystem::file_size(folder / "1.hfq"));
    }
}

TEST_CASE("quantized: an interrupt, and weights that do not fit, leave no file") {
    const TempFolder folder;
    const SourceModel source = open_source(demo_model_path());
    cpu::ThreadPool pool(2);
    std::atomic<bool> interrupt = false;
    const auto run = [&](const char* format, const Progress& on_progress) {
        return quantize_model(source, plan_output(source, {&format_by_name(format), {}}, {}),
                              folder / "x.hfq", false, pool, on_progress, interrupt);
    };
    CHECK_FALSE(run("mq4", [&](uint64_t, uint64_t) { interrupt = true; }).has_value());
    CHECK(std::filesystem::is_empty(folder.path()));
    interrupt = false;
    CHECK_THROWS_WITH_AS(run("mq2g256lloydu", {}), doctest::Contains("at most three"), Error);
    CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("quantized: AWQ scales stand behind their weights and are equal where inputs are") {
    const TempFolder folder;
    const auto ids = ids_of(read_file(demo_model_path() + "/eval.txt").substr(0, 2000));
    const auto file = std::make_shared<ModelFile>(open_model_file(demo_model_path(), {}));
    const SquareSums sums =
        sum_squares(file, ids, {.threads = 2, .level = cpu::detect_level()}, {}, {}, kNoInterrupt)
            .value();
    CHECK(sums.size() == 9 * 8 + 3 * 7);  // matrices of 9 linear and 3 full layers
    write(open_source(demo_model_path()), "mq6g256v2", folder / "x.hfq", sums);
    const ModelFile hfq = open_model_file(folder / "x.hfq", {});

    std::map<uint64_t, std::string> by_place;
    for (const TensorView& t : hfq.tensors) by_place[t.offset] = t.name;
    for (auto at = by_place.begin(); at != by_place.end(); ++at)
        if (const size_t end = at->second.find(".awq_scale.weight"); end != std::string::npos)
            CHECK(std::prev(at)->second == at->second.substr(0, end) + ".weight");
    const auto scale = [&](const std::string& name) {
        const auto bytes = hfq.find("model.layers.3." + name + ".awq_scale.weight")->bytes;
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    CHECK(scale("self_attn.q_proj") == scale("self_attn.v_proj"));
    CHECK(scale("mlp.gate_proj") == scale("mlp.up_proj"));
    CHECK(scale("mlp.gate_proj") != scale("self_attn.q_proj"));

    // At 6 bits scales hardly change the answer, unless they are applied wrongly.
    const auto want = logits_of(demo_model_path(), ids);
    const auto with = logits_of(folder / "x.hfq", ids);
    double error = 0, size = 0;
    for (size_t i = 0; i < want.size(); ++i) {
        error += std::pow(double(with[i]) - double(want[i]), 2);
        size += std::pow(double(want[i]), 2);
    }
    MESSAGE("relative error of the logits: " << std::sqrt(error / size));
    CHECK(std::sqrt(error / size) < 0.03);
    // And nobody multiplies with weights whose scales were taken off.
    CHECK(open_source(folder / "x.hfq").tensors.size() ==
          open_source(demo_model_path()).tensors.size());
}

TEST_CASE("quantized: sums of squares are those of the activations, window after window") {
    const auto file =
        std::make_shared<ModelFile>(open_model_file(data_path("models/tiny_llama"), {}));
    const auto ids = read_values<int32_t>(data_path("models/tiny_llama/input_ids.i32"));
    const auto sums_of = [&](const std::vector<int32_t>& tokens) {
        return sum_squares(file, tokens, {.threads = 1, .level = cpu::detect_level()}, {}, {},
                           kNoInterrupt)
            .value();
    };
    // Input of the first layer's projections: the normalised embedding rows.
    const SourceModel source = open_source(data_path("models/tiny_llama"));
    const auto row_of = [&](std::string_view name, uint64_t row) {
        const auto t = std::ranges::find(source.tensors, name, &SourceTensor::name);
        std::vector<float> values(t->shape.cols);
        t->read_row(row, values.data());
        return values;
    };
    const auto norm = row_of("model.layers.0.input_layernorm.weight", 0);
    std::vector<double> want(norm.size());
    for (const int32_t id : ids) {
        const auto x = row_of("model.embed_tokens.weight", uint64_t(id));
        double mean = 0;
        for (const float v : x) mean += double(v) * v / double(x.size());
        for (size_t k = 0; k < x.size(); ++k)
            want[k] += std::pow(x[k] * norm[k], 2) / (mean + 1e-5);
    }
    const auto got = sums_of(ids).at("model.layers.0.self_attn.k_proj.weight");
    for (size_t k = 0; k < want.size(); ++k)
        CHECK(got[k] == doctest::Approx(want[k]).epsilon(1e-5));

    // A text of two windows (512 is all that this model has) counts twice what one counts.
    std::vector<int32_t> window;
    while (window.size() < 512) window.insert(window.end(), ids.begin(), ids.end());
    window.resize(512);
    std::vector<int32_t> twice = window;
    twice.insert(twice.end(), window.begin(), window.end());
    const auto once = sums_of(window), two = sums_of(twice);
    for (const auto& [name, sum] : once)
        for (size_t k = 0; k < sum.size(); ++k)
            CHECK(two.at(name)[k] == doctest::Approx(2 * sum[k]).epsilon(1e-12));
}

TEST_CASE("synthetic: every size has the tensors that its architecture wants, and sane rows") {
    const ModelFile demo = open_model_file(demo_model_path(), {});
    for (const std::string_view size : synthetic_sizes()) {
        CAPTURE(size);
        const SourceModel source = synthetic_model(size, 7, demo);
        ModelFile file;
        file.config = json::parse(source.metadata).at("config").dump();
        uint64_t weights = 0;
        for (const SourceTensor& t : source.tensors) {
            TensorView view;
            view.name = t.name;
            view.codec = codec_by_name("f32");
            view.n_dims = uint8_t(t.dims.size());
            std::ranges::copy(t.dims, view.dims.begin());
            view.shape = t.shape;
            file.tensors.push_back(view);
            weights += t.shape.rows * t.shape.cols;
            std::vector<float> row(t.shape.cols);
            t.read_row(t.shape.rows - 1, row.data());
            for (const float v : row) REQUIRE(std::abs(v) < 8);
        }
        const Architecture& arch = architecture_of(file);
        const ModelConfig config = arch.read_config(file);
        CHECK(plan_tensors(file, arch, config).size() == source.tensors.size());
        const double billions = std::stod(std::string(size.substr(8)));  // "qwen3.5-0.8b"
        CHECK(double(weights) * 1e-9 == doctest::Approx(billions).epsilon(0.12));
        CHECK(config.vocab == 248320);
        CHECK(json::parse(source.metadata).at("tokenizer") == demo.tokenizer);
    }
    CHECK_THROWS_WITH_AS(synthetic_model("qwen3.5-3b", 7, demo), doctest::Contains("qwen3.5-4b"),
                         Error);
}

TEST_CASE("synthetic: rows depend on the seed, the tensor and the row, and on nothing else") {
    const ModelFile demo = open_model_file(demo_model_path(), {});
    const SourceModel a = synthetic_model("qwen3.5-0.8b", 1, demo);
    const SourceModel same = synthetic_model("qwen3.5-0.8b", 1, demo);
    const SourceModel other = synthetic_model("qwen3.5-0.8b", 2, demo);
    std::set<std::vector<float>> rows;
    size_t count = 0;
    for (size_t t = 0; t < a.tensors.size(); ++t)
        for (uint64_t r = 0; r < std::min<uint64_t>(a.tensors[t].shape.rows, 3); ++r) {
            std::vector<float> row(a.tensors[t].shape.cols), again = row, differs = row;
            a.tensors[t].read_row(r, row.data());
            same.tensors[t].read_row(r, again.data());
            other.tensors[t].read_row(r, differs.data());
            CHECK(row == again);
            CHECK(row != differs);
            rows.insert(row);
            ++count;
        }
    CHECK(rows.size() == count);
}
