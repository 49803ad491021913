#!/usr/bin/env bash
# Runs the core tests against servers of several catalog versions and Postgres versions. A cell is one
# pair of a Postgres version and a catalog version.
#
#   scripts/matrix.sh --write               runs every cell, and writes docs/versions.md
#   scripts/matrix.sh 18:27 15:17           runs only these cells (Postgres:catalog), and writes nothing
#   scripts/matrix.sh --write 18:27 15:17   runs only these, and writes that the others were not run
#
# tests/matrix.txt lists the core tests, and those that do not apply to a version. A cell runs tests by
# their names, so that no test is left out without a line in that file. The exit code is 1 if a test
# failed in any cell.
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$project"
definition=tests/matrix.txt
page=docs/versions.md
cargo=${CARGO:-cargo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '%s\n' "$*" >&2; }

# The words after a keyword of the definition.
defined() { sed -n "s/^$1 //p" "$definition"; }

read -ra postgres_versions <<<"$(defined postgres)"
read -ra catalog_versions <<<"$(defined catalog)"

# One binary for all cells.
"$cargo" test --locked --test suite --no-run 2>"$work/build" || { cat "$work/build" >&2; exit 1; }
suite=$(sed -n 's/.*Executable .*(\(.*\))$/\1/p' "$work/build")
"$suite" --list --format terse 2>/dev/null | sed -n 's/: test$//p' >"$work/all"

# The core: the tests whose name begins with one of its lines.
defined core >"$work/core"
defined needs >"$work/needs"
begins_with() {
  awk 'FILENAME == ARGV[1] { starts[$1]; next }
       { for (start in starts) if (index($0, start) == 1) { print; next } }' "$1" "$2"
}
begins_with "$work/core" "$work/all" >"$work/tests"
for file in core needs; do
  awk -v file="$file" '{ print (file == "core") ? $1 : $2 }' "$work/$file" | while read -r start; do
    grep -q "^$start" "$work/tests" || { say "$definition: no test of the core begins with $start"; exit 1; }
  done
done

# The core tests that do not apply to a server of this catalog version.
not_applicable() {
  awk -v version="$1" 'version < substr($1, 2) + 0 { print $2 }' "$work/needs" >"$work/starts"
  begins_with "$work/starts" "$work/tests"
}

# Runs a cell, and prints the numbers of tests: passed, failed, not applicable.
run_cell() {
  local postgres=$1 catalog=$2 bin log passed failed
  bin=$(scripts/ensure-postgres.sh --version "$postgres")
  "$bin/postgres" --version | grep -oE '[0-9]+\.[0-9]+' | head -n 1 >"$work/postgres-$postgres"
  not_applicable "$catalog" | sort >"$work/skipped"
  sort "$work/tests" | comm -23 - "$work/skipped" >"$work/run"
  log=$work/log-$postgres-$catalog
  # Their names, each a word without blanks.
  env -u RUST_BACKTRACE TAILRACE_PG_BIN="$bin" TAILRACE_LAKE_VERSION="$catalog" \
    xargs -n 100000 "$suite" --exact <"$work/run" >"$log" 2>&1 || true
  read -r passed failed < <(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' "$log") || true
  if [[ $((${passed:-0} + ${failed:-0})) -ne $(wc -l <"$work/run") ]]; then
    say "the tests did not come to their end; those of which nothing is known count as failed:"
    tail -n 40 "$log" >&2
    passed=$(grep -c ' \.\.\. ok$' "$log" || true)
    failed=$(($(wc -l <"$work/run") - passed))
  fi
  [[ $failed -eq 0 ]] || sed -n '/^failures:$/,$p' "$log" >&2
  printf '%s %s %s\n' "$passed" "$failed" "$(wc -l <"$work/skipped")"
}

write=
[[ ${1:-} != --write ]] || { write=1; shift; }
cells=("$@")
if [[ ${#cells[@]} -eq 0 ]]; then
  for postgres in "${postgres_versions[@]}"; do
    for catalog in "${catalog_versions[@]}"; do cells+=("$postgres:$catalog"); done
  done
fi
bad=0
for cell in "${cells[@]}"; do
  [[ $cell =~ ^([0-9]+):([0-9]+)$ ]] || { say "a cell is POSTGRES:CATALOG, as 15:27, not $cell"; exit 2; }
  postgres=${BASH_REMATCH[1]} catalog=${BASH_REMATCH[2]}
  told=$(run_cell "$postgres" "$catalog")
  read -r passed failed skipped <<<"$told"
  printf '%s\n' "$told" >"$work/cell-$postgres-$catalog"
  say "Postgres $postgres, catalog V$catalog: $passed passed, $failed failed, $skipped not applicable"
  ((failed == 0)) || bad=1
  total=$((${total:-0} + passed)) total_failed=$((${total_failed:-0} + failed)) total_skipped=$((${total_skipped:-0} + skipped))
done
printf '%s passed, %s failed, %s skipped\n' "${total:-0}" "${total_failed:-0}" "${total_skipped:-0}"

if [[ -n $write ]]; then
  {
    sed '/<!-- written by make matrix -->/q' "$page"
    printf '\n| |'
    printf ' V%s |' "${catalog_versions[@]}"
    printf '\n|---|'
    printf -- '---|%.0s' "${catalog_versions[@]}"
    printf '\n'
    for postgres in "${postgres_versions[@]}"; do
      printf '| Postgres %s |' "$(cat "$work/postgres-$postgres" 2>/dev/null || echo "$postgres")"
      for catalog in "${catalog_versions[@]}"; do
        if [[ ! -f $work/cell-$postgres-$catalog ]]; then
          printf ' not run |'
          continue
        fi
        read -r passed failed skipped <"$work/cell-$postgres-$catalog"
        printf ' %s of %s' "$passed" "$((passed + failed))"
        ((failed == 0)) || printf ' (**%s failed**)' "$failed"
        ((skipped == 0)) || printf ', %s n/a' "$skipped"
        printf ' |'
      done
      printf '\n'
    done
    printf '\nThe core tests are the %s tests whose names begin with one of these:' "$(wc -l <"$work/tests")"
    sed 's/.*/ `&`/' "$work/core" | paste -sd, -
    printf '\n| does not apply before | tests whose names begin so | because each of them |\n|---|---|---|\n'
    while read -r since start reason; do
      printf '| %s | %s of `%s` | %s |\n' "$since" "$(grep -c "^$start" "$work/tests")" "$start" "$reason"
    done <"$work/needs"
  } >"$work/page"
  mv "$work/page" "$page"
fi
exit "$bad"
