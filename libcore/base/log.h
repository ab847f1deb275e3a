// The library never prints: it writes lines to a sink, and the tool that made the sink decides.
#pragma once

#include <functional>
#include <string_view>

namespace hf {

/// asked: what somebody asked for by a setting of its own, and gets whatever else is silent.
enum class LogLevel { error, warn, asked, info, debug, trace };

/// Takes one line without its newline. An empty function drops everything.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// A sink and the levels it wants. Copyable; the sink must outlive what it was passed to.
struct Log {
    LogSink sink;
    LogLevel most = LogLevel::info;  // lines beyond this level are dropped

    bool wants(LogLevel level) const { return sink && level <= most; }
    void write(LogLevel level, std::string_view line) const {
        if (wants(level)) sink(level, line);
    }
    void warn(std::string_view line) const { write(LogLevel::warn, line); }
    void asked(std::string_view line) const { write(LogLevel::asked, line); }
    void info(std::string_view line) const { write(LogLevel::info, line); }
    void debug(std::string_view line) const { write(LogLevel::debug, line); }
};

}  // namespace hf
