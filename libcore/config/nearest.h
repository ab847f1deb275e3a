// Nearest: what a person may have meant by a name that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hf {

/// The candidate that differs from `wrong` by the fewest edits: insertions, deletions,
/// replacements, and two neighbours that changed places. Empty: none is near. Near is what takes
/// at most a third as many edits as the longer of both has characters, and a name that begins the
/// other one, up to a '-', '_' or '.' or for four characters at least.
///
/// start  what names begin with ("HIPFIRE_", "--"): it is not counted
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> candidates,
                         std::string_view start = "");

/// "; the nearest is NAME", for the end of a message; nothing for an empty name.
std::string nearest_words(std::string_view name);

}  // namespace hf
