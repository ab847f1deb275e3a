// The memory of the host device: a card that ends where it was told to, and its registry.
#include "libcore/device/host_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/device/host_device.h"
#include "tests/support/death.h"
#include "tests/unit/memory_limit.h"

using namespace hf;
using namespace hf::test;

namespace {

constexpr Residency kAll[] = {Residency::device, Residency::host_mapped, Residency::host_plain};

DeviceOptions card(uint64_t bytes) {
    DeviceOptions options;
    options.threads = 1;
    options.vram_bytes = bytes;
    return options;
}

bool is_zero(const std::byte* data, uint64_t bytes) {
    return std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte(0); });
}

}  // namespace

TEST_CASE("card: exactly full fits, one byte more is refused with both numbers") {
    for (const uint64_t size : {1000ull, (1ull << 20) - 1, 5ull << 20}) {
        CAPTURE(size);
        HostMemory memory(card(size));
        const Buffer first = memory.allocate(400, Residency::device);
        {
            const Buffer rest = memory.allocate(size - 400, Residency::device);
            CHECK(memory.info().free == 0);
            CHECK_THROWS_WITH_AS(memory.allocate(1, Residency::device),
                                 doctest::Contains("1 bytes wanted, 0 of"), Error);
        }
        CHECK(memory.info().free == size - 400);
        CHECK_THROWS_AS(memory.allocate(size - 399, Residency::device), Error);
        CHECK_THROWS_AS(memory.allocate(UINT64_MAX, Residency::device), Error);
        CHECK_THROWS_AS(memory.allocate(UINT64_MAX, Residency::host_mapped), Error);
        CHECK(memory.info().total == size);
        CHECK(memory.in_use().all_buffers() == 1);
    }
}

TEST_CASE("card: host memory is none of the card's") {
    HostMemory memory(card(100));
    const Buffer mapped = memory.allocate(1000, Residency::host_mapped);
    const Buffer plain = memory.allocate(2000, Residency::host_plain);
    CHECK(memory.info().free == 100);
    CHECK(memory.in_use().bytes[size_t(Residency::host_mapped)] == 1000);
    CHECK(memory.in_use().bytes[size_t(Residency::host_plain)] == 2000);
}

TEST_CASE("memory: it comes as zeros, with a MiB of zeros behind what is host_mapped") {
    HostMemory memory(card(8 << 20));
    for (const uint64_t bytes : {1ull, 100ull, (1ull << 20) + 3}) {
        for (const Residency residency : kAll) {
            const Buffer buffer = memory.allocate(bytes, residency);
            CHECK(is_zero(buffer.data(), bytes));
            CHECK(buffer.bytes() == bytes);
            CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % 64 == 0);
            const bool is_mapped = residency == Residency::host_mapped;
            CHECK(memory.in_use().slack_bytes == (is_mapped ? kHostSlack : 0));
            if (is_mapped) CHECK(is_zero(buffer.data() + bytes, kHostSlack));
        }
    }
    CHECK(memory.in_use().slack_bytes == 0);
}

TEST_CASE("memory: what cannot be had is refused with its padding and the limit that was met") {
    CHECK(holds_within(64 << 20, [] {
        try {
            HostMemory({}).allocate(1 << 30, Residency::host_mapped);
        } catch (const Error& error) {
            const std::string said = error.what();
            return said.find("1073741824 bytes and 1048576 of padding wanted") != said.npos &&
                   said.find("ulimit -v") != said.npos;
        }
        return false;
    }));
}

TEST_CASE("registry: what was handed out is known until it is given back, views never") {
    HostMemory memory(card(1 << 20));
    const std::vector<std::byte> file(64);
    const Buffer view = Buffer::view(file, Residency::host_mapped);
    CHECK_FALSE(memory.owns(view));
    for (const Residency residency : kAll) {
        Buffer buffer = memory.allocate(64, residency);
        CHECK(memory.owns(buffer));
        CHECK(memory.in_use().buffers[size_t(residency)] == 1);
        const Buffer moved = std::move(buffer);
        CHECK(memory.owns(moved));
        CHECK(memory.in_use().all_buffers() == 1);
    }
    CHECK(memory.in_use().all_buffers() == 0);
    for (const uint64_t bytes : memory.in_use().bytes) CHECK(bytes == 0);
}

TEST_CASE("registry: giving back what is not its own, twice, or as another size is our mistake") {
    HostMemory memory(card(1 << 20));
    std::vector<std::byte> file(64);
    const Buffer buffer = memory.allocate(64, Residency::host_mapped);
    std::byte* data = buffer.writable();
    CHECK(is_aborted([&] { memory.release(file.data(), 64, Residency::host_mapped); }));
    CHECK(is_aborted([&] { memory.release(data, 63, Residency::host_mapped); }));
    CHECK(is_aborted([&] { memory.release(data, 64, Residency::device); }));
    CHECK(is_aborted([&] {
        memory.release(data, 64, Residency::host_mapped);
        memory.release(data, 64, Residency::host_mapped);
    }));
    CHECK_FALSE(is_aborted([&] { memory.release(data, 64, Residency::host_mapped); }));
}

TEST_CASE("faults: the n-th allocation and the n-th upload fail, once") {
    DeviceOptions options = card(1 << 20);
    options.faults.fail_allocation = 2;
    options.faults.fail_upload = 3;
    HostDevice device(options);
    const Buffer first = device.allocate(8, Residency::device);
    CHECK_THROWS_WITH_AS(device.allocate(8, Residency::device), doctest::Contains("allocation 2"),
                         Error);
    CHECK_NOTHROW(device.allocate(8, Residency::device));
    const std::byte bytes[8] = {};
    device.upload(first, 0, bytes);
    device.upload(first, 0, bytes);
    CHECK_THROWS_WITH_AS(device.upload(first, 0, bytes), doctest::Contains("upload 3"), Error);
    CHECK_NOTHROW(device.upload(first, 0, bytes));
    CHECK(device.in_use().all_buffers() == 1);
}

TEST_CASE("faults: a skewed allocation is counted with a byte too much, and given back whole") {
    DeviceOptions options = card(1000);
    options.faults.skew_allocation = 1;
    HostMemory memory(options);
    {
        const Buffer skewed = memory.allocate(1000, Residency::device);
        CHECK(skewed.bytes() == 1000);
        CHECK(memory.in_use().bytes[0] == 1001);
        CHECK(memory.info().free == 0);
    }
    CHECK(memory.in_use().bytes[0] == 0);
    CHECK(memory.info().free == 1000);
}

TEST_CASE("host device: with vram_bytes it copies, without it reads files in place") {
    const std::vector<std::byte> file(64);
    HostDevice processor({1, cpu::Level::scalar, cpu::Activations::f32});
    CHECK_FALSE(processor.info().simulated);
    CHECK(processor.info().in_place);
    for (const Residency residency : kAll)
        CHECK(processor.adopt(file, residency)->data() == file.data());

    HostDevice pretended(card(1 << 20));
    CHECK(pretended.info().simulated);
    CHECK_FALSE(pretended.info().in_place);
    for (const Residency residency : kAll)
        CHECK(pretended.adopt(file, residency).has_value() == (residency == Residency::host_plain));
}

TEST_CASE("host device: one that cannot map host memory hands none out") {
    DeviceOptions options = card(1 << 20);
    options.can_map_host = false;
    HostDevice device(options);
    CHECK_FALSE(device.info().can_map_host);
    CHECK_THROWS_WITH_AS(device.allocate(8, Residency::host_mapped),
                         doctest::Contains("cannot read host memory"), Error);
    CHECK_NOTHROW(device.allocate(8, Residency::device));
    CHECK_NOTHROW(device.allocate(8, Residency::host_plain));
}

TEST_CASE("open: a pretended card is the host device, and no other can play it") {
    CHECK(open_device("auto", card(1 << 20))->info().simulated);
    CHECK(open_device("host", card(1 << 20))->memory().total == 1 << 20);
    CHECK_FALSE(open_device("auto", {.threads = 1})->info().simulated);
    CHECK_THROWS_WITH_AS(open_device("hip", card(1 << 20)), doctest::Contains("device.kind is hip"),
                         Error);
}
