#include "libcore/model/slots.h"

#include "libcore/base/error.h"

namespace hf {

Slot SlotTable::add(std::string_view name, uint64_t width, Rows rows) {
    HF_ASSERT(slots.size() < 0xffff && width > 0 && width <= UINT32_MAX);
    slots.push_back({uint16_t(slots.size()), rows, uint32_t(width)});
    names.emplace_back(name);
    return slots.back();
}

ArenaLayout lay_out_arena(const SlotTable& table, uint32_t max_tokens, uint32_t max_logits) {
    ArenaLayout layout;
    for (const Slot& slot : table.slots) {
        layout.offset.push_back(layout.floats);
        const uint64_t rows = slot.rows == Rows::tokens ? max_tokens : max_logits;
        layout.floats += (rows * slot.width + 15) / 16 * 16;
    }
    return layout;
}

}  // namespace hf
