// What passes over the steps put in front of products: values made from a slot, shared by all that
// read them until the slot is written again.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/model/steps.h"

namespace hf {

/// How: what makes two values of the same slot the same; has operator==.
template <class How>
class DerivedSlots {
  public:
    explicit DerivedSlots(SlotTable& slots) : slots_(slots) {}

    struct Derived {
        Slot slot;
        bool is_new;  // the value must be made
    };

    /// The slot of such a value of `from`: where it is, or where it goes. That is a slot that is no
    /// longer needed, if one fits.
    Derived get(Slot from, const How& how, uint64_t width, std::string_view suffix) {
        for (const Value& v : values_)
            if (v.is_current && v.from == from && v.how == how) return {v.to, false};
        for (Value& v : values_)
            if (!v.is_current && v.to.width == width && v.to.rows == from.rows) {
                v = {from, v.to, how, true};
                return {v.to, true};
            }
        const std::string name = slots_.names[from.id] + std::string(suffix);
        values_.push_back({from, slots_.add(name, width, from.rows), how, true});
        return {values_.back().to, true};
    }

    /// Takes note of what a step writes.
    void run(const Step& step) {
        for (Value& v : values_)
            v.is_current &= std::ranges::find(step.out, v.from) == std::end(step.out);
    }

  private:
    struct Value {
        Slot from, to;
        How how;
        bool is_current;  // `from` was not written since
    };
    SlotTable& slots_;
    std::vector<Value> values_;
};

}  // namespace hf
