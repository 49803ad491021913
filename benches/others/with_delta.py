"""delta-rs, through its Python package: one table in a folder, its log beside the files."""

import importlib.metadata
import json
import shutil

import pyarrow.compute
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction

from lake import ROWS_PER_FILE

SCHEMA = Schema([
    Field("id", PrimitiveType("long")),
    Field("note", PrimitiveType("string")),
    Field("day", PrimitiveType("date")),
])

# Some commits rather than one a day: each looks at the whole table, and after the checkpoint it
# makes no difference.
COMMITS = 10


class Tool:
    def __init__(self, lake, folder, server, cache):
        self.lake = lake
        self.log = f"{lake.folder}/_delta_log"
        self.prepared = f"{folder}/prepared"

    @staticmethod
    def try_out(cache):
        pass

    def prepare(self):
        size = self.lake.write(day_in_files=False)
        table = DeltaTable.create(self.lake.folder, SCHEMA, partition_by=["day"])
        days = self.lake.all_days()
        portion = -(-len(days) // COMMITS)
        for start in range(0, len(days), portion):
            files = [
                self.added(day, name, size)
                for day in days[start : start + portion]
                for name in self.lake.names()
            ]
            table.create_write_transaction(files, "append", SCHEMA, ["day"])
        table.create_checkpoint()
        shutil.move(self.log, self.prepared)

    def added(self, day, name, size):
        statistics = {
            "numRecords": ROWS_PER_FILE,
            "minValues": {"id": 0, "note": "measured"},
            "maxValues": {"id": ROWS_PER_FILE - 1, "note": "measured"},
            "nullCount": {"id": 0, "note": 0},
        }
        values = {"day": str(day)}
        return AddAction(f"day={day}/{name}", size, values, 0, True, json.dumps(statistics))

    def restore(self):
        # A delete writes to the log, and leaves the files to a later vacuum.
        shutil.rmtree(self.log, ignore_errors=True)
        shutil.copytree(self.prepared, self.log)

    def open(self):
        return DeltaTable(self.lake.folder)

    def close(self, table):
        pass

    def drop(self, table, day):
        table.delete(f"day = '{day}'")

    def what(self, day):
        return f"DeltaTable.delete(\"day = '{day}'\")"

    def registered(self, table):
        files = pyarrow.table(table.get_add_actions(flatten=True))
        counted = files.group_by("partition.day").aggregate(
            [("num_records", "count"), ("num_records", "sum")]
        )
        days, numbers, rows = (
            counted[name].to_pylist()
            for name in ("partition.day", "num_records_count", "num_records_sum")
        )
        return dict(zip(days, zip(numbers, rows)))

    def read(self, table, day):
        rows = table.to_pyarrow_table(partitions=[("day", "=", str(day))], columns=["id"])
        return rows.num_rows, pyarrow.compute.sum(rows["id"]).as_py() or 0

    def version(self):
        return importlib.metadata.version("deltalake")

    def catalog(self):
        return "none"
