#!/bin/sh
# The checks of the source tree find what they look for: each passes on a small clean tree and fails
# when one wrong line is added to it.
#   sh check_scripts.sh SCRIPTS-FOLDER
# shellcheck disable=SC2016  # backticks are meant
set -eu
scripts=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

clean_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/cpuexec" "$tree/libcore/base" "$tree/libcore/exec" "$tree/libcore/config"
    cd "$tree"
    echo 'hf_library(hf_cpuexec FILES a.cpp)' >cpuexec/CMakeLists.txt
    echo 'hf_library(hf_base FILES a.cpp LIBS hf_cpuexec)  # below all' >libcore/base/CMakeLists.txt
    echo 'hf_library(hf_config FILES a.cpp LIBS hf_base)' >libcore/config/CMakeLists.txt
    printf 'hf_library(hf_exec\n    FILES\n        a.cpp\n    LIBS hf_base)\n' >libcore/exec/CMakeLists.txt
    mkdir docs
    printf '[a](docs/b.md) and `libcore/base/a.h`, [far](https://example.com/x)\n' >README.md
    printf '[c](b.md#part) `docs/<name>.md` `tests/x`\n' >docs/b.md
    mkdir -p tests/x
    echo 'int cpu();  // docs/b.md' >cpuexec/a.h
    echo '#include "libcore/base/a.h"' >libcore/config/a.cpp
    echo 'int base();' >libcore/base/a.h
    cat >libcore/exec/a.cpp <<'CODE'
#include <vector>
#include "cpuexec/a.h"
#include "libcore/base/a.h"
/* exit(1); and
   printf("x"); */
const char* text = "getenv(\"HOME\") // ";  // std::cout << text;
int n = snprintf(buffer, sizeof buffer, "%d", '"');
static_assert(sizeof(int) == 4);
if (a.codec == b.codec && a.codec != nullptr && kv_cache == "f16" && cols % a.codec->group == 0) exit_code(1);
CODE
}

# expect passes|fails CHECK: runs it on the tree.
expect() {
    result=passes
    sh "$scripts/check-$2.sh" "$tree" >"$tree/output" 2>&1 || result=fails
    [ "$result" = "$1" ] && return
    echo "check-$2.sh $result on the tree with: ${3:-nothing wrong}"
    cat "$tree/output"
    failed=1
}

# finds CHECK FILE LINE: the check fails when the line stands at the end of the file.
finds() {
    clean_tree
    printf '%s\n' "$3" >>"$tree/$2"
    expect fails "$1" "$2: $3"
}

for check in docs includes silence tables; do
    clean_tree
    expect passes "$check"
    rm -rf "${tree:?}"/*
    expect fails "$check" 'no sources at all'
done

finds docs README.md '[a](docs/a.md)'
finds docs docs/b.md '[a](docs/b.md)'
finds docs docs/b.md '`scripts/none.sh`'
finds docs cpuexec/a.h '// Source  docs/a.md, section 2'

finds includes libcore/exec/a.cpp '#include "libcore/config/a.h"'
finds includes libcore/base/a.h '#  include "libcore/exec/a.h"'
finds includes libcore/exec/a.cpp '#include "a.h"'
finds includes libcore/exec/a.cpp '#include "tools/cli.h"'
finds includes cpuexec/a.h '#include "libcore/base/a.h"'
finds includes cpuexec/CMakeLists.txt 'hf_library(hf_kernels LIBS hf_exec) hf_library(hf_base LIBS hf_exec)'

finds silence libcore/exec/a.cpp 'printf("text");'
finds silence cpuexec/a.h 'std::cerr << 1;'
finds silence libcore/exec/a.cpp 'fmt::print("{}", 1);'
finds silence libcore/exec/a.cpp 'const char* home = std::getenv ("HOME");'
finds silence libcore/exec/a.cpp '"\\"; std::exit(1);'
finds silence libcore/exec/a.cpp 'std::abort();'
finds silence libcore/exec/a.cpp 'fputs("x", stderr);'
finds silence libcore/exec/a.cpp 'write(STDERR_FILENO, text, n);'

finds tables libcore/exec/a.cpp 'switch (weight.codec->ids.hfq) {'
finds tables libcore/exec/a.cpp 'if (w->codec->name == "q8_0") return;'
finds tables libcore/exec/a.cpp 'if (w.codec != codec_by_name("f32")) return;'
finds tables libcore/exec/a.cpp 'if ("qwen3_5" == model.arch->name) return;'
finds tables libcore/exec/a.cpp 'if (tensor.dtype=="BF16") return;'
finds tables libcore/exec/a.cpp 'if (w.codec->ids.gguf == 8) return;'

exit $failed
