#!/usr/bin/env bash
# Makes sure that the programs which compile the crate are installed: cargo, and a C compiler with its
# linker. As root on a system with apt this script installs the compiler, and says so first. Elsewhere it
# says what to install.
set -euo pipefail

say() { printf 'ensure-toolchain.sh: %s\n' "$*" >&2; }

install_with_apt() {
    [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return 1
    say "as root: installing $* with apt"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends "$@" >&2
}

if ! command -v cc >/dev/null && ! install_with_apt gcc libc6-dev; then
    case $(uname -s) in
        Darwin) say "no C compiler (cc): xcode-select --install" ;;
        *) say "no C compiler (cc): install gcc or clang" ;;
    esac
    exit 1
fi
if ! command -v cargo >/dev/null; then
    say "no cargo: install Rust 1.94 or newer, for example with https://rustup.rs"
    exit 1
fi
