#!/bin/sh
# Fills the columns "error" and "perplexity" of the table in docs/formats.md: what each format does to
# the bundled model. Takes some minutes.
#   sh scripts/measure-formats.sh [FOLDER OF BUILT TOOLS]
# Formats that have no encoder, or do not hold this model's weights, stay empty; why is on stderr.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tools=${1:-$root/build/measure/tools}
[ $# -gt 0 ] || sh "$root/scripts/build.sh" build/measure release -DHF_TESTS=OFF -DHF_WERROR=OFF
table=$root/docs/formats.md
model=$root/models/demo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# As models/demo/README.md measures: the first 2048 tokens, one pass, everything in float32.
measure() {
    if ! "$tools/hf-quantize" "$model" "$work/model.hfq" --format "$1" --force -q \
        >"$work/report" 2>"$work/why"; then
        echo "measure-formats: $1 stays empty: $(cut -c 1-160 "$work/why")" >&2
        return 0
    fi
    "$tools/hf-crosscheck" "$work/model.hfq" --weights "$model" --perplexity "$model/eval.txt" \
        --tokens 2048 --ctx 2048 --kv f32 --activations f32 -q >"$work/checks"
    awk -v name="$1" '
        $1 == name { error = $4 }
        $1 == "perplexity" { perplexity = $2 }
        END { if (error == "" || perplexity == "") exit 1; print name, error, perplexity }
    ' "$work/checks"
}

# shellcheck disable=SC2016  # backticks are meant
names=$(sed -nE 's/^\| `([a-z0-9_]+)`.*/\1/p' "$table")
: >"$work/numbers"
for name in $names; do measure "$name" >>"$work/numbers"; done
[ -s "$work/numbers" ] || { echo "measure-formats: nothing was measured" >&2; exit 1; }

# The table keeps its first ten columns.
awk -v numbers="$work/numbers" '
BEGIN {
    FS = "|"
    while ((getline line < numbers) > 0) {
        split(line, n, " ")
        measured[n[1]] = "| " n[2] " | " n[3] " |"
    }
}
function row(last, i, text) {
    for (i = 2; i <= 11; ++i) text = text "|" $i
    return text last
}
/^\| name / { print row("| error | perplexity |"); in_table = 1; next }
in_table && /^\|---/ { print row("|---:|---:|"); next }
in_table && /^\| `/ {
    name = $2
    gsub(/[ `]/, "", name)
    print row(name in measured ? measured[name] : "|  |  |")
    next
}
{ in_table = 0; print }
' "$table" >"$work/table"
cat "$work/table" >"$table"  # keeps the file's mode
