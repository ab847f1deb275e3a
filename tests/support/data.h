// Where tests find their data, and how they read it.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace hf::test {

/// Path of a file or folder below tests/data.
inline std::string data_path(const std::string& name) {
    return HF_TEST_DATA "/" + name;
}

/// The bundled demo model's folder.
inline std::string demo_model_path() {
    return HF_DEMO_MODEL;
}

/// The whole file as bytes; throws when it cannot be read.
inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// A file of raw little-endian values (fixtures *.f32, *.i32).
template <class T>
std::vector<T> read_values(const std::string& path) {
    const std::string bytes = read_file(path);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

}  // namespace hf::test
