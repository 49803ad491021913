#!/usr/bin/env bash
# Changes tailrace as each file of tests/mutants says, one after the other, in a copy of the last commit below target/.
# Builds the tests, and runs those that the file names: each of them must fail.
#
#   scripts/hand-mutants.sh [NAME...]
#
# A name is that of a file without its ending; without one all are tried. This needs python3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

project=$PWD
copy=$project/target/mutants/copy
export CARGO_TARGET_DIR=$project/target SQLX_OFFLINE=true RUST_BACKTRACE=0
cargo=${CARGO:-cargo}

if (($#)); then
  files=("${@/%/.mutant}")
  files=("${files[@]/#/tests/mutants/}")
else
  files=(tests/mutants/*.mutant)
fi

rm -rf "$copy"
mkdir -p "$copy"
git archive HEAD | tar -xm -C "$copy"
cp tests/mutants/*.mutant "$copy/tests/mutants/"
cd "$copy"

# Replaces the old text of a mutant by its new one, which must be there once. A statement of SQL is checked against
# .sqlx when it is compiled: a changed one gets the entry of the old one. Prints what the rest of the script needs:
# the path, and the kind and the name of each test.
change() {
  python3 - "$1" <<'END'
import hashlib, json, pathlib, sys

head, rest = pathlib.Path(sys.argv[1]).read_text().split("\n--- old\n")
old, new = rest.split("\n--- new\n")
new = new.removesuffix("\n")
fields = [line.split(": ", 1) for line in head.splitlines()]
path = pathlib.Path(dict(fields)["file"])
text = path.read_text()
if text.count(old) != 1:
    sys.exit(f"{sys.argv[1]}: the old text is {text.count(old)} times in {path}")
path.write_text(text.replace(old, new))
for entry in pathlib.Path(".sqlx").glob("query-*.json"):
    about = json.loads(entry.read_text())
    if old in about["query"]:
        about["query"] = about["query"].replace(old, new)
        about["hash"] = hashlib.sha256(about["query"].encode()).hexdigest()
        pathlib.Path(f".sqlx/query-{about['hash']}.json").write_text(json.dumps(about))
print(path)
for key, test in fields:
    if key == "test":
        print(test)
END
}

# Runs the tests of one kind (suite, or lib for a unit test), and says whether all of them failed.
all_fail() {
  local target=(--test suite)
  [[ $1 == suite ]] || target=(--lib)
  shift
  "$cargo" test --quiet --locked "${target[@]}" --no-run >build.log 2>&1 || { echo "does not build"; return 0; }
  "$cargo" test --locked "${target[@]}" -- --exact "$@" >test.log 2>&1 || true
  if grep -q "^test result: FAILED. 0 passed; $# failed;" test.log; then
    echo red
  else
    echo "not red"
  fi
}

wrong=0
for file in "${files[@]}"; do
  changed=$(change "$file")
  path=$(head -n 1 <<<"$changed")
  said=
  for kind in lib suite; do
    mapfile -t tests < <(sed -nE "2,\$ s/^$kind //p" <<<"$changed")
    ((${#tests[@]})) || continue
    came=$(all_fail "$kind" "${tests[@]}")
    said+="${said:+, }$came"
    [[ $came == red ]] || wrong=$((wrong + 1))
  done
  name=$(basename "$file" .mutant)
  printf '| %s | %s | %s | %s |\n' "$name" "$(sed -n 's/^broken: //p' "$file")" \
    "$(sed -n 's/^test: [a-z]* \(.*\)$/`\1`/p' "$file" | paste -sd' ' -)" "$said"
  git -C "$project" show "HEAD:$path" >"$path"
  touch "$path"
done
((wrong == 0)) || { echo "hand-mutants.sh: $wrong kinds of tests were not red" >&2; exit 1; }
