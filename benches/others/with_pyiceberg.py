"""pyiceberg, with its SQL catalog: in Postgres, or in a file of SQLite."""

import collections
import importlib.metadata

import pyarrow.compute
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import TableProperties
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType
from pyiceberg.utils.datetime import days_to_date

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "note", StringType()),
    NestedField(3, "day", DateType()),
)
BY_DAY = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
NAME = "measured.events"


class Tool:
    def __init__(self, lake, folder, server, cache):
        self.lake = lake
        self.server = server
        if server.used:
            uri = f"postgresql+psycopg2:///{server.create('pyiceberg')}"
        else:
            uri = f"sqlite:///{folder}/catalog.db"
        self.settings = {"uri": uri, "warehouse": f"file://{folder}/warehouse"}
        self.prepared = None
        self.manifests = {}

    @staticmethod
    def try_out(cache):
        pass

    def prepare(self):
        size = self.lake.write(day_in_files=True)
        catalog = SqlCatalog("others", **self.settings)
        catalog.create_namespace("measured")
        table = catalog.create_table(NAME, SCHEMA, partition_spec=BY_DAY)
        # As add_files does it: the files carry names of columns, and no ids.
        mapping = table.schema().name_mapping.model_dump_json()
        with table.transaction() as transaction:
            transaction.set_properties(**{TableProperties.DEFAULT_NAME_MAPPING: mapping})
        for day in self.lake.all_days():
            self.add(table, day)
        self.prepared = table.metadata_location
        catalog.close()

    def add(self, table, day):
        """One commit, and so one manifest, with the files of a day.

        What add_files does, except that it looks into one of the files and not into each: they
        are the same.
        """
        paths = [f"{self.lake.day_folder(day)}/{name}" for name in self.lake.names()]
        first = parquet_file_to_data_file(table.io, table.metadata, paths[0])
        with table.transaction() as transaction:
            with transaction.update_snapshot().fast_append() as append:
                for path in paths:
                    append.append_data_file(renamed(first, path))

    def restore(self):
        # A delete writes new metadata, and leaves the old, and the files, to a later expiry.
        catalog = SqlCatalog("others", **self.settings)
        catalog.drop_table(NAME)
        catalog.register_table(NAME, self.prepared)
        catalog.close()

    def open(self):
        catalog = SqlCatalog("others", **self.settings)
        return catalog, catalog.load_table(NAME)

    def close(self, opened):
        opened[0].close()

    def drop(self, opened, day):
        opened[1].delete(f"day = '{day}'")

    def what(self, day):
        return f"Table.delete(\"day = '{day}'\")"

    def registered(self, opened):
        table = opened[1]
        found = collections.defaultdict(lambda: (0, 0))
        for manifest in table.current_snapshot().manifests(table.io):
            for day, (files, rows) in self.listed(table.io, manifest).items():
                found[day] = (found[day][0] + files, found[day][1] + rows)
        return dict(found)

    def listed(self, io, manifest):
        """What a manifest lists, by day. It never changes, and to read all of them takes minutes,
        so each is read once."""
        path = manifest.manifest_path
        if path not in self.manifests:
            rows = collections.defaultdict(list)
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
                file = entry.data_file
                rows[days_to_date(file.partition[0])].append(file.record_count)
            self.manifests[path] = {day: (len(each), sum(each)) for day, each in rows.items()}
        return self.manifests[path]

    def read(self, opened, day):
        scan = opened[1].scan(row_filter=f"day = '{day}'", selected_fields=("id",))
        rows = scan.to_arrow()
        return rows.num_rows, pyarrow.compute.sum(rows["id"]).as_py() or 0

    def version(self):
        return importlib.metadata.version("pyiceberg")

    def catalog(self):
        return f"postgres {self.server.version()}" if self.server.used else "sqlite"


def renamed(file, path):
    fields = [file[position] for position in range(len(file))]
    copy = DataFile(*fields)
    copy.spec_id = BY_DAY.spec_id
    copy[fields.index(file.file_path)] = path
    return copy
