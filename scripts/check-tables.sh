#!/bin/sh
# Formats and architectures are rows of tables: no code outside them asks which one it has.
#   sh scripts/check-tables.sh [ROOT]
# Looks for a switch on one, and for a comparison of one with a name or with a row looked up by name.
set -euf
root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
cd "$root"
# The tables, and what their rows point at, may know; everything else may not.
sources=$(find cpuexec libcore tools -name '*.h' -o -name '*.cpp' 2>/dev/null | sort |
    grep -v -e '^libcore/codec/' -e '^libcore/arch/' -e '^cpuexec/formats/') || {
    echo "check-tables: no sources in $root" >&2
    exit 1
}

thing='(codec|format|arch|dtype|model_type)[A-Za-z_0-9.>()-]*'
name='("|(codec|arch)_by_|(Codec|Format|Arch|Dtype)::)'
# shellcheck disable=SC2086  # our own file names hold no spaces
if grep -nE -e "switch *\(.*$thing" -e "$thing *[!=]= *$name" -e "\" *[!=]= *[A-Za-z_0-9.>-]*$thing" \
    -e "ids\.[a-z]+ *[!=]=" $sources; then
    echo "check-tables: the lines above ask which format or architecture they have; put what they" >&2
    echo "need into the table's row (libcore/codec/registry.cpp, libcore/arch/registry.cpp)" >&2
    exit 1
fi
