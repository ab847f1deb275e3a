#!/bin/sh
# The arrows of the tree: a leaf includes its own headers and those of the leaves below it.
#   sh scripts/check-includes.sh [ROOT]
# The arrows are the LIBS of hf_library() in the leaves' CMake lists, followed to the end; they form
# no circle. Includes in quotes are spelled from the root, and reach neither tools nor tests.
# cpuexec and kernels know nothing of libcore, whatever their LIBS say.
set -euf
root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
cd "$root"
lists=$(find cpuexec kernels libcore -name CMakeLists.txt 2>/dev/null | sort)
sources=$(find cpuexec kernels libcore -name '*.h' -o -name '*.cpp' -o -name '*.hip' 2>/dev/null | sort)
if [ -z "$lists" ] || [ -z "$sources" ]; then
    echo "check-includes: no sources in $root" >&2
    exit 1
fi

# shellcheck disable=SC2086  # our own file names hold no spaces
exec awk '
# The leaf that a path belongs to: libcore/exec/x.h -> hf_exec, cpuexec/x.h -> hf_cpuexec.
function leaf_of(path, part) {
    split(path, part, "/")
    return "hf_" (part[1] == "libcore" ? part[2] : part[1])
}
function complain(text) { print text; failed = 1 }

# What a leaf links: everything between LIBS and the closing bracket of hf_library().
function read_list(line) {
    sub(/#.*/, "", line)
    gsub(/[()]/, " & ", line)
    count = split(line, word, " ")
    for (i = 1; i <= count; ++i) {
        if (word[i] == "hf_library") { target = ""; in_libs = 0; in_call = 1 }
        else if (!in_call || word[i] == "(") continue
        else if (word[i] == ")") in_call = 0
        else if (target == "") { target = word[i]; leaf[target] = 1 }
        else if (word[i] == "LIBS") in_libs = 1
        else if (in_libs) reach[target, word[i]] = 1
    }
}
function follow_to_the_end(via, from, to) {
    for (via in leaf) for (from in leaf) for (to in leaf)
        if (reach[from, via] && reach[via, to]) reach[from, to] = 1
    for (from in leaf) if (reach[from, from]) complain(from " depends on itself")
}

FILENAME ~ /CMakeLists.txt$/ { read_list($0); next }
!followed { follow_to_the_end(); followed = 1 }
FNR == 1 && !leaf[leaf_of(FILENAME)] { complain(FILENAME ": no hf_library(" leaf_of(FILENAME) " ...)") }
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    from = leaf_of(FILENAME); to = leaf_of(quoted[2]); here = FILENAME ":" FNR ": "
    if (quoted[2] !~ /^(libcore|cpuexec|kernels)\//)
        complain(here "\"" quoted[2] "\" does not begin with libcore/, cpuexec/ or kernels/")
    else if (FILENAME !~ /^libcore\// && quoted[2] ~ /^libcore\//)
        complain(here FILENAME " knows nothing of libcore, but includes \"" quoted[2] "\"")
    else if (from != to && !reach[from, to])
        complain(here from " does not link " to ", but includes \"" quoted[2] "\"")
}
END { exit failed }
' $lists $sources
