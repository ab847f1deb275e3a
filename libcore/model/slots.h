// Slots: the named regions of the activation arena.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// How many rows a slot has in a pass: one per token, or one per token whose logits are wanted.
enum class Rows : uint8_t { tokens, logits };

/// A region (rows, width) of float32 in the arena. A value; the arena gives it an address.
struct Slot {
    uint16_t id = 0xffff;
    Rows rows = Rows::tokens;
    uint32_t width = 0;

    bool exists() const { return id != 0xffff; }
    bool operator==(const Slot&) const = default;
};

/// All slots of a model, in the order in which they were declared.
struct SlotTable {
    std::vector<Slot> slots;
    std::vector<std::string> names;  // for printing

    Slot add(std::string_view name, uint64_t width, Rows rows = Rows::tokens);
};

/// Where each slot begins in an arena for so many rows.
struct ArenaLayout {
    std::vector<uint64_t> offset;  // floats, by slot id; multiples of 16
    uint64_t floats = 0;
};

/// The arena for at most `max_tokens` tokens of which at most `max_logits` want logits.
ArenaLayout lay_out_arena(const SlotTable& table, uint32_t max_tokens, uint32_t max_logits);

}  // namespace hf
