// Signals that ask a tool to end.
#pragma once

#include <atomic>

namespace hf {

/// The exit code of a tool that was interrupted, by whatever but SIGHUP.
inline constexpr int kInterruptedExit = 130;

/// The exit code by the signals that came: 129 if SIGHUP did, else 130. 0: none came, so that
/// interrupted() is the tool's own doing.
int interrupted_exit();

/// From now on SIGINT, SIGTERM and SIGHUP set interrupted(); another one ends the process at once.
/// A SIGHUP that the parent ignores (nohup) stays ignored.
void catch_interrupts();

/// From now on SIGINT sets interrupted() however often it comes: in a chat it ends an answer, not
/// the chat. SIGTERM and SIGHUP, unless it is ignored, set end_wanted() too; another one ends the
/// process at once.
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
