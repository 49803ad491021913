"""The files that every tool gets, and the check of what is left of them after a day was dropped."""

import dataclasses
import datetime
import os

import pyarrow
import pyarrow.parquet

FIRST_DAY = datetime.date(2026, 1, 1)

# More than DuckLake deletes row by row inside its catalog, which its users' files are far beyond.
ROWS_PER_FILE = 50
SUM_PER_FILE = sum(range(ROWS_PER_FILE))


class Wrong(Exception):
    """A tool did not do what was measured; the text says in which way."""


@dataclasses.dataclass(frozen=True)
class Lake:
    """So many days of so many small Parquet files, in one folder a day."""

    folder: str
    days: int
    files_per_day: int

    def all_days(self):
        return [FIRST_DAY + datetime.timedelta(number) for number in range(self.days)]

    def day_folder(self, day):
        return f"{self.folder}/day={day}"

    def names(self):
        return [f"{number:06}.parquet" for number in range(self.files_per_day)]

    def write(self, *, day_in_files):
        """Makes every file, and returns the size of one in bytes.

        The files of a day are one file under as many names: no tool writes to them, and removing
        a hundred thousand real ones takes a quarter of an hour on disks that write through every
        freed block. `day_in_files` is for the tools that look for the partition's column there;
        the others have it from the folder's name.
        """
        size = 0
        for day in self.all_days():
            content = one_file(day if day_in_files else None)
            size = len(content)
            first, *others = (f"{self.day_folder(day)}/{name}" for name in self.names())
            os.makedirs(self.day_folder(day))
            with open(first, "wb") as file:
                file.write(content)
            for other in others:
                os.link(first, other)
        return size


def one_file(day):
    columns = {
        "id": pyarrow.array(range(ROWS_PER_FILE), pyarrow.int64()),
        "note": pyarrow.array(["measured"] * ROWS_PER_FILE),
    }
    if day is not None:
        columns["day"] = pyarrow.array([day] * ROWS_PER_FILE, pyarrow.date32())
    buffer = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue().to_pybytes()


def check(tool, lake, dropped, days_read):
    """Compares what a newly opened table holds with what it should: that `dropped` is not there
    (None: nothing was dropped), and every other day is.

    The files and rows that are registered are compared for all days. Rows are read for the days
    in `days_read` only: reading a file costs far more than dropping it.

    Raises Wrong where they differ.
    """
    kept = [day for day in lake.all_days() if day != dropped]
    rows = lake.files_per_day * ROWS_PER_FILE
    opened = tool.open()
    try:
        registered = dict.fromkeys(kept, (lake.files_per_day, rows))
        expect("what is registered", tool.registered(opened), registered)
        there = (rows, lake.files_per_day * SUM_PER_FILE)
        read = {day: there if day in kept else (0, 0) for day in days_read}
        expect("what is read", {day: tool.read(opened, day) for day in days_read}, read)
    finally:
        tool.close(opened)


def expect(what, found, expected):
    """Raises Wrong with the first day whose values are not those that are expected."""
    days = found.keys() | expected.keys()
    differing = sorted(day for day in days if found.get(day) != expected.get(day))
    if differing:
        day = differing[0]
        raise Wrong(
            f"{what} of {day} is {found.get(day)}, and not {expected.get(day)}; "
            f"days that differ: {len(differing)}"
        )
