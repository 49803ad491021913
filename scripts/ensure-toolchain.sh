#!/usr/bin/env bash
# Makes sure that what compiles the crate is there: cargo, and a C compiler with its linker. As
# root on a system with apt it installs what is missing; elsewhere it says what to install.
set -euo pipefail

install_with_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    DEBIAN_FRONTEND=noninteractive apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" >&2
}

if ! command -v cc >/dev/null; then
    install_with_apt gcc libc6-dev || {
        echo "ensure-toolchain.sh: no C compiler (cc): install gcc or clang" >&2
        exit 1
    }
fi
if ! command -v cargo >/dev/null; then
    echo "ensure-toolchain.sh: no cargo: install Rust 1.94 or newer" >&2
    exit 1
fi
for component in rustfmt clippy-driver; do
    command -v "$component" >/dev/null ||
        echo "ensure-toolchain.sh: no $component: \`make check\` needs it" >&2
done
