// Instruction levels by cpuid and xgetbv (Intel SDM volume 1, chapters 13 and 14; volume 2, CPUID).
#include "cpuexec/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <initializer_list>

namespace hf::cpu {
namespace {

constexpr std::array<std::string_view, kLevels> kNames = {"scalar", "avx2", "avxvnni", "avx512vnni",
                                                          "amx"};

struct Registers {
    uint32_t eax, ebx, ecx, edx;
};

/// All zero when the CPU does not know the leaf.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
    Registers r{};
    if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
    return r;
}

/// Registers that the system saves: bits 1, 2 SSE and AVX; 5 .. 7 AVX-512; 17, 18 AMX.
uint64_t saved_state() {
    if ((cpuid(1, 0).ecx >> 27 & 1) == 0) return 0;  // OSXSAVE
    uint32_t low, high;
    asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
}

constexpr bool all(uint64_t value, std::initializer_list<int> bits) {
    for (int bit : bits)
        if ((value >> bit & 1) == 0) return false;
    return true;
}

/// Whether Linux lets this process use the tile registers.
bool may_use_tiles() {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::array<bool, kLevels> ask_cpu() {
    const Registers one = cpuid(1, 0), seven = cpuid(7, 0);
    const uint32_t seven_one_eax = seven.eax >= 1 ? cpuid(7, 1).eax : 0;
    const uint64_t saved = saved_state();
    std::array<bool, kLevels> has{};
    has[size_t(Level::scalar)] = true;
    const bool avx2 = all(saved, {1, 2}) && all(one.ecx, {12, 28, 29}) && all(seven.ebx, {5});
    has[size_t(Level::avx2)] = avx2;
    has[size_t(Level::avxvnni)] = avx2 && all(seven_one_eax, {4});
    const bool avx512 = avx2 && all(saved, {5, 6, 7}) && all(seven.ebx, {16, 17, 30, 31}) &&
                        all(seven.ecx, {1, 11});
    has[size_t(Level::avx512vnni)] = avx512;
    has[size_t(Level::amx)] =
        avx512 && all(saved, {17, 18}) && all(seven.edx, {24, 25}) && may_use_tiles();
    return has;
}

}  // namespace

std::string_view name(Activations activations) {
    constexpr std::string_view kKinds[kActivations] = {"f32", "i16", "int8"};
    return kKinds[size_t(activations)];
}

std::string_view name(Level level) {
    return kNames[size_t(level)];
}

std::optional<Level> parse_level(std::string_view name) {
    for (size_t l = 0; l < kLevels; ++l)
        if (kNames[l] == name) return Level(l);
    return std::nullopt;
}

bool cpu_has(Level level) {
    static const std::array<bool, kLevels> has = ask_cpu();
    return has[size_t(level)];
}

Level detect_level() {
    size_t l = kLevels - 1;
    while (!cpu_has(Level(l))) --l;
    return Level(l);
}

}  // namespace hf::cpu
