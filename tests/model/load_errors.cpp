// What load_model refuses, and that its sentence names the tensor or key and both values.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "libcore/base/error.h"
#include "tests/support/data.h"
#include "tests/support/run_model.h"

using namespace hf;
using namespace hf::test;
using nlohmann::json;

namespace {

/// The tiny model, its config and tensor index open to damage before it is loaded.
struct Damaged {
    std::shared_ptr<ModelFile> file =
        std::make_shared<ModelFile>(open_model_file(data_path("models/tiny_qwen35_a"), {}));
    json config = json::parse(file->config);
    HostDevice device{{1, cpu::Level::scalar, cpu::Activations::f32}};

    TensorView& tensor(const std::string& name) {
        for (TensorView& t : file->tensors)
            if (t.name == name) return t;
        throw std::runtime_error("no tensor " + name);
    }
    void load() {
        file->config = config.dump();
        load_model(file, device, {}, {});
    }
};

void check_refused(Damaged& d, std::initializer_list<const char*> words) {
    try {
        d.load();
        FAIL("was loaded");
    } catch (const Error& error) {
        const std::string sentence = error.what();
        for (const char* word : words) {
            CAPTURE(sentence);
            CAPTURE(word);
            CHECK(sentence.find(word) != std::string::npos);
        }
    }
    CHECK(d.device.in_use().all_buffers() == 0);
}

}  // namespace

TEST_CASE("load: the undamaged twin loads, and says after each weight how far it is") {
    CHECK_NOTHROW(Damaged().load());
    Damaged d;
    uint64_t calls = 0, last = 0;
    const Model model = load_model(d.file, d.device, {}, {}, [&](uint64_t done, uint64_t total) {
        CHECK(done == ++calls);
        last = total;
    });
    CHECK(calls == model.weights.size());
    CHECK(last == calls);
}

TEST_CASE("load: a config value out of bounds is refused with key, value and bounds") {
    const struct {
        const char* key;
        json value;
        std::vector<const char*> words;
    } cases[] = {
        {"rope_parameters", "default", {"rope_parameters", "\"default\"", "not an object"}},
        {"rope_parameters", json::array({1e6}), {"rope_parameters", "not an object"}},
        {"rope_scaling", 2.0, {"rope_scaling", "2.0", "not an object"}},
        {"text_config", json::array(), {"text_config", "not an object"}},
        {"hidden_size", 0, {"hidden_size", "0", "1"}},
        {"hidden_size", -1, {"hidden_size", "-1"}},
        {"hidden_size", 1e30, {"hidden_size", "1e"}},
        {"hidden_size", "big", {"hidden_size", "big"}},
        {"num_hidden_layers", 100000, {"num_hidden_layers", "100000", "1024"}},
        {"num_attention_heads", 3, {"num_attention_heads", "3", "2"}},
        {"head_dim", 4096, {"head_dim", "4096", "512"}},
        {"linear_num_value_heads", 6, {"linear_num_value_heads", "6", "4"}},
        {"linear_conv_kernel_dim", 1, {"linear_conv_kernel_dim", "1", "2"}},
        {"layer_types", json::array({"full_attention"}), {"layer_types", "1", "4"}},
        {"layer_types", json::array({"a", "b", "c", "d"}), {"layer_types", "'a'"}},
        {"hidden_act", "gelu", {"hidden_act", "gelu", "silu"}},
        {"attention_bias", true, {"attention_bias", "true"}},
        {"partial_rotary_factor", 0.001, {"partial_rotary_factor", "0.001"}},
        {"rms_norm_eps", "x", {"rms_norm_eps"}},
        {"model_type", "gpt5", {"model_type", "gpt5", "qwen3_5_text"}},
    };
    for (const auto& c : cases) {
        CAPTURE(c.key);
        Damaged d;
        d.config[c.key] = c.value;
        try {
            d.load();
            FAIL("was loaded");
        } catch (const Error& error) {
            const std::string sentence = error.what();
            CAPTURE(sentence);
            for (const char* word : c.words) {
                CAPTURE(word);
                CHECK(sentence.find(word) != std::string::npos);
            }
        }
    }
}

TEST_CASE("load: a config that is no JSON object is refused") {
    for (const char* text : {"", "[]", "{", "null", "{\"model_type\": 3}"}) {
        CAPTURE(text);
        Damaged d;
        d.file->config = text;
        CHECK_THROWS_AS(load_model(d.file, d.device, {}, {}), Error);
    }
}

TEST_CASE("load: config and tensors that do not belong together are refused with both shapes") {
    Damaged wide;
    wide.config["intermediate_size"] = 300;
    check_refused(wide, {"mlp.", "(256, 256)", "300"});

    Damaged fewer;
    fewer.config["num_hidden_layers"] = 3;
    fewer.config["layer_types"].erase(3);
    check_refused(fewer, {"layers.3.", "fewer layers"});

    Damaged more;
    more.config["num_hidden_layers"] = 5;
    more.config["layer_types"].push_back("linear_attention");
    check_refused(more, {"layers.4.", "missing"});
}

TEST_CASE("load: a missing, renamed or foreign tensor is refused by name") {
    Damaged missing;
    std::erase_if(missing.file->tensors,
                  [](const TensorView& t) { return t.name == "model.layers.1.linear_attn.A_log"; });
    check_refused(missing, {"model.layers.1.linear_attn.A_log", "missing"});

    Damaged no_embedding;
    std::erase_if(no_embedding.file->tensors,
                  [](const TensorView& t) { return t.name == "model.embed_tokens.weight"; });
    check_refused(no_embedding, {"embed_tokens.weight"});

    Damaged foreign;
    foreign.file->tensors.push_back(foreign.tensor("model.norm.weight"));
    foreign.file->tensors.back().name = "model.zzz.bias";
    check_refused(foreign, {"model.zzz.bias", "not part of"});

    Damaged draft_head;  // known and not ours: loads
    draft_head.file->tensors.push_back(draft_head.tensor("model.norm.weight"));
    draft_head.file->tensors.back().name = "mtp.norm.weight";
    CHECK_NOTHROW(draft_head.load());
}

TEST_CASE("load: a tensor in a type that is no weight format is refused by type") {
    Damaged d;
    TensorView& t = d.tensor("model.layers.0.mlp.up_proj.weight");
    t.codec = nullptr;
    t.dtype = "I64";
    check_refused(d, {"model.layers.0.mlp.up_proj.weight", "I64"});
}

TEST_CASE("load: an allocation that fails midway leaves nothing behind, and a retry succeeds") {
    struct Failing : HostDevice {
        using HostDevice::HostDevice;
        int left = 0;
        Buffer allocate(uint64_t bytes, Residency residency) override {
            if (left-- == 0) throw Error("out of memory");
            return HostDevice::allocate(bytes, residency);
        }
    };
    const auto file =
        std::make_shared<ModelFile>(open_model_file(data_path("models/tiny_qwen35_a"), {}));
    Failing device{{1, cpu::Level::scalar, cpu::Activations::f32}};
    int failures = 0;
    for (bool loaded = false; !loaded; ++failures) {
        device.left = failures;
        try {
            load_model(file, device, {}, {});
            loaded = true;
        } catch (const Error&) {
        }
        CHECK(device.in_use().all_buffers() == 0);
        REQUIRE(failures < 1000);
    }
    CHECK(failures > 10);  // one per vector at least
}

TEST_CASE("load: a number beyond 64 bits under a key that nobody asks for is no fault") {
    Damaged d;
    const std::string rest = d.config.dump().substr(1);
    d.file->config = "{\"model_max_length\": 1000000000000000019884624838656, " + rest;
    CHECK_NOTHROW(load_model(d.file, d.device, {}, {}));
    d.config.erase("hidden_size");
    d.file->config =
        "{\"hidden_size\": 1000000000000000019884624838656, " + d.config.dump().substr(1);
    CHECK_THROWS_WITH_AS(load_model(d.file, d.device, {}, {}), doctest::Contains("hidden_size"),
                         Error);
}
