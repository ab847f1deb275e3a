// Weights that stay in the mapped file: which pages they are, and who brings them into memory.
#pragma once

#include "libcore/device/host_pages.h"
#include "libcore/device/host_ram.h"
#include "libcore/load/model.h"

namespace hf {

/// Pages of the file with matrices that are read there: all of them on a device that reads in
/// place, else those of residency host_plain.
PageRanges mapped_pages(const ModelPlan& plan, const DeviceInfo& info);

/// Pages that should be in memory before the load: those that passes read, and the vectors in
/// between, which the load reads. Not an embedding table that is not the head, of which a token
/// reads a row, unless it is to be locked.
PageRanges pages_to_touch(const ModelPlan& plan, const DeviceInfo& info);

/// Has these read in, in the order of the file and as fast as the disk can, so that neither the
/// load nor the first answer waits for single pages. Nothing is done when they are more than what
/// is available: they would push each other out.
///
/// progress, stop  as of touch_pages()
void touch_weights(const ModelPlan& plan, const DeviceInfo& info, const HostRam& ram,
                   const Progress& progress, const std::atomic<bool>& stop);

}  // namespace hf
