// NewFile: a file that is there as a whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hf {

/// Written without a name, where the file system can do that (O_TMPFILE): then nothing stays
/// behind, whatever ends the process. Elsewhere it is called "<path>.<process>.part" meanwhile, or
/// by the next such name that is free, and the destructor removes it.
class NewFile {
  public:
    /// replace  whether finish() may put it in the place of a file that exists
    /// mode     permissions, before the umask; where a file is replaced, those of them that it had
    /// Errors   hf::Error: the path is a folder, a link, a device, ...; it exists and may not be
    ///          replaced (Fault::refused); what the system said
    NewFile(const std::string& path, bool replace, unsigned mode = 0666);
    ~NewFile();
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    /// Writes bytes at a place of the file; from any thread.
    /// Errors  hf::Error naming the path and what the system said
    void write_at(uint64_t offset, const void* data, size_t bytes);

    /// Once, last: makes sure that the bytes are on the disk and gives the file its name.
    /// Errors  hf::Error as above; also when another file took the name meanwhile and may not be
    ///         replaced
    void finish();

  private:
    std::string path_, part_;  // part_ is empty while the file has no name
    bool replace_;
    unsigned mode_;
    int descriptor_ = -1;

    [[noreturn]] void fail(const char* what) const;
    void create();
    void open_named();
    bool link_to(const std::string& name) const;
    void name_part();
    void take_name();
};

}  // namespace hf
