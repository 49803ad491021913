#!/usr/bin/env bash
# Makes sure that cargo-mutants is there, in the version that docs/mutants.md was written with, and prints its
# path. Where another version is installed or none, this script builds one into target/tools of this project.
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=27.1.0

# Whether a program is cargo-mutants of this version.
fits() {
  [[ $("$1" mutants --version 2>/dev/null) == "cargo-mutants $version" ]]
}

found=$(command -v cargo-mutants) || found=
if [[ -z $found ]] || ! fits "$found"; then
  found=$project/target/tools/bin/cargo-mutants
  if ! fits "$found"; then
    echo "building cargo-mutants $version into target/tools" >&2
    # Without optimization it is built in half the time, and most of its own time is that of the tests.
    "${CARGO:-cargo}" install --quiet --locked --debug --force --root "$project/target/tools" \
      cargo-mutants@"$version" >&2 || {
      echo "ensure-cargo-mutants.sh: cargo-mutants $version could not be built" >&2
      exit 1
    }
  fi
fi
printf '%s\n' "$found"
