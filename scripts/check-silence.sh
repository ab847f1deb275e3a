#!/bin/sh
# The library never prints, never exits and never reads the environment: tools do.
#   sh scripts/check-silence.sh [ROOT]
set -euf
root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
cd "$root"
# shellcheck disable=SC2046  # our own file names hold no spaces
exec awk '
BEGIN {
    # FILE:WORD that may stand where it stands.
    allowed["libcore/base/error.h:abort"] = 1                    # HF_ASSERT
    # A mapped file that shrinks is met in a signal handler, which has no other way out.
    allowed["libcore/file/mapped_file.cpp:STDERR_FILENO"] = 1
    allowed["libcore/file/mapped_file.cpp:_exit"] = 1

    called = "^(v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror|print|println|assert|getenv|" \
             "secure_getenv|exit|_exit|_Exit|quick_exit|abort|terminate)$"
    named = "^(cout|cerr|clog|wcout|wcerr|stdout|stderr|STDOUT_FILENO|STDERR_FILENO)$"
}
# The line without comments, strings and characters.
function code(line, out, at) {
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    gsub(/'\''([^'\''\\]|\\.)'\''/, "0", line)
    out = ""
    while (line != "") {
        if (in_comment) {
            if (!(at = index(line, "*/"))) return out
            line = substr(line, at + 2); in_comment = 0
        } else if (match(line, /\/\/|\/\*/)) {
            out = out substr(line, 1, RSTART - 1)
            if (substr(line, RSTART, 2) == "//") return out
            line = substr(line, RSTART + 2); in_comment = 1
        } else return out line
    }
    return out
}
FNR == 1 { in_comment = 0 }
{
    rest = code($0)
    while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
        word = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if ((word ~ named || (word ~ called && rest ~ /^[ \t]*\(/)) &&
            !allowed[FILENAME ":" word]) {
            print FILENAME ":" FNR ": the library may not use " word
            failed = 1
        }
    }
    ++lines
}
END {
    if (!lines) { print "check-silence: no sources"; failed = 1 }
    exit failed
}
' $(find cpuexec libcore -name '*.h' -o -name '*.cpp' | sort)
