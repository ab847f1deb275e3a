#!/bin/sh
# No instruction beyond the plain machine's in code that runs on every machine: what uses AVX says so
# in its name. usage: check-levels.sh LIBRARY...
set -eu
command -v objdump >/dev/null || { echo "check-levels: objdump (binutils) is missing" >&2; exit 1; }
[ $# -gt 0 ] || { echo "usage: check-levels.sh LIBRARY..." >&2; exit 2; }
objdump -d -C --no-show-raw-insn "$@" | awk '
    /^[0-9a-f]+ <.*>:$/ {
        name = tolower($0)
        wide = name ~ /avx512|amx/
        narrow = wide || name ~ /avx2|avxvnni/
        functions += wide
        next
    }
    # 512-bit registers, masks and the upper half of the register file
    /%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])/ { if (!wide) bad($0) ; next }
    $2 ~ /^(tile|tdp|ldtilecfg|sttilecfg)/ { if (name !~ /amx/) bad($0) ; next }
    $2 ~ /^v/ { if (!narrow) bad($0) }
    function bad(line) {
        if (name != last) print "not allowed here: " name
        last = name
        if (++count <= 20) print "    " line
    }
    END {
        if (functions == 0) { print "no AVX-512 function found: is this the right library?"; exit 1 }
        exit count > 0
    }'
