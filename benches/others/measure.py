"""Times how long one tool takes to drop one day, for tables of several sizes.

Prints a line of JSON for each size. README.md describes its keys.
"""

import argparse
import importlib
import json
import pathlib
import signal
import statistics
import sys
import tempfile
import time

from lake import ROWS_PER_FILE, Lake, Wrong, check
from server import Server

MODULES = {"delta-rs": "with_delta", "pyiceberg": "with_pyiceberg", "ducklake": "with_ducklake"}


def main():
    arguments = parse()
    # So that what was made is removed then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        module = importlib.import_module(MODULES[arguments.tool])
        module.Tool.try_out(arguments.cache)
    except Exception as failure:
        reason = " ".join(f"it does not start: {failure}".split())
        print(json.dumps({"tool": arguments.tool, "not_available": reason}))
        return
    for days in arguments.days:
        try:
            line = measure(module.Tool, arguments, days)
        except Wrong as failure:
            sys.exit(f"{arguments.tool}, {days} days: {failure}")
        print(json.dumps(line), flush=True)


def parse():
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("tool", choices=sorted(MODULES))
    parser.add_argument("--days", type=sizes, default=[10, 100, 300], metavar="N,N,..")
    parser.add_argument("--files-per-day", type=positive, default=1000, metavar="N")
    parser.add_argument("--repeat", type=positive, default=3, metavar="N")
    parser.add_argument(
        "--postgres", action="store_true",
        help="keep catalogs in the server that PGHOST, PGPORT, PGUSER and so on name",
    )
    parser.add_argument("--cache", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def sizes(text):
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 2:
        # The day that is dropped, and one that is not.
        raise ValueError
    return numbers


def measure(kind, arguments, days):
    with (
        tempfile.TemporaryDirectory(dir=arguments.cache, prefix="table-") as folder,
        Server(arguments.postgres) as server,
    ):
        lake = Lake(f"{folder}/table", days, arguments.files_per_day)
        tool = kind(lake, pathlib.Path(folder), server, arguments.cache)
        dropped = lake.all_days()[0]
        began = time.perf_counter()
        tool.prepare()
        setup = time.perf_counter() - began
        tool.restore()
        check(tool, lake, None, lake.all_days()[:2])
        runs = [timed(tool, lake, dropped) for _ in range(1 + arguments.repeat)]
        # The first one is for the caches, and for what a tool does once per process.
        opened, took = zip(*runs[1:])
        return {
            "tool": arguments.tool,
            "version": tool.version(),
            "catalog": tool.catalog(),
            "days": days,
            "files_per_day": arguments.files_per_day,
            "rows_per_file": ROWS_PER_FILE,
            "seconds": round(statistics.median(took), 6),
            "all_seconds": [round(seconds, 6) for seconds in took],
            "open_seconds": round(statistics.median(opened), 6),
            "setup_seconds": round(setup, 3),
            "what": tool.what(dropped),
        }


def timed(tool, lake, dropped):
    """Drops the day from the table as it was prepared. Returns how long it took to open it, and
    then to drop the day, in seconds."""
    tool.restore()
    check(tool, lake, None, [])
    began = time.perf_counter()
    opened = tool.open()
    there = time.perf_counter()
    try:
        tool.drop(opened, dropped)
        done = time.perf_counter()
    finally:
        tool.close(opened)
    check(tool, lake, dropped, lake.all_days()[:2])
    return there - began, done - there


if __name__ == "__main__":
    main()
