#!/bin/sh
# `cmake --install` puts things where a package would, and the installed hf-run finds its model.
#   sh install_tree.sh BUILD-FOLDER
set -eu
build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$build" --prefix "$prefix" >/dev/null
cd "$prefix"
failed=0
while read -r file; do
    [ -s "$file" ] || { echo "not installed: $file"; failed=1; }
done <<'LIST'
bin/hf-run
share/hipfire/hipfire.toml.example
share/hipfire/models/demo/README.md
share/hipfire/models/demo/config.json
share/hipfire/models/demo/generation_config.json
share/hipfire/models/demo/model.safetensors
share/hipfire/models/demo/tokenizer.json
share/hipfire/models/demo/tokenizer_config.json
share/man/man1/hf-run.1
share/man/man1/hf-crosscheck.1
share/bash-completion/completions/hf-run
share/bash-completion/completions/hf-quantize
share/zsh/site-functions/_hf-run
share/zsh/site-functions/_hf-inspect
share/doc/hipfire/LICENSE
share/doc/hipfire/README.md
share/doc/hipfire/docs/adding.md
share/doc/hipfire/docs/architecture.md
LIST

strangers=$(find . -type f | grep -v -e '^./bin/hf-' -e '^./share/hipfire/' -e '^./share/doc/hipfire/' \
    -e '^./share/man/man1/hf-[a-z]*[.]1$' -e '^./share/bash-completion/completions/hf-[a-z]*$' \
    -e '^./share/zsh/site-functions/_hf-[a-z]*$') || true
[ -z "$strangers" ] || { echo "installed beside the list: $strangers"; failed=1; }

# Moved as a whole, with no setting: the model is found relative to the program.
mkdir moved
mv bin share moved/
text=$(cd / && env -i HOME="$prefix" "$prefix/moved/bin/hf-run" 'Once upon a time' \
    --max-tokens 4 --temp 0 </dev/null) || failed=1
[ -n "$text" ] || { echo "the installed hf-run says nothing"; failed=1; }
exit $failed
