// ProductKind: what the matrix products of a plan are really computed with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/device/device.h"
#include "libcore/load/model.h"

namespace hf {

struct ProductKind {
    cpu::Activations activations;
    cpu::Level level;    // the highest at or below the device's that has dots for it
    uint64_t bytes = 0;  // of the weights that one token multiplies so
};

/// Of all products of a plan that the processor computes (all, on a host device), most bytes first.
/// What was asked for (DeviceInfo::activations) is not what a format without integer dots gets.
std::vector<ProductKind> product_kinds(const ModelPlan& plan, const DeviceInfo& info);

/// "i16/avx2", and where there are several: "i16/amx and f32/avx2".
std::string product_text(const std::vector<ProductKind>& kinds);

}  // namespace hf
