// Admission: how many sessions of a loaded model a device holds, and what the host keeps of those
// that left it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace hf {

/// What a model takes, in bytes that were really allocated (LoadStats), and what a session takes.
struct ModelFootprint {
    uint64_t weight_bytes = 0;        // on the device
    uint64_t session_bytes = 0;       // on the device, of a session of any length
    uint64_t kv_bytes_per_token = 0;  // on the device, and this for each token that it may have
    uint64_t pinned_bytes = 0;        // of the host, for as long as the model is loaded
    bool operator==(const ModelFootprint&) const = default;
};

/// Host memory for sessions that left the device. Starts charged with what the model pins.
class HostTier {
  public:
    HostTier(uint64_t budget, uint64_t pinned) : budget_(budget), used_(pinned) {}

    /// Whether the bytes fit; exactly full does. No: the session goes to the disk, which is no
    /// error.
    bool reserve(uint64_t bytes);
    void give_back(uint64_t bytes);
    uint64_t used() const { return used_; }

  private:
    uint64_t budget_, used_;
};

enum class Verdict : uint8_t { admitted, pool_full, would_exceed, unknown_session };

/// What was decided, and by which numbers.
struct Admission {
    Verdict verdict = Verdict::admitted;
    uint64_t need = 0, available = 0;  // bytes; would_exceed only

    bool ok() const { return verdict == Verdict::admitted; }
    /// "3.50 GiB are needed, but 3.00 GiB are available"
    std::string text() const;
};

/// Charges sessions to a device. Refuses and never gives less than was asked for. A session that
/// would land exactly on the edge is refused: what the driver takes is not known to the byte.
class AdmissionController {
  public:
    /// device_budget  bytes for weights and sessions
    /// host_budget    bytes for what the model pins and the host tier
    AdmissionController(const ModelFootprint& model, uint64_t device_budget, uint64_t host_budget,
                        uint32_t most_sessions);

    /// A session of up to `tokens`; the first one pays for the weights. Its id is new.
    Admission admit(uint64_t session, uint64_t tokens);
    /// Growth is judged as admit() judges; shrinking always succeeds.
    Admission resize(uint64_t session, uint64_t tokens);
    /// The last one to go returns the weights too. An id that is not there is no error.
    void release(uint64_t session);

    uint64_t used() const { return used_; }  // 0 without sessions
    size_t sessions() const { return tokens_.size(); }
    HostTier& host_tier() { return host_tier_; }

  private:
    ModelFootprint model_;
    uint64_t budget_, used_ = 0;
    HostTier host_tier_;
    uint32_t most_sessions_;
    std::unordered_map<uint64_t, uint64_t> tokens_;  // by session

    Admission charge(uint64_t fixed_bytes, uint64_t tokens);
};

}  // namespace hf
