#include "libcore/quantize/model_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "libcore/base/error.h"
#include "libcore/codec/decode.h"
#include "libcore/file/chat_template.h"
#include "libcore/file/json.h"
#include "libcore/quantize/tokenizer_writer.h"

namespace hf {
namespace {

/// Members of an object, in the order they are added.
struct JsonObject {
    std::string text = "{";

    void add(std::string_view key, std::string_view json) {
        if (text.size() > 1) text += ',';
        text += json_string(key);
        text += ':';
        text += json;
    }
    void add_number(std::string_view key, double value) { add(key, fmt::format("{}", value)); }
    std::string end() { return std::move(text += '}'); }
};

std::string rope_json(const ModelConfig& c) {
    JsonObject o;
    const RopeScaling& s = c.rope_scaling;
    o.add("rope_type", s.factor == 1 ? "\"default\"" : "\"llama3\"");
    o.add_number("rope_theta", c.rope_theta);
    o.add_number("partial_rotary_factor", double(c.rotary_dim) / c.head_dim);
    if (s.factor != 1) {
        o.add_number("factor", s.factor);
        o.add_number("low_freq_factor", s.low_freq_factor);
        o.add_number("high_freq_factor", s.high_freq_factor);
        o.add_number("original_max_position_embeddings", s.original_positions);
    }
    return o.end();
}

void add_delta_net(JsonObject& o, const ModelConfig& c) {
    std::vector<std::string_view> types;
    for (const LayerKind kind : c.layers)
        types.push_back(kind == LayerKind::full_attention ? "\"full_attention\""
                                                          : "\"linear_attention\"");
    o.add("layer_types", fmt::format("[{}]", fmt::join(types, ",")));
    o.add_number("linear_num_key_heads", c.key_heads);
    o.add_number("linear_num_value_heads", c.value_heads);
    o.add_number("linear_key_head_dim", c.key_dim);
    o.add_number("linear_value_head_dim", c.value_dim);
    o.add_number("linear_conv_kernel_dim", c.conv_kernel);
}

/// Low and high bounds of llama3 scaling as all models have them. Only their ratio to the original
/// context counts, so other pairs with the same quotient come out as another context.
constexpr double kLow = 1, kHigh = 4;

/// The scaling that divides the frequencies so. The largest divisor is the factor; one between 1
/// and it tells how often its dim turns in the original context.
RopeScaling scaling_of(const std::vector<float>& f, const std::vector<float>& divisors) {
    RopeScaling s;
    s.low_freq_factor = kLow;
    s.high_freq_factor = kHigh;
    s.factor = *std::ranges::max_element(divisors);
    for (size_t i = 0; i < f.size(); ++i) {
        const double d = divisors[i];
        if (!(d > 1.001 && d < s.factor * 0.999)) continue;
        const double share = (1 / d - 1 / s.factor) / (1 - 1 / s.factor);
        const double turns = kLow + share * (kHigh - kLow);
        s.original_positions = std::round(turns * 2 * std::numbers::pi / f[i]);
        break;
    }
    return s;
}

/// Takes the divisors into the configuration, if scaling makes the same frequencies.
void take_divisors(const PlannedTensor& p, const std::string& path, ModelConfig& config) {
    const std::vector<float> plain = rope_frequencies(config);
    const std::vector<float> divisors =
        decode_flat(*p.tensor->codec, p.tensor->bytes.data(), plain.size());
    config.rope_scaling = scaling_of(plain, divisors);
    const std::vector<float> scaled = rope_frequencies(config);
    for (size_t i = 0; i < plain.size(); ++i) {
        const double want = double(plain[i]) / divisors[i];
        if (!(std::abs(scaled[i] - want) <= 1e-5 * want))
            throw Error(
                fmt::format("{}: tensor '{}' divides frequency {} by {}, which is not "
                            "llama3 scaling; an HFQ file cannot express it",
                            path, p.tensor->name, i, divisors[i]));
    }
}

/// The object with its "chat_template" replaced.
std::string with_template(const std::string& object, const std::string& label,
                          const std::string& chat_template) {
    JsonObject o;
    const std::string where = label + ": tokenizer_config.json";
    JsonReader json(object, where);
    if (!object.empty())
        json.object([&](const std::string& key) {
            const std::string_view value = json.raw();
            if (key != "chat_template") o.add(key, value);
        });
    o.add("chat_template", json_string(chat_template));
    return o.end();
}

/// Keeps the file's template, which may stand in a file of its own.
void add_template(const ModelFile& file, ModelTexts& texts) {
    if (file.chat_template.empty()) return;
    const std::string& config = texts.tokenizer_config;
    if (config.empty() || embedded_chat_template(config, texts.label, {}) != file.chat_template)
        texts.tokenizer_config = with_template(config, texts.label, file.chat_template);
}

/// The text, which must be an object, without white space around it; null for none.
std::string_view checked(std::string_view text, const std::string& label, const char* name) {
    if (text.empty()) return "null";
    const std::string where = fmt::format("{}: {}", label, name);
    JsonReader json(text, where);
    if (json.peek() != JsonReader::Kind::object)
        throw Error(fmt::format("{}: is not a JSON object", where));
    const std::string_view value = json.raw();
    json.end();
    return value;
}

}  // namespace

std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (static_cast<unsigned char>(c) < 0x20)
            out += fmt::format("\\u{:04x}", int(c));
        else
            out += c;
    }
    return out += '"';
}

std::string config_json(const Architecture& arch, const ModelConfig& c,
                        std::span<const int32_t> end_ids) {
    JsonObject o;
    o.add("model_type", json_string(arch.model_types.front()));
    o.add_number("vocab_size", c.vocab);
    o.add_number("hidden_size", c.dim);
    o.add_number("intermediate_size", c.ffn_dim);
    o.add_number("num_hidden_layers", c.n_layers);
    o.add_number("num_attention_heads", c.n_heads);
    o.add_number("num_key_value_heads", c.n_kv_heads);
    o.add_number("head_dim", c.head_dim);
    o.add("hidden_act", "\"silu\"");
    o.add("rms_norm_eps", fmt::format("{}", c.rms_eps));
    o.add_number("max_position_embeddings", c.max_positions);
    o.add("tie_word_embeddings", c.tied_embeddings ? "true" : "false");
    o.add_number("rope_theta", c.rope_theta);
    o.add("rope_parameters", rope_json(c));
    if (c.count(LayerKind::linear_attention) > 0) add_delta_net(o, c);
    o.add("eos_token_id", fmt::format("[{}]", fmt::join(end_ids, ",")));
    return o.end();
}

ModelTexts token_texts_of(const ModelFile& file) {
    ModelTexts texts;
    texts.label = file.path;
    texts.tokenizer =
        file.tokenizer.empty() ? tokenizer_json_of(file.gguf, file.path) : file.tokenizer;
    texts.tokenizer_config = file.tokenizer_config;
    add_template(file, texts);
    return texts;
}

ModelTexts texts_of(const ModelFile& file, const Architecture& arch, const ModelConfig& config,
                    const std::vector<PlannedTensor>& plan) {
    ModelTexts texts = token_texts_of(file);
    texts.architecture = config.model_type;
    texts.config = file.config;
    texts.generation_config = file.generation_config;
    if (file.naming == Naming::gguf) {
        ModelConfig complete = config;
        complete.tied_embeddings = true;
        for (const PlannedTensor& p : plan) {
            if (p.row->role == Role::head) complete.tied_embeddings = false;
            if (p.row->role == Role::rope_divisors) take_divisors(p, file.path, complete);
        }
        texts.architecture = arch.model_types.front();
        texts.config = config_json(arch, complete, end_ids(file));
    }
    return texts;
}

std::string hfq_metadata(const ModelTexts& t) {
    JsonObject o;
    o.add("architecture", json_string(t.architecture));
    o.add("config", checked(t.config, t.label, "config.json"));
    checked(t.tokenizer, t.label, "tokenizer.json");
    o.add("tokenizer", json_string(t.tokenizer.empty() ? "{}" : t.tokenizer));
    o.add("tokenizer_config", checked(t.tokenizer_config, t.label, "tokenizer_config.json"));
    o.add("generation_config", checked(t.generation_config, t.label, "generation_config.json"));
    return o.end();
}

}  // namespace hf
