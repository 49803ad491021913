#!/usr/bin/env bash
# Makes sure that pgbouncer is installed, for the tests with a pooler, and prints its path. As root on a
# system with apt it installs pgbouncer, and leaves no service running. Elsewhere, where pgbouncer is missing,
# it prints no path, and says that these tests are not run.
set -euo pipefail

find_program() {
  PATH=$PATH:/usr/sbin command -v pgbouncer
}

install_with_apt() {
  [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return 1
  echo "as root: installing the package pgbouncer with apt, without leaving its service running" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 &&
    apt-get install -y -qq --no-install-recommends pgbouncer >&2 || return 1
  # The package starts the service where it can.
  if command -v systemctl >/dev/null; then
    systemctl disable --now pgbouncer >&2 || true
  fi
}

find_program || { install_with_apt && find_program; } ||
  echo "ensure-pgbouncer.sh: no pgbouncer, and none could be installed: the tests behind a pooler are" \
    "not run" >&2
