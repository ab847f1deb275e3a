// The HFQ writer: its bytes, what reads them back, and that a file is whole or not there.
#include "libcore/quantize/hfq_writer.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "libcore/file/hfq.h"
#include "tests/support/data.h"
#include "tests/unit/temp_folder.h"

using namespace hf;
using namespace hf::test;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string unhex(std::string_view hex) {
    std::string out;
    for (size_t i = 0; i + 1 < hex.size(); i += 3)
        out += char(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    return out;
}

HfqHeader one_float() {
    return {0, "{}", {{"a", codec_by_name("f32"), {1}, 4}}};
}

const std::string kOne("\x00\x00\x80\x3f", 4);

/// What a folder holds, sorted.
std::vector<std::string> names_in(const TempFolder& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

using Names = std::vector<std::string>;

/// The sentence of the error, and its fault.
std::pair<std::string, Fault> refusal(const std::string& path, bool replace,
                                      const HfqHeader& header = one_float()) {
    try {
        HfqWriter(path, replace, header);
    } catch (const Error& e) {
        return {e.what(), e.fault()};
    }
    return {"", Fault::world};
}

}  // namespace

TEST_CASE("hfq writer: the smallest file has exactly these bytes") {
    const TempFolder folder;
    HfqWriter writer(folder / "a.hfq", false, one_float());
    writer.write(0, 0, bytes_of(kOne));
    writer.finish();
    std::string want = unhex(
        "48 46 51 4d 01 00 00 00 00 00 00 00 01 00 00 00 "  // magic, version, arch_id, tensors
        "20 00 00 00 00 00 00 00 00 10 00 00 00 00 00 00 "  // metadata at 32, data at 4096
        "7b 7d 01 00 00 00 "                                // {}, tensors
        "01 00 61 02 01 01 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 ");
    want.resize(4096);
    CHECK(read_file(folder / "a.hfq") == want + kOne);
    CHECK(writer.file_bytes() == 4100);
}

TEST_CASE("hfq writer: what many threads write in any order reads back the same") {
    const TempFolder folder;
    constexpr std::string_view kFormats[] = {"f16", "q8_0", "mq4g256v2", "bq1g128", "f32"};
    std::mt19937 random(11);
    HfqHeader header{1, R"({"config":{"model_type":"x"},"tokenizer":"{}"})", {}};
    std::vector<std::string> payloads;
    for (const std::string_view name : kFormats) {
        const Codec& codec = *codec_by_name(name);
        const Shape shape{3, 512};
        payloads.emplace_back(tensor_bytes(codec, shape), '\0');
        for (char& c : payloads.back()) c = char(random());
        header.tensors.push_back({std::string(name), &codec, {3, 512}, payloads.back().size()});
    }
    HfqWriter writer(folder / "x.hfq", false, header);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < payloads.size(); ++t)
        threads.emplace_back([&, t] {
            const size_t cut = payloads[t].size() / 3;
            writer.write(t, cut, bytes_of(payloads[t]).subspan(cut));
            writer.write(t, 0, bytes_of(payloads[t]).first(cut));
        });
    for (std::thread& thread : threads) thread.join();
    writer.finish();

    const ModelFile model = open_hfq(folder / "x.hfq", {});
    CHECK(model.config == R"({"model_type":"x"})");
    REQUIRE(model.tensors.size() == payloads.size());
    for (size_t t = 0; t < payloads.size(); ++t) {
        const TensorView* view = model.find(kFormats[t]);
        REQUIRE(view != nullptr);
        CHECK(view->codec == header.tensors[t].codec);
        CHECK(std::ranges::equal(view->bytes, bytes_of(payloads[t])));
    }
}

TEST_CASE("hfq writer: until it is finished nothing is there, and nothing stays behind") {
    const TempFolder folder;
    {
        HfqWriter writer(folder / "a.hfq", false, one_float());
        CHECK_FALSE(std::filesystem::exists(folder / "a.hfq"));
        for (const std::string& name : names_in(folder))  // where it cannot be without a name
            CHECK(read_file(folder / name).starts_with("HFQ!"));
        writer.write(0, 0, bytes_of(kOne));
    }
    CHECK(names_in(folder).empty());
}

TEST_CASE("hfq writer: a file that exists is replaced only with leave, and by a whole one") {
    const TempFolder folder;
    folder.write("a.hfq", "old");
    const auto [sentence, fault] = refusal(folder / "a.hfq", false);
    CHECK(sentence.find("exists") != std::string::npos);
    CHECK(fault == Fault::refused);
    {
        HfqWriter unfinished(folder / "a.hfq", true, one_float());
        CHECK(read_file(folder / "a.hfq") == "old");
    }
    CHECK(read_file(folder / "a.hfq") == "old");
    HfqWriter writer(folder / "a.hfq", true, one_float());
    writer.write(0, 0, bytes_of(kOne));
    writer.finish();
    CHECK(read_file(folder / "a.hfq").size() == 4100);
    CHECK(names_in(folder) == Names{"a.hfq"});
}

TEST_CASE("hfq writer: a file that appears while it writes stays") {
    const TempFolder folder;
    {
        HfqWriter writer(folder / "a.hfq", false, one_float());
        writer.write(0, 0, bytes_of(kOne));
        folder.write("a.hfq", "another's");
        CHECK_THROWS_AS(writer.finish(), Error);
    }
    CHECK(read_file(folder / "a.hfq") == "another's");
    CHECK(names_in(folder) == Names{"a.hfq"});
}

TEST_CASE("hfq writer: folders, links, pipes and places that do not exist are refused") {
    const TempFolder folder;
    std::filesystem::create_directory(folder / "folder");
    std::filesystem::create_symlink("nowhere", folder / "link");
    mkfifo((folder / "pipe").c_str(), 0600);
    for (const char* name : {"folder", "link", "pipe"})
        CHECK(refusal(folder / name, true).first.find("no") != std::string::npos);
    CHECK(refusal(folder / "missing/a.hfq", true).first.find("No such file") != std::string::npos);
    CHECK(names_in(folder) == Names{"folder", "link", "pipe"});
}

TEST_CASE("hfq writer: what the index cannot hold, or the disk, is refused before writing") {
    const TempFolder folder;
    HfqHeader large = one_float(), long_name = one_float(), enormous = one_float();
    large.tensors[0].dims = {uint64_t(1) << 32};
    long_name.tensors[0].name.assign(1 << 16, 'a');
    enormous.tensors[0].bytes = uint64_t(1) << 60;
    for (const auto& [header, number] :
         {std::pair(large, "4294967296"), {long_name, "65536"}, {enormous, "1152921504606851072"}})
        CHECK(refusal(folder / "a.hfq", false, header).first.find(number) != std::string::npos);
    CHECK(names_in(folder).empty());
}

TEST_CASE("hfq writer: a disk that becomes full is an error, and leaves nothing") {
    const TempFolder folder;
    const pid_t child = fork();
    if (child == 0) {  // limits of this process count for the child alone
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4098, 4098};
        setrlimit(RLIMIT_FSIZE, &limit);
        int code = 1;
        try {
            HfqWriter writer(folder / "a.hfq", false, one_float());
            writer.write(0, 0, bytes_of(kOne));
        } catch (const Error& e) {
            code = std::string_view(e.what()).find("too large") != std::string::npos ? 0 : 2;
        }
        _exit(code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(names_in(folder).empty());
}
