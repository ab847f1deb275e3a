#include "libcore/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "libcore/file/message.h"

namespace hf {
namespace {

// The live mappings, in a list that a signal handler can walk: slots are added, emptied and used
// again, but never freed, and a slot whose range changes is empty in between.
struct Slot {
    std::atomic<uintptr_t> begin;  // first address, or kEmpty, or kClaimed
    std::atomic<uintptr_t> end{0};
    std::atomic<const char*> path{nullptr};
    Slot* next = nullptr;
};
constexpr uintptr_t kEmpty = UINTPTR_MAX, kClaimed = UINTPTR_MAX - 1;  // above every address
std::atomic<Slot*> first_slot{nullptr};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

Slot* claim_slot() {
    for (Slot* slot = first_slot; slot; slot = slot->next) {
        uintptr_t expected = kEmpty;
        if (slot->begin.compare_exchange_strong(expected, kClaimed)) return slot;
    }
    Slot* slot = new Slot{.begin = kClaimed};
    slot->next = first_slot;
    while (!first_slot.compare_exchange_weak(slot->next, slot)) {
    }
    return slot;
}

const char* path_of_mapping_at(uintptr_t address) {
    for (Slot* slot = first_slot; slot; slot = slot->next) {
        const uintptr_t begin = slot->begin;
        const bool inside = begin <= address && address < slot->end;
        const char* path = slot->path;
        if (inside && slot->begin == begin) return path;  // else the slot changed under us
    }
    return nullptr;
}

void say(const char* text) {
    for (size_t left = strlen(text); left > 0;) {
        const ssize_t written = write(STDERR_FILENO, text, left);
        if (written <= 0) return;
        text += written;
        left -= size_t(written);
    }
}

struct sigaction previous_action;

// Calls async-signal-safe functions only.
void on_bus_error(int, siginfo_t* info, void*) {
    const bool by_access = info->si_code > 0;  // not sent by kill() or raise()
    const char* path = by_access ? path_of_mapping_at(uintptr_t(info->si_addr)) : nullptr;
    if (path) {
        say(path);
        say(": the file became shorter while it was in use\n");
        _exit(1);
    }
    sigaction(SIGBUS, &previous_action, nullptr);
    if (!by_access) raise(SIGBUS);  // an access repeats by itself
}

bool install_handler() {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &previous_action) == 0;
}

std::string_view kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

[[noreturn]] void fail_by_system(const std::string& path, std::string_view what, int error) {
    fail_file(path, "cannot be {}: {}", what, std::strerror(error));
}

void check_regular(const std::string& path, const struct stat& status) {
    if (!S_ISREG(status.st_mode)) fail_file(path, "is {}, not a file", kind_of(status.st_mode));
}

/// A file descriptor that closes itself.
struct Descriptor {
    int number;
    ~Descriptor() { close(number); }
};

}  // namespace

struct MappedFile::Mapping {
    std::string path;
    void* base;
    size_t size;
    Slot* slot;

    Mapping(const std::string& path_, void* base_, size_t size_)
        : path(path_), base(base_), size(size_), slot(claim_slot()) {
        slot->end = uintptr_t(base) + size;
        slot->path = path.c_str();
        slot->begin = uintptr_t(base);
    }
    Mapping(const Mapping&) = delete;
    ~Mapping() {
        slot->begin = kEmpty;
        munmap(base, size);
    }
};

MappedFile::MappedFile(const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0) fail_by_system(path, "found", errno);
    check_regular(path, status);  // before opening: that can hang or act on a device

    // not to be stopped by a pipe that took the file's place since
    const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (file.number < 0 || fstat(file.number, &status) != 0) fail_by_system(path, "opened", errno);
    check_regular(path, status);
    if (status.st_size == 0) fail_file(path, "the file is empty; fetch it again");

    const size_t size = size_t(status.st_size);
    void* base = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
    if (base == MAP_FAILED) fail_by_system(path, fmt::format("mapped ({} bytes)", size), errno);
    mapping_ = std::make_unique<Mapping>(path, base, size);
}

MappedFile::~MappedFile() = default;
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;

const std::string& MappedFile::path() const {
    return mapping_->path;
}

std::span<const std::byte> MappedFile::bytes() const {
    return {static_cast<const std::byte*>(mapping_->base), mapping_->size};
}

void report_shrunk_files() {
    static const bool installed = install_handler();
    HF_ASSERT(installed);  // fails only for a signal that does not exist
}

}  // namespace hf
