// HfqWriter: an HFQ file (libcore/file/hfq.h has its layout), whole or not there at all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/codec/codec.h"
#include "libcore/file/new_file.h"

namespace hf {

/// A tensor in the index.
struct HfqEntry {
    std::string name;
    const Codec* codec = nullptr;  // one that HFQ has a number for
    std::vector<uint64_t> dims;    // slowest first
    uint64_t bytes = 0;            // of the payload
};

/// Everything in front of the payloads, which follow in the order of the tensors.
struct HfqHeader {
    uint32_t arch_id = 0;
    std::string metadata;  // one JSON object
    std::vector<HfqEntry> tensors;
};

/// Writes a NewFile, which takes its name when everything is on disk. Until then, whatever happens,
/// nothing is under that name that was not there before.
class HfqWriter {
  public:
    /// Writes header, metadata and index.
    /// replace  a file of that name may exist; without it that is an error, also when it appears
    ///          while we write
    /// Errors   hf::Error: what NewFile refuses; the disk has less room than the file needs; a name
    ///          or dimension beyond the format's
    HfqWriter(const std::string& path, bool replace, const HfqHeader& header);

    /// Bytes [offset, offset + size) of a tensor's payload. In any order, from any thread, each
    /// byte once.
    /// Errors  hf::Error with what the system said
    void write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes);

    /// All payloads were written: syncs, renames, syncs the folder.
    void finish();

    uint64_t file_bytes() const { return begin_.back(); }

  private:
    NewFile file_;
    std::vector<uint64_t> begin_;  // of each payload, and the end of the file
    std::atomic<uint64_t> written_ = 0;
};

}  // namespace hf
