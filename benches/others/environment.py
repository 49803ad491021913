"""Makes the virtual environment of one tool, once, and measures with it.

Usage: environment.py CACHE TOOL [OPTIONS], with the options of measure.py. Every tool has an
environment of its own, so that a tool which cannot be installed here does not stop the others.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements"

# The longest that making an environment, or downloading into it, may take, in seconds.
PATIENCE = 300


class NotToBeHad(Exception):
    """This tool cannot be installed on this machine; the text says why."""


def main():
    names = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))
    if len(sys.argv) < 3 or sys.argv[2] not in names:
        sys.exit(f"usage: run {'|'.join(names)} [OPTIONS]")
    cache, tool = Path(sys.argv[1]).absolute(), sys.argv[2]
    cache.mkdir(parents=True, exist_ok=True)
    try:
        python = environment(cache, tool)
    except NotToBeHad as reason:
        print(json.dumps({"tool": tool, "not_available": str(reason)}))
        return
    arguments = [python, "-B", HERE / "measure.py", "--cache", cache, *sys.argv[2:]]
    os.execv(python, arguments)


def environment(cache, tool):
    """The interpreter of this tool's environment, which is made if it is not there."""
    requirements = REQUIREMENTS / f"{tool}.txt"
    about = requirements.read_bytes() + sys.version.encode()
    folder = cache / f"{tool}-{hashlib.sha256(about).hexdigest()[:12]}"
    complete = folder / "complete"
    with open(f"{folder}.lock", "w") as lock:
        # Held by one run at a time; it goes with the file.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            ran([sys.executable, "-m", "venv", folder])
            pip = [folder / "bin/python", "-m", "pip", "install", "--quiet"]
            # What has to be compiled first is not to be had here; nor is a registry that is far
            # away.
            limits = ["--only-binary", ":all:", "--retries", "1", "--timeout", "20"]
            quiet = ["--disable-pip-version-check", "--no-input"]
            ran([*pip, *quiet, *limits, "--no-deps", "--requirement", requirements])
            complete.touch()
    return folder / "bin/python"


def ran(command):
    try:
        subprocess.run(
            command, check=True, timeout=PATIENCE, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    except subprocess.CalledProcessError as failure:
        lines = failure.stdout.strip().splitlines() or [f"exit code {failure.returncode}"]
        raise NotToBeHad(f"it cannot be installed: {lines[-1]}") from None
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"installing it takes more than {PATIENCE} seconds") from None


if __name__ == "__main__":
    main()
