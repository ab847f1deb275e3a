// The rows of the architecture table, each made by its own file.
#pragma once

#include "libcore/arch/arch.h"

namespace hf {

Architecture llama();  // dense.cpp
Architecture qwen2();
Architecture qwen3();
Architecture qwen35();  // qwen35.cpp

}  // namespace hf
