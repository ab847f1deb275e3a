// Signals that ask a tool to end.
#pragma once

#include <atomic>

namespace hf {

/// The exit code of a tool that was interrupted.
inline constexpr int kInterruptedExit = 130;

/// From now on SIGINT and SIGTERM set interrupted(); another one ends the process at once.
void catch_interrupts();

/// From now on SIGINT sets interrupted() however often it comes: in a chat it ends an answer, not
/// the chat. SIGTERM and SIGHUP set end_wanted() too; another one ends the process at once.
///
/// restore  called before such an end, in the signal handler
void catch_chat_signals(void (*restore)());

/// Asked between passes. May also be set by the tool itself, when there is no reader left.
std::atomic<bool>& interrupted();
bool end_wanted();

/// Becomes readable when a signal came in a chat, so that poll() can wait for it; who reads it
/// empty does so before looking at the flags.
int signal_descriptor();
/// For handlers of other signals: makes it readable. Async-signal-safe.
void wake_up();

}  // namespace hf
