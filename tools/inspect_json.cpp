#include <nlohmann/json.hpp>

#include "cpuexec/isa.h"
#include "tools/device_facts.h"
#include "tools/inspect_plan.h"

namespace hf {
namespace {

using Json = nlohmann::ordered_json;

Json dims_json(const TensorView& t) {
    return std::vector<uint64_t>(t.dims.data(), t.dims.data() + t.n_dims);
}

Json text_or_null(std::string_view text) {
    return text.empty() ? Json() : Json(text);
}

Json layers_json(const ModelConfig& c) {
    Json kinds = Json::array();
    for (const LayerKind kind : c.layers)
        kinds.push_back(kind == LayerKind::full_attention ? "full_attention" : "linear_attention");
    return kinds;
}

Json config_json(const Inspection& i) {
    if (!i.config) return {};
    const ModelConfig& c = *i.config;
    return {{"model_type", c.model_type},
            {"dim", c.dim},
            {"ffn_dim", c.ffn_dim},
            {"vocab", c.vocab},
            {"tied_embeddings", c.tied_embeddings},
            {"layers", layers_json(c)},
            {"heads", c.n_heads},
            {"kv_heads", c.n_kv_heads},
            {"head_dim", c.head_dim},
            {"rotary_dim", c.rotary_dim},
            {"rope_theta", c.rope_theta},
            {"key_heads", c.key_heads},
            {"key_dim", c.key_dim},
            {"value_heads", c.value_heads},
            {"value_dim", c.value_dim},
            {"conv_kernel", c.conv_kernel},
            {"max_positions", c.max_positions}};
}

Json levels_json(const Codec& codec, cpu::Activations activations) {
    Json levels = Json::array();
    for (const cpu::Level level : dot_levels(codec, activations))
        levels.push_back(cpu::name(level));
    return levels;
}

Json format_json(const FormatFacts& f) {
    Json object = {{"name", f.name},
                   {"tensors", f.tensors},
                   {"weights", f.weights},
                   {"bytes", f.bytes},
                   {"bits_per_weight", f.bits_per_weight()},
                   {"decoder", f.codec != nullptr}};
    if (!f.codec) return object;
    object["group"] = f.codec->group;
    object["rotation"] =
        f.codec->rotation == Rotation::none ? 0 : rotation_block(f.codec->rotation);
    object["dots"] = {{"f32", levels_json(*f.codec, cpu::Activations::f32)},
                      {"i16", levels_json(*f.codec, cpu::Activations::i16)},
                      {"int8", levels_json(*f.codec, cpu::Activations::int8)}};
    return object;
}

Json tensor_json(const Inspection& i, size_t at) {
    const TensorView& t = i.file->tensors[at];
    return {{"name", t.name},
            {"format", t.codec ? std::string(t.codec->name) : t.dtype},
            {"dims", dims_json(t)},
            {"bytes", t.bytes.size()},
            {"file", i.file->files[t.file].path()},
            {"offset", t.offset},
            {"used", bool(i.is_used[at])}};
}

Json scan_json(const WeightScan& scan) {
    Json damaged = Json::array();
    for (const DamagedTensor& d : scan.damaged)
        damaged.push_back({{"tensor", d.tensor->name},
                           {"groups", d.groups},
                           {"damaged", d.damaged},
                           {"first_row", d.first_row}});
    return {{"tensors", scan.tensors},
            {"groups", scan.groups},
            {"skipped", scan.skipped},
            {"damaged", damaged}};
}

Json refusals_json(const Inspection& i) {
    Json list = Json::array();
    for (const Obstacle& r : i.refusals)
        list.push_back({{"stops", name_of(r.stops)}, {"why", r.sentence}});
    return list;
}

}  // namespace

std::string inspect_json(const InspectView& view) {
    const Inspection& i = view.inspection;
    Json object = {{"version", HF_VERSION},
                   {"model", i.file->path},
                   {"container", i.file->container},
                   {"files", i.file->files.size()},
                   {"file_bytes", i.file_bytes},
                   {"loads", i.allows(Stops::load)},
                   {"takes_text", i.allows(Stops::text)},
                   {"takes_chat", i.allows(Stops::chat) && !i.chat_template.empty()},
                   {"refusals", refusals_json(i)},
                   {"architecture", i.arch ? Json(i.arch->name) : Json()},
                   {"config", config_json(i)},
                   {"parameters", i.parameters},
                   {"context", i.context},
                   {"kv_cache", view.kv_cache},
                   {"state_bytes", i.state_bytes}};
    object["tokenizer"] = !i.tokenizer ? Json()
                                       : Json{{"kind", i.tokenizer->kind},
                                              {"entries", i.tokenizer->entries},
                                              {"special", i.tokenizer->special}};
    object["chat_template"] = text_or_null(i.chat_template);
    object["stop_ids"] = i.stop_ids;
    object["formats"] = Json::array();
    for (const FormatFacts& f : i.formats) object["formats"].push_back(format_json(f));
    object["plan"] = view.plan ? plan_json(*view.plan) : Json();
    if (view.lists_tensors) {
        object["tensors"] = Json::array();
        const auto weights = weights_by_tensor(view);
        for (size_t at = 0; at < i.file->tensors.size(); ++at) {
            Json& tensor = object["tensors"].emplace_back(tensor_json(i, at));
            if (weights[at]) tensor["place"] = place_json(*weights[at], view.plan->facts.device);
        }
    }
    if (view.scan) object["scan"] = scan_json(*view.scan);
    return json_line(object);
}

}  // namespace hf
