// How far a tool's work is, on a terminal, for a person who waits.
#pragma once

#include "libcore/base/progress.h"

namespace hf {

/// A line "hf-run: loading, 40 %" on standard error, from the second second on. It goes when the
/// work is done or interrupted, and with the last copy of the function. Empty when standard error
/// is no terminal.
///
/// tool, what  live as long as the function
Progress terminal_progress(const char* tool, const char* what);

}  // namespace hf
