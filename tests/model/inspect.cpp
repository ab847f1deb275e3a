// What hf-inspect finds in models, and that its refusals are those of loading.
#include "libcore/run/inspect.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include <nlohmann/json.hpp>

#include "libcore/base/error.h"
#include "libcore/load/model.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;
using nlohmann::json;

namespace {

const InspectOptions kOptions = {kv_type_by_name("f16"), {}};

/// The folders and GGUF files of tests/data that are whole models, and the bundled one.
std::vector<std::string> models() {
    std::vector<std::string> paths = {demo_model_path()};
    for (const char* folder : {"models", "gguf"})
        for (const auto& entry : std::filesystem::directory_iterator(data_path(folder)))
            if (entry.is_directory() || entry.path().extension() == ".gguf")
                paths.push_back(entry.path());
    REQUIRE(paths.size() >= 12);
    return paths;
}

/// The bundled model, its config and tensors open to damage.
struct Damaged {
    std::shared_ptr<ModelFile> file =
        std::make_shared<ModelFile>(open_model_file(demo_model_path(), {}));
    json config = json::parse(file->config);
    InspectOptions options = kOptions;

    TensorView& tensor(std::string_view name) {
        for (TensorView& t : file->tensors)
            if (t.name == name) return t;
        throw std::runtime_error("no tensor " + std::string(name));
    }
    /// Another tensor with the bytes of one that is there.
    void add(const std::string& name, const std::string& like) {
        TensorView t = tensor(like);
        t.name = name;
        const auto at = std::ranges::lower_bound(file->tensors, name, {}, &TensorView::name);
        file->tensors.insert(at, t);
    }
    void erase(std::string_view end) {
        std::erase_if(file->tensors, [&](const TensorView& t) { return t.name.ends_with(end); });
    }
    Inspection inspect() {
        file->config = config.dump();
        return hf::inspect(*file, options);
    }
    bool loads() const {
        HostDevice device{{1, cpu::Level::scalar, cpu::Activations::f32}};
        try {
            load_model(file, device, {}, {});
            return true;
        } catch (const Error&) {
            return false;
        }
    }
};

std::string sentences(const Inspection& i) {
    std::string all;
    for (const Obstacle& r : i.refusals)
        all += std::string(name_of(r.stops)) + ": " + r.sentence + "\n";
    return all;
}

}  // namespace

TEST_CASE("inspect: every model loads, all of its tensors are used, and formats add up to them") {
    for (const std::string& path : models()) {
        CAPTURE(path);
        const ModelFile file = open_model_file(path, {});
        const Inspection i = inspect(file, kOptions);
        CHECK_MESSAGE(i.allows(Stops::load), sentences(i));
        CHECK(std::ranges::count(i.is_used, true) == ptrdiff_t(file.tensors.size()));
        uint64_t tensors = 0, weights = 0, bytes = 0, bytes_of_file = 0;
        for (const FormatFacts& f : i.formats) {
            tensors += f.tensors, weights += f.weights, bytes += f.bytes;
            CHECK(f.codec == codec_by_name(f.name));
        }
        for (const TensorView& t : file.tensors) bytes_of_file += t.bytes.size();
        CHECK(tensors == file.tensors.size());
        CHECK(bytes == bytes_of_file);
        CHECK(bytes < i.file_bytes);
        CHECK(weights == i.parameters);
        CHECK(std::ranges::is_sorted(i.formats, std::ranges::greater(), &FormatFacts::bytes));
    }
}

TEST_CASE("inspect: the bundled model is what its README says") {
    const ModelFile file = open_model_file(demo_model_path(), {});
    const Inspection i = inspect(file, kOptions);
    CHECK(sentences(i) == "");
    CHECK(read_file(demo_model_path() + "/README.md").find("11,316,488") != std::string::npos);
    CHECK(i.parameters == 11316488);
    CHECK(i.config->tied_embeddings);
    CHECK(i.context == 2048);
    CHECK(i.tokenizer->entries == 4096);
    CHECK(i.chat_template == "chatml-trim");
    CHECK(i.stop_ids == std::vector<int32_t>{4091, 4093});
}

TEST_CASE("inspect: the state is as large as the session's, for any cache and context") {
    Loaded m(demo_model_path());
    for (const KvType& kv : kv_types())
        for (const uint32_t max_seq : {1u, 40u, 2048u}) {
            const Session session(m.model, m.device, {max_seq, &kv, 1});
            CHECK(inspect(*m.model.file, {&kv, max_seq}).state_bytes ==
                  session.state_layout().bytes);
        }
}

TEST_CASE("inspect: a separate head and tensors beside the text model are told apart") {
    Damaged d;
    d.add("lm_head.weight", "model.embed_tokens.weight");
    d.add("mtp.norm.weight", "model.norm.weight");
    const Inspection i = d.inspect();
    CHECK(sentences(i) == "");
    CHECK_FALSE(i.config->tied_embeddings);
    CHECK(i.parameters == 11316488 + 4096 * 256);
    for (size_t t = 0; t < i.is_used.size(); ++t)
        CHECK(i.is_used[t] == (d.file->tensors[t].name != "mtp.norm.weight"));
}

TEST_CASE("inspect: what stops a model is a refusal that says so, and loading agrees") {
    const struct {
        const char* what;
        std::function<void(Damaged&)> damage;
        Stops stops;
        std::vector<const char*> words;
        bool of_load_model = true;  // false: met before or after it
    } cases[] = {
        {"architecture",
         [](Damaged& d) { d.config["model_type"] = "gpt5"; },
         Stops::load,
         {"model_type", "gpt5", "qwen3_5_text"}},
        {"config", [](Damaged& d) { d.config["hidden_act"] = "gelu"; }, Stops::load, {"gelu"}},
        {"shape",
         [](Damaged& d) { d.config["linear_conv_kernel_dim"] = 3; },
         Stops::load,
         {"layers.0.linear_attn.conv1d", "(512, 1, 4)", "(512, 3)"}},
        {"missing",
         [](Damaged& d) { d.erase("layers.3.self_attn.q_proj.weight"); },
         Stops::load,
         {"layers.3.self_attn.q_proj.weight", "missing"}},
        {"no embedding",
         [](Damaged& d) { d.erase("embed_tokens.weight"); },
         Stops::load,
         {"embed_tokens.weight"}},
        {"type",
         [](Damaged& d) {
             TensorView& t = d.tensor("model.layers.5.mlp.up_proj.weight");
             t.codec = nullptr;
             t.dtype = "I64";
         },
         Stops::load,
         {"layers.5.mlp.up_proj.weight", "I64"}},
        {"stranger",
         [](Damaged& d) { d.add("model.zzz.bias", "model.norm.weight"); },
         Stops::load,
         {"model.zzz.bias", "not part of"}},
        {"context",
         [](Damaged& d) { d.options.max_seq = 2049; },
         Stops::load,
         {"2049", "2048"},
         false},
        {"generation config",
         [](Damaged& d) { d.file->generation_config = R"({"top_k": -1})"; },
         Stops::load,
         {"top_k", "-1"},
         false},
        {"tokenizer",
         [](Damaged& d) { d.file->tokenizer = "{}"; },
         Stops::load,
         {"tokenizer.json"},
         false},
        {"no tokenizer",
         [](Damaged& d) { d.file->tokenizer.clear(); },
         Stops::text,
         {"no tokenizer", "--prompt-ids"},
         false},
        {"template",
         [](Damaged& d) { d.file->chat_template = "{{ messages }}"; },
         Stops::chat,
         {"template"},
         false},
    };
    for (const auto& c : cases) {
        CAPTURE(c.what);
        Damaged d;
        c.damage(d);
        const Inspection i = d.inspect();
        CAPTURE(sentences(i));
        REQUIRE(i.refusals.size() == 1);
        CHECK(i.refusals[0].stops == c.stops);
        for (const char* word : c.words)
            CHECK_MESSAGE(i.refusals[0].sentence.find(word) != std::string::npos, word);
        CHECK(d.loads() == !c.of_load_model);
        CHECK(i.allows(Stops::load) == (c.stops != Stops::load));
        CHECK(i.allows(Stops::text) == (c.stops == Stops::chat));
        CHECK_FALSE(i.allows(Stops::chat));
    }
}

TEST_CASE("inspect: one thing that is wrong does not hide another, and many of a kind are one") {
    Damaged d;
    d.erase("linear_attn.A_log");  // of nine layers
    d.erase("mlp.down_proj.weight");
    d.file->tokenizer.clear();
    d.options.max_seq = 1 << 20;
    const Inspection i = d.inspect();
    CAPTURE(sentences(i));
    REQUIRE(i.refusals.size() == 4);
    CHECK(i.refusals[0].sentence.find("layers.0.linear_attn.A_log") != std::string::npos);
    CHECK(i.refusals[1].sentence.find("layers.0.mlp.down_proj") != std::string::npos);
    CHECK(i.refusals[2].sentence.find("max_seq") != std::string::npos);
    CHECK(i.refusals[3].stops == Stops::text);
}

TEST_CASE(
    "inspect: a chat for which the vocabulary has no tokens is refused, as hf-run refuses it") {
    const ModelFile file = open_model_file(data_path("gguf/tiny_qwen35_a.q8_0.gguf"), {});
    const Inspection i = inspect(file, kOptions);
    CHECK(i.allows(Stops::text));
    CHECK(!i.allows(Stops::chat));
    CHECK(sentences(i).find("--raw") != std::string::npos);
}

TEST_CASE("inspect: dots are listed at the levels where they begin") {
    for (const Codec& codec : codecs())
        for (size_t a = 0; a < cpu::kActivations; ++a) {
            CAPTURE(codec.name);
            const auto levels = dot_levels(codec, cpu::Activations(a));
            for (size_t l = 0; l < cpu::kLevels; ++l) {
                const bool is_listed = std::ranges::count(levels, cpu::Level(l)) == 1;
                const cpu::Dot dot = pick_dot(codec.cpu, cpu::Level(l), cpu::Activations(a));
                if (is_listed) CHECK((dot == codec.cpu.dot[l][a]));
                if (levels.empty()) CHECK((dot == nullptr));
            }
        }
    CHECK(dot_levels(*codec_by_name("f32"), cpu::Activations::f32) ==
          std::vector{cpu::Level::scalar, cpu::Level::avx2, cpu::Level::avx512vnni});
}
