#!/usr/bin/env bash
# Runs cargo-mutants on src/rules: changes one thing at a time, and tests that a unit test of the rules fails.
#
#   scripts/mutants.sh K/N
#
# K is from 1 to N: the mutants are in the order of the files, and the K-th of N equal parts is run. What came of them
# is in target/mutants/K-of-N/mutants.out. MUTANTS_JOBS of them are run at once, 1 unless that is set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! [[ ${1:-} =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || ((BASH_REMATCH[1] > BASH_REMATCH[2])); then
  echo "usage: $0 K/N, with K from 1 to N" >&2
  exit 2
fi
part=${BASH_REMATCH[1]} parts=${BASH_REMATCH[2]}
mutants=$(scripts/ensure-cargo-mutants.sh)
output=target/mutants/$part-of-$parts
mkdir -p "$output"
# Nobody looks at the mutants in a debugger, and no counterexample of a mutant is made smaller or kept.
export CARGO_PROFILE_DEV_DEBUG=0 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 PROPTEST_MAX_SHRINK_ITERS=0
# cargo-mutants counts parts from 0. It answers 2 where a test is missing, and 3 where a mutant ran into the time limit.
"$mutants" mutants --package tailrace-rules --jobs "${MUTANTS_JOBS:-1}" --shard "$((part - 1))/$parts" \
  --no-shuffle --timeout 20 --output "$output"
