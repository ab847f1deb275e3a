// The bundled model written as a GGUF file with the conventions of that format's converter: other
// names, norms with 1 added, -exp(A_log), value heads in tiled order, the tokenizer as keys. It
// must answer as the folder does, from text to text.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

#include "libcore/codec/decode.h"
#include "libcore/run/open_tokenizer.h"
#include "tests/support/data.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/run_model.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;
using nlohmann::json;

namespace {

/// The converter's names behind "layers.N." and "blk.N.".
const std::map<std::string, std::string> kLayerNames = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight"},
    {"linear_attn.in_proj_z.weight", "attn_gate.weight"},
    {"linear_attn.in_proj_b.weight", "ssm_beta.weight"},
    {"linear_attn.in_proj_a.weight", "ssm_alpha.weight"},
    {"linear_attn.conv1d.weight", "ssm_conv1d.weight"},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.norm.weight", "ssm_norm.weight"},
    {"linear_attn.out_proj.weight", "ssm_out.weight"},
};

struct Heads {
    size_t key_heads, value_heads, dim;

    /// The head that stands at place g in tiled order: j * key_heads + k holds k * r + j.
    size_t grouped(size_t g) const {
        return g % key_heads * (value_heads / key_heads) + g / key_heads;
    }
};

/// A matrix of float32, and the moves of the converter.
struct Matrix {
    size_t rows, cols;
    std::vector<float> values;

    /// Rows from `first` on, in blocks of one value head, to tiled order.
    void tile_rows(size_t first, size_t block, const Heads& heads) {
        const std::vector<float> old = values;
        for (size_t g = 0; g < heads.value_heads; ++g)
            std::copy_n(&old[(first + heads.grouped(g) * block) * cols], block * cols,
                        &values[(first + g * block) * cols]);
    }
    void tile_cols(const Heads& heads) {
        const std::vector<float> old = values;
        for (size_t r = 0; r < rows; ++r)
            for (size_t g = 0; g < heads.value_heads; ++g)
                std::copy_n(&old[r * cols + heads.grouped(g) * heads.dim], heads.dim,
                            &values[r * cols + g * heads.dim]);
    }
};

void convert(Matrix& m, const std::string& name, const Heads& heads) {
    const auto is = [&](const char* end) { return name.ends_with(end); };
    if (is("norm.weight") && !is("linear_attn.norm.weight"))
        for (float& v : m.values) v += 1.0f;
    if (is("A_log"))
        for (float& v : m.values) v = -std::exp(v);
    const size_t key_rows = 2 * heads.key_heads * heads.dim;
    if (is("in_proj_qkv.weight") || is("conv1d.weight")) m.tile_rows(key_rows, heads.dim, heads);
    if (is("in_proj_z.weight")) m.tile_rows(0, heads.dim, heads);
    if (is("in_proj_a.weight") || is("in_proj_b.weight")) m.tile_rows(0, 1, heads);
    if (is("A_log") || is("dt_bias")) {
        m = {m.cols, 1, m.values};
        m.tile_rows(0, 1, heads);
    }
    if (is("out_proj.weight")) m.tile_cols(heads);
}

GgufTensorParts tensor_of(const TensorView& t, const Heads& heads) {
    const std::string bare = t.name.substr(std::string("model.").size());
    std::string name = bare == "norm.weight" ? "output_norm.weight" : "token_embd.weight";
    if (bare.starts_with("layers.")) {
        const size_t dot = bare.find('.', 7);
        name = "blk." + bare.substr(7, dot - 7) + "." + kLayerNames.at(bare.substr(dot + 1));
    }
    const bool is_conv = bare.ends_with("conv1d.weight");  // (C, 1, K) becomes (C, K)
    Matrix m{is_conv ? t.dims[0] : t.shape.rows, t.shape.cols,
             decode_flat(*t.codec, t.bytes.data(), t.shape.rows * t.shape.cols)};
    convert(m, bare, heads);
    std::vector<uint64_t> dims = {t.shape.cols};
    if (t.n_dims > 1) dims.push_back(m.rows);
    std::string data(m.values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), m.values.data(), data.size());
    return {name, dims, /*f32*/ 0, data};
}

std::vector<GgufKeyParts> model_keys(const json& c) {
    const auto u = [&](const char* key) { return c.at(key).get<uint32_t>(); };
    const uint32_t dim = u("linear_value_head_dim"), heads = u("linear_num_value_heads");
    return {gguf_key("general.architecture", "qwen35"),
            gguf_key("qwen35.block_count", u("num_hidden_layers")),
            gguf_key("qwen35.context_length", u("max_position_embeddings")),
            gguf_key("qwen35.embedding_length", u("hidden_size")),
            gguf_key("qwen35.feed_forward_length", u("intermediate_size")),
            gguf_key("qwen35.attention.head_count", u("num_attention_heads")),
            gguf_key("qwen35.attention.head_count_kv", u("num_key_value_heads")),
            gguf_key("qwen35.attention.key_length", u("head_dim")),
            gguf_key("qwen35.attention.value_length", u("head_dim")),
            gguf_key("qwen35.attention.layer_norm_rms_epsilon", c.at("rms_norm_eps").get<float>()),
            gguf_key("qwen35.rope.freq_base", 1e7f),
            gguf_key("qwen35.rope.dimension_count", u("head_dim") / 4),
            gguf_key("qwen35.full_attention_interval", u("full_attention_interval")),
            gguf_key("qwen35.ssm.conv_kernel", u("linear_conv_kernel_dim")),
            gguf_key("qwen35.ssm.state_size", u("linear_key_head_dim")),
            gguf_key("qwen35.ssm.group_count", u("linear_num_key_heads")),
            gguf_key("qwen35.ssm.time_step_rank", heads),
            gguf_key("qwen35.ssm.inner_size", heads * dim)};
}

/// Token strings in id order, their types, and merges "a b".
void add_tokenizer(std::vector<GgufKeyParts>& keys, const json& tokenizer, const json& config) {
    const json& vocab = tokenizer.at("model").at("vocab");
    std::vector<std::string> tokens(vocab.size() + tokenizer.at("added_tokens").size());
    std::vector<int32_t> types(tokens.size(), 1);
    for (const auto& [text, id] : vocab.items()) tokens.at(id.get<size_t>()) = text;
    for (const json& added : tokenizer.at("added_tokens")) {
        tokens.at(added.at("id").get<size_t>()) = added.at("content").get<std::string>();
        types.at(added.at("id").get<size_t>()) = added.at("special").get<bool>() ? 3 : 4;
    }
    std::vector<std::string> merges;
    for (const json& m : tokenizer.at("model").at("merges"))
        merges.push_back(m[0].get<std::string>() + " " + m[1].get<std::string>());
    keys.push_back(gguf_key("tokenizer.ggml.model", "gpt2"));
    keys.push_back(gguf_key("tokenizer.ggml.pre", "qwen35"));
    keys.push_back(gguf_list("tokenizer.ggml.tokens", tokens));
    keys.push_back(gguf_list("tokenizer.ggml.token_type", types));
    keys.push_back(gguf_list("tokenizer.ggml.merges", merges));
    keys.push_back(
        gguf_key("tokenizer.ggml.eos_token_id", config.at("eos_token_id").get<uint32_t>()));
}

std::string demo_as_gguf() {
    const ModelFile folder = open_model_file(demo_model_path(), {});
    const json config = json::parse(folder.config);
    const Heads heads{config.at("linear_num_key_heads"), config.at("linear_num_value_heads"),
                      config.at("linear_value_head_dim")};
    REQUIRE(heads.key_heads != heads.value_heads);  // else there is no order to get wrong
    GgufParts gguf;
    gguf.keys = model_keys(config);
    add_tokenizer(gguf.keys, json::parse(folder.tokenizer), config);
    for (const TensorView& t : folder.tensors) gguf.tensors.push_back(tensor_of(t, heads));
    return gguf.bytes();
}

}  // namespace

TEST_CASE("demo as GGUF: every golden prompt, given as text, gets its golden answer") {
    const TempFolder folder;
    folder.write("demo.gguf", demo_as_gguf());
    Loaded m(folder / "demo.gguf");
    const auto tokenizer = open_tokenizer(*m.model.file);
    REQUIRE(tokenizer);
    const json golden = json::parse(read_file(demo_model_path() + "/golden.json"));
    const Checkpoint empty = m.session.checkpoint();
    for (const json& prompt : golden.at("prompts")) {
        const auto text = prompt.at("text").get<std::string>();
        CAPTURE(text);
        const auto ids = tokenizer->encode(text);
        CHECK(ids == prompt.at("input_ids").get<std::vector<int32_t>>());

        m.session.restore(empty);
        const auto logits = run_ids(m.session, ids, cut_every(ids.size(), Session::kMaxTokens));
        auto want = prompt.at("greedy_ids").get<std::vector<int32_t>>();
        if (!prompt.at("stop_index").is_null())
            want.resize(prompt.at("stop_index").get<size_t>() + 1);
        const auto got =
            greedy(m.session, argmax(std::span(logits).last(m.model.config.vocab)), want.size());
        CHECK(got == want);
    }
}
