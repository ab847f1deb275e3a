#!/bin/sh
# What a clone brings: the tracked files stay within 56 MiB.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
limit=$((56 * 1024 * 1024))

command -v git >/dev/null || sh "$root/scripts/install-packages.sh" git
# The checkout may belong to somebody else than the user, as in a container.
files() { git -c safe.directory="$root" -C "$root" ls-files -z; }
count=$(files | tr -cd '\0' | wc -c)
[ "$count" -gt 0 ] || { echo "check-size: no tracked files in $root" >&2; exit 1; }
bytes=$(cd "$root" && files | xargs -0 cat -- | wc -c)
echo "check-size: $count tracked files hold $bytes bytes; $limit are allowed"
[ "$bytes" -le "$limit" ]
