// Weights that stay in the mapped file: how many pages they are, and who brings them into memory.
#pragma once

#include "libcore/device/host_pages.h"
#include "libcore/device/host_ram.h"
#include "libcore/load/model.h"

namespace hf {

/// Pages of the file with matrices that are read there: all of them on a device that reads in
/// place, else those of residency host_plain.
PageRanges mapped_pages(const ModelPlan& plan, const DeviceInfo& info);

/// Those of them that a pass reads: not an embedding table that is not the head, for a token reads
/// a row of it, unless it is to be locked.
PageRanges pages_of_a_pass(const ModelPlan& plan, const DeviceInfo& info);

/// Has these read in, so that the first answer does not wait for the disk. Nothing is done when
/// they are more than what is available: they would push each other out.
///
/// progress, stop  as of touch_pages()
void touch_weights(const Model& model, const DeviceInfo& info, const HostRam& ram,
                   const Progress& progress, const std::atomic<bool>& stop);

}  // namespace hf
