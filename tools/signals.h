// Ctrl-C: the first one asks for an end, the second one is the end.
#pragma once

#include <atomic>

namespace hf {

/// The exit code of a tool that was interrupted.
inline constexpr int kInterruptedExit = 130;

/// From now on SIGINT and SIGTERM set interrupted(); another one ends the process at once.
void catch_interrupts();

/// Asked between passes. May also be set by the tool itself, when there is no reader left.
std::atomic<bool>& interrupted();

}  // namespace hf
