// Random packed weights of any format, for checks and measurements that have no model at hand.
#pragma once

#include <vector>

#include "libcore/codec/codec.h"

namespace hf {

/// Fills a matrix's tensor with random codes and scales: every weight is a number, and the largest
/// of a group lies between 2^-6 and 2^6. Scales that are floats have random significands (one f16
/// in a thousand is a power of two all the same), so that products are not exact by accident. Rows
/// whose scales lie apart from their codes are f16 numbers from end to end, which suits both.
///
/// seed    the same one gives the same bytes
/// levels  (kLloydLevels) float32 where the codec's sidecar is `levels`, else ignored
/// out     tensor_bytes(codec, shape), any alignment, overwritten
/// Cost    a group is drawn until it suits, some ten times: 30 ns a weight, so repeat rows of a
///         small matrix rather than fill a large one
void fill_random(const Codec& codec, Shape shape, uint64_t seed, const float* levels,
                 std::byte* out);

/// kLloydLevels float32 from -2 to 2, ascending.
std::vector<float> random_levels(uint64_t seed);

}  // namespace hf
