#!/bin/sh
# What each format does to the bundled model, with each kind of activations. Fills the columns "error"
# to "int8" of the table in docs/formats.md, and prints a finer table, with the small GGUF models of
# tests/data at its end. Takes some minutes.
#   sh scripts/measure-formats.sh [FOLDER OF BUILT TOOLS] > table.md
# Formats that have no encoder, or do not hold this model's weights, stay empty; why is on stderr.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tools=${1:-$root/build/measure/tools}
[ $# -gt 0 ] || sh "$root/scripts/build.sh" build/measure release -DHF_TESTS=OFF -DHF_WERROR=OFF >&2
table=$root/docs/formats.md
model=$root/models/demo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
"$tools/hf-inspect" --coverage >"$work/coverage"

# multiplies FORMAT KIND: whether the processor has dots of that format for activations of that kind.
multiplies() {
    awk -v format="\`$1\`" -v kind="$2" '
        $1 == "##" { in_kind = $2 == kind }
        in_kind && $2 == format && $6 == "own" { found = 1 }
        END { exit !found }
    ' "$work/coverage"
}

# likelihood FILE KIND TOKENS: mean negative log-likelihood of eval.txt, in passes of as many tokens;
# what is not the weights' or the activations' in float32.
likelihood() {
    "$tools/hf-crosscheck" "$1" --perplexity "$model/eval.txt" --tokens 2048 --ctx "$3" --kv f32 \
        --activations "$2" --json -q | sed -nE 's/.*"mean_nll":([0-9.e-]+).*/\1/p' | grep .
}

# measure NAME FILE TOKENS ERROR: a line "NAME ERROR F32 I16 INT8" of likelihoods; - for dots that are not there.
measure() {
    echo "$1 $4 $(likelihood "$2" f32 "$3") $(
        for kind in i16 int8; do
            if multiplies "$1" $kind; then likelihood "$2" $kind "$3"; else echo -; fi
        done | paste -sd ' ' -
    )"
}

# As models/demo/README.md measures: the first 2048 tokens, one pass.
measure_format() {
    if ! "$tools/hf-quantize" "$model" "$work/model.hfq" --format "$1" --force -q \
        >"$work/report" 2>"$work/why"; then
        echo "measure-formats: $1 stays empty: $(cut -c 1-160 "$work/why")" >&2
        return 0
    fi
    error=$("$tools/hf-crosscheck" "$work/model.hfq" --weights "$model" -q |
        awk -v name="$1" '$1 == name { print $4 }')
    measure "$1" "$work/model.hfq" 2048 "${error:?}"
}

# shellcheck disable=SC2016  # backticks are meant
names=$(sed -nE 's/^\| `([a-z0-9_]+)`.*/\1/p' "$table")
for name in $names; do measure_format "$name"; done >"$work/numbers"
[ -s "$work/numbers" ] || { echo "measure-formats: nothing was measured" >&2; exit 1; }

# The table keeps its first ten columns.
awk -v numbers="$work/numbers" '
function perplexity(nll) { return nll == "-" ? "" : sprintf("%.4f", exp(nll)) }
BEGIN {
    FS = "|"
    while ((getline line < numbers) > 0) {
        split(line, n, " ")
        measured[n[1]] = "| " n[2] " | " perplexity(n[3]) " | " perplexity(n[4]) " | " \
            perplexity(n[5]) " |"
    }
}
function row(last, i, text) {
    for (i = 2; i <= 11; ++i) text = text "|" $i
    return text last
}
/^\| name / { print row("| error | perplexity | i16 | int8 |"); in_table = 1; next }
in_table && /^\|---/ { print row("|---:|---:|---:|---:|"); next }
in_table && /^\| `/ {
    name = $2
    gsub(/[ `]/, "", name)
    print row(name in measured ? measured[name] : "|  |  |  |  |")
    next
}
{ in_table = 0; print }
' "$table" >"$work/table"
cat "$work/table" >"$table"  # keeps the file's mode

# format:file of tests/data/gguf, by the format of most weights
for pair in q4_0:tiny_llama.q4_0 q4_k:tiny_qwen35_b.q4_k_m q8_0:tiny_qwen35_b.q8_0; do
    measure "${pair%%:*}" "$root/tests/data/gguf/${pair#*:}.gguf" 512 "(${pair#*:})"
done >>"$work/numbers"

awk '
function change(nll) { return nll == "-" ? "" : sprintf("%+.3f", 1000 * (nll - $3)) }
BEGIN {
    print "| format | perplexity, f32 | nats, f32 | i16, 1/1000 nat | int8, 1/1000 nat |"
    print "|---|---:|---:|---:|---:|"
}
{ print "| `" $1 "`" ($2 ~ /^\(/ ? " " $2 : "") " | " sprintf("%.4f", exp($3)) " | " \
    sprintf("%.5f", $3) " | " change($4) " | " change($5) " |" }
' "$work/numbers"
