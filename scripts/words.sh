#!/usr/bin/env bash
# Fails if prose or a name uses a word that scripts/words.txt lists, and prints each such line.
set -euo pipefail
cd "$(dirname "$0")/.."

list=scripts/words.txt
places=(src docs tests examples benches deploy config scripts .github README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md
  Makefile)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

grep -vE '^(#|allow: |$)' "$list" >"$work/words"
sed -nE 's,^allow: (.*)$,s/\1//g,p' "$list" >"$work/allowed"

# A name of a function is read as a sentence.
{ grep -rnoE '\bfn [a-z0-9_]+' src tests examples benches || [ $? -eq 1 ]; } \
  | sed -E -f "$work/allowed" | sed -E ':next s/^([^:]+:[0-9]+:.*)_/\1 /; t next' \
  | { grep -iE -f "$work/words" || [ $? -eq 1 ]; } >"$work/names"
if [ -s "$work/names" ]; then
  cat "$work/names"
  echo "words.sh: $(grep -c . "$work/names") names have a word that scripts/words.txt lists" >&2
  exit 1
fi

# Migrations are left out: their checksums are stored in databases.
grep -rnIiE -f "$work/words" --exclude=words.txt --exclude=glossary.md "${places[@]}" \
  >"$work/lines" || [ $? -eq 1 ]
cut -d: -f3- "$work/lines" | sed -E -f "$work/allowed" | { grep -niE -f "$work/words" || [ $? -eq 1 ]; } \
  | sed -E 's/^([0-9]+):.*$/\1p/' >"$work/hits"
if [ -s "$work/hits" ]; then
  sed -n -f "$work/hits" "$work/lines"
  echo "words.sh: $(grep -c . "$work/hits") lines have a word that scripts/words.txt lists" >&2
  exit 1
fi
