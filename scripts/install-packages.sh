#!/bin/sh
# Installs what the build needs, on Debian and its relatives. When all is there, nothing happens.
#   sh scripts/install-packages.sh [more Debian packages ...]
# Elsewhere it installs nothing: it names the packages when a tool is missing and leaves the
# libraries to CMake, which names each one that it misses.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

# The libraries' names are columns of the table in cmake/dependencies.cmake.
libraries() {
    sed -n "s/^ *hf_need(.* $1  *\([^ )]*\).*/\1/p" "$root/cmake/dependencies.cmake" | tr '\n' ' '
}
say() { printf 'install-packages: %s\n' "$*" >&2; }

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    for tool in c++ cmake ninja pkg-config; do
        command -v "$tool" >/dev/null && continue
        say "'$tool' is missing and this is not Debian; install these packages yourself:"
        say "  Fedora: sudo dnf install gcc-c++ cmake ninja-build pkgconf-pkg-config $(libraries FEDORA)"
        say "  Arch:   sudo pacman -S --needed gcc cmake ninja pkgconf $(libraries ARCH)"
        exit 1
    done
    for package; do say "this is not Debian; '$package' is taken to be installed"; done
    exit 0
fi

missing=''
for package in g++ cmake ninja-build pkg-config $(libraries DEBIAN) "$@"; do
    case $(dpkg-query -W -f '${Status},' "$package" 2>/dev/null) in
        *' installed,'*) ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=''
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    say "these packages are missing:$missing"
    say "and this user is not root and has no sudo; as root, run:"
    say "  apt-get update && apt-get install$missing"
    exit 1
fi

# Another apt at work, as on a machine that just started, is waited for. Its many lines are shown
# only when it fails.
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 \
        -o DPkg::Lock::Timeout=300 "$@" </dev/null 2>&1
}
say "installing$missing"
lines=$(apt update) || say "'apt-get update' failed, the lists at hand may be old: $lines"
# shellcheck disable=SC2086  # one word per package
lines=$(apt install --no-install-recommends $missing) || {
    say "could not install$missing: $lines"
    exit 1
}
