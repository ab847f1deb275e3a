#!/bin/sh
# What the documents, the scripts and the comments name is there: links and paths of this repository.
#   sh scripts/check-docs.sh [ROOT]
set -euf
root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
cd "$root"
texts=$(find . -path ./build -prune -o -path './build-*' -prune -o -name '*.md' -print)
sources=$(find cpuexec kernels libcore tests tools -name '*.h' -o -name '*.cpp' -o -name '*.hip' 2>/dev/null | sort)
if [ -z "$texts" ] || [ -z "$sources" ]; then
    echo "check-docs: no documents or no sources in $root" >&2
    exit 1
fi

# Lines "FILE PATH". Links are relative to their file; paths in backticks, and docs/*.md anywhere,
# to the root. A path with < > or * in it is a pattern, not a file.
# shellcheck disable=SC2016,SC2086  # backticks are meant; our own file names hold no spaces
{
    grep -oHE '\]\([^):#]+[)#]' $texts | sed -E 's|^(.*/)([^/:]*):\]\((.*).$|\1\2 \1\3|'
    grep -oHE '`(cmake|cpuexec|docs|libcore|models|scripts|tests|tools)/[^` ]*`' $texts |
        sed -E 's|^([^:]*):`(.*)`$|\1 \2|'
    grep -oHE '\<docs/[a-z-]+\.md' $sources | tr ':' ' '
} | sort -u | {
    failed=0
    while read -r file path; do
        case $path in
            *[\<\>*]*) continue ;;
        esac
        [ -e "$path" ] || { echo "$file names $path, which is not there"; failed=1; }
    done
    exit $failed
}
