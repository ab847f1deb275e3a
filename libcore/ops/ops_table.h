// The table of ops: where each may run, what it moves, and the functions that do it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libcore/model/steps.h"
#include "libcore/model/tokens.h"

namespace hf {

/// Where an op may run.
enum class Place : uint8_t {
    weight,    // where its weight's exec says
    state,     // on the device, beside the state
    floating,  // anywhere; the planner decides
};

/// Does piece `part` of `parts` of a step, on memory that the CPU can touch. Pieces touch disjoint
/// outputs, so the result does not depend on how many there are or who does them.
using HostFn = void (*)(const Step& step, const Tokens& tokens, uint32_t part, uint32_t parts);

struct OpRow {
    Op op;
    std::string_view name;
    Place place;
    /// Reads or writes the state of layer params.state.
    bool uses_state;
    /// Into how many pieces the step is worth cutting.
    uint32_t (*pieces)(const Step&, const Tokens&);
    /// Bytes of weights and state read and written once; activations are not counted.
    uint64_t (*bytes)(const Step&, const Tokens&);
    HostFn host;
};

std::span<const OpRow> ops_table();
const OpRow& row_of(Op op);

}  // namespace hf
