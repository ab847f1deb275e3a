#include "libcore/text/tokenizer_steps.h"

namespace hf {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

bool is_text(const std::optional<JsonNode>& node, std::string_view text) {
    return node && node->text() == text;
}

/// The steps of a sequence, or the one step that stands alone.
std::vector<JsonNode> steps_of(const JsonNode& node, std::string_view list) {
    return node.type() == "Sequence" ? node.need(list).items() : std::vector<JsonNode>{node};
}

void refuse_type(const JsonNode& step, std::string_view kind) {
    step.refuse(fmt::format("the {} {}", kind, in_quotes(step.type())));
}

/// Replace: every `from` by `to`.
bool replaces(const JsonNode& step, std::string_view from, std::string_view to) {
    return step.type() == "Replace" && is_text(step.need("pattern").find("String"), from) &&
           step.need("content").text() == to;
}

/// Returns whether it makes spaces what SentencePiece's tokens have in their place.
bool read_normalizer(const JsonNode& normalizer, Spelling spelling, Vocab& vocab) {
    bool marks_spaces = false;
    for (const JsonNode& step : steps_of(normalizer, "normalizers")) {
        const bool spaced = spelling == Spelling::spaced;
        if (step.type() == "Sequence")
            marks_spaces |= read_normalizer(step, spelling, vocab);
        else if (step.type() == "NFC")
            vocab.nfc = true;
        else if (spaced && replaces(step, " ", kSpaceMark))
            marks_spaces = true;
        else if (spaced && step.type() == "Prepend" && is_text(step.find("prepend"), kSpaceMark))
            vocab.space_prefix = SpacePrefix::each;
        else
            refuse_type(step, "normalizer");
    }
    return marks_spaces;
}

/// ByteLevel, which spells bytes as characters, behind what it may follow.
void read_byte_level(const JsonNode& pre, Vocab& vocab) {
    const std::vector<JsonNode> steps = steps_of(pre, "pretokenizers");
    if (steps.empty() || steps.size() > 2) pre.refuse("a sequence of other than 1 or 2 steps");
    const JsonNode &first = steps[0], &bytes = steps.back();
    if (bytes.type() != "ByteLevel") refuse_type(bytes, "pre-tokenizer");
    if (bytes.flag("add_prefix_space", true)) bytes.refuse("add_prefix_space");
    const bool is_gpt2 = bytes.flag("use_regex", true);

    if (steps.size() == 1) {
        vocab.split = &split_pattern(is_gpt2 ? "gpt2" : "whole");
    } else if (first.type() == "Digits") {
        if (!first.flag("individual_digits", false)) first.refuse("individual_digits = false");
        if (!is_gpt2) bytes.refuse("use_regex = false behind Digits");
        vocab.split = &split_pattern("smollm");
    } else if (first.type() == "Split") {
        if (first.need("behavior").text() != "Isolated")
            first.refuse("a behavior other than Isolated");
        if (first.flag("invert", false)) first.refuse("invert");
        if (is_gpt2) bytes.refuse("use_regex behind Split");
        const JsonNode regex = first.need("pattern").need("Regex");
        vocab.split = find_split_pattern(regex.text());
        if (!vocab.split)
            regex.refuse(fmt::format("the split pattern {}", in_quotes(regex.text())));
    } else {
        refuse_type(first, "pre-tokenizer");
    }
}

SpacePrefix read_prefix(const JsonNode& metaspace) {
    const auto scheme = metaspace.find("prepend_scheme");
    if (!scheme)  // older files
        return metaspace.flag("add_prefix_space", true) ? SpacePrefix::each_missing
                                                        : SpacePrefix::none;
    if (is_text(scheme, "always")) return SpacePrefix::each_missing;
    if (is_text(scheme, "first")) return SpacePrefix::first_missing;
    if (is_text(scheme, "never")) return SpacePrefix::none;
    scheme->refuse(in_quotes(scheme->text()));
}

void read_metaspace(const JsonNode& pre, Vocab& vocab) {
    if (pre.type() != "Metaspace") refuse_type(pre, "pre-tokenizer");
    if (pre.need("replacement").text() != kSpaceMark) pre.refuse("a replacement other than U+2581");
    if (vocab.space_prefix != SpacePrefix::none) pre.refuse("Metaspace behind Prepend");
    vocab.space_prefix = read_prefix(pre);
    if (pre.flag("split", true)) vocab.split = &split_pattern("spaces");
}

/// Spaces back, bytes back, and maybe the first space off.
void read_spaced_decoder(const JsonNode& decoder, Vocab& vocab) {
    bool spaces = false, bytes = false;
    for (const JsonNode& step : steps_of(decoder, "decoders")) {
        const std::string_view type = step.type();
        if (replaces(step, kSpaceMark, " "))
            spaces = true;
        else if (type == "ByteFallback")
            bytes = true;
        else if (type == "Strip" && is_text(step.find("content"), " ") &&
                 step.need("start").id() == 1 && step.need("stop").id() == 0)
            vocab.drops_first_space = true;
        else if (type != "Fuse")
            refuse_type(step, "decoder");
    }
    if (!spaces || !bytes)
        decoder.refuse("a decoder without ByteLevel, or Replace and ByteFallback");
}

/// The tokens of a template, those before the text and those behind it.
void read_template(const JsonNode& processor, Vocab& vocab) {
    const JsonNode known = processor.need("special_tokens");
    std::vector<int32_t>* side = &vocab.before;
    for (const JsonNode& part : processor.need("single").items()) {
        if (part.find("Sequence")) {
            side = &vocab.after;
            continue;
        }
        const std::string_view name = part.need("SpecialToken").need("id").text();
        for (const JsonNode& item : known.need(name).need("ids").items()) {
            if (item.id() >= vocab.size() || vocab.token(item.id()).empty())
                item.fail(fmt::format("the id {} is not one of the {} known ones", item.id(),
                                      vocab.size()));
            side->push_back(item.id());
        }
    }
}

}  // namespace

Spelling read_steps(const JsonNode& root, Vocab& vocab) {
    const JsonNode decoder = root.need("decoder");
    const Spelling spelling =
        decoder.type() == "ByteLevel" ? Spelling::byte_level : Spelling::spaced;
    const auto normalizer = root.find("normalizer");
    const bool marks_spaces = normalizer && read_normalizer(*normalizer, spelling, vocab);
    if (spelling == Spelling::byte_level) {
        read_byte_level(root.need("pre_tokenizer"), vocab);
        return spelling;
    }
    read_spaced_decoder(decoder, vocab);
    const auto pre = root.find("pre_tokenizer");
    if (pre) read_metaspace(*pre, vocab);
    if (!pre && !marks_spaces) root.refuse("a decoder of U+2581 without Metaspace or Replace");
    return spelling;
}

void read_post_processor(const JsonNode& processor, Vocab& vocab) {
    for (const JsonNode& part : steps_of(processor, "processors")) {
        if (part.type() == "TemplateProcessing")
            read_template(part, vocab);
        else if (part.type() != "ByteLevel")  // which moves offsets only
            refuse_type(part, "post-processor");
    }
}

}  // namespace hf
