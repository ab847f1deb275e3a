#!/bin/sh
# GB/s of every function of the CPU engine that this processor can run, one column each: writes
# docs/perf/cpu-speeds.txt, and docs/cpu-coverage.md with them. On a machine that is otherwise quiet; plain
# functions are slow, so it takes half an hour.
#   sh scripts/measure-coverage.sh [FOLDER OF A BUILD WITH BENCHMARKS [FLAGS OF hf-bandwidth]]
# The flags stand in place of: -f all --windows 5
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=${1:-$root/build/bench}
if [ $# -gt 0 ]; then
    shift
else
    sh "$root/scripts/build.sh" build/bench release -DHF_BENCHMARKS=ON -DHF_TESTS=OFF >&2
fi
[ $# -gt 0 ] || set -- -f all --windows 5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
"$build/benchmarks/micro/hf-bandwidth" "$@" --json >"$work/arms"

# An arm that was disturbed in all windows has no speed.
sed -nE 's#.*"device":"([^"]*)","threads":([0-9]+),.*#\1, \2 threads#p' "$work/arms" | sort -u >"$work/machine"
{
    echo "# hf-bandwidth, $(cat "$work/machine"), $(date +%F)"
    sed -nE 's#.*"format":"([^"]+)","arm":"((f32|i16|int8)/[a-z0-9]+)","gb_per_s":\{"median":([0-9.e+-]+).*#\1 \2 \4#p' \
        "$work/arms" | awk '$3 > 0 { printf "%s %s %.3g\n", $1, $2, $3 }'
} >"$work/speeds"
"$build/tools/hf-inspect" --coverage --speeds "$work/speeds" >"$work/page"
cat "$work/speeds" >"$root/docs/perf/cpu-speeds.txt"
cat "$work/page" >"$root/docs/cpu-coverage.md"
