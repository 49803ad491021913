"""DuckLake, the extension of DuckDB: its catalog in Postgres, or in a file of DuckDB."""

import importlib.metadata
import importlib.util
import pathlib
import shutil
import string

import duckdb

from lake import ROWS_PER_FILE

# How DuckDB names the database with the catalog's own tables.
CATALOG = "__ducklake_metadata_lake"

# Turns a catalog of one day into one of many.
REPEAT = string.Template("""
    BEGIN;
    CREATE TEMP TABLE more AS
        SELECT number, (CAST($first AS DATE) + CAST(number AS INTEGER))::VARCHAR AS day
        FROM range(1, $others + 1) AS days (number);
    CREATE TEMP TABLE added AS
        SELECT file.* REPLACE (
            data_file_id + number * $files AS data_file_id,
            row_id_start + number * $rows AS row_id_start,
            replace(path, 'day=' || $first, 'day=' || day) AS path
        )
        FROM ducklake_data_file AS file, more;
    CREATE TEMP TABLE statistics AS
        SELECT file.* REPLACE (
            data_file_id + number * $files AS data_file_id,
            CASE min_value WHEN $first THEN day ELSE min_value END AS min_value,
            CASE max_value WHEN $first THEN day ELSE max_value END AS max_value
        )
        FROM ducklake_file_column_stats AS file, more;
    CREATE TEMP TABLE partitions AS
        SELECT file.* REPLACE (
            data_file_id + number * $files AS data_file_id,
            day AS partition_value
        )
        FROM ducklake_file_partition_value AS file, more;
    INSERT INTO ducklake_data_file FROM added ORDER BY data_file_id;
    INSERT INTO ducklake_file_column_stats FROM statistics ORDER BY data_file_id, column_id;
    INSERT INTO ducklake_file_partition_value FROM partitions ORDER BY data_file_id;
    UPDATE ducklake_snapshot SET next_file_id = next_file_id + $others * $files
        WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot);
    UPDATE ducklake_table_stats SET
        record_count = record_count * ($others + 1),
        next_row_id = next_row_id * ($others + 1),
        file_size_bytes = file_size_bytes * ($others + 1);
    UPDATE ducklake_table_column_stats SET max_value = $last WHERE max_value = $first;
    COMMIT;
""")


class Tool:
    def __init__(self, lake, folder, server, cache):
        self.lake = lake
        self.server = server
        self.extensions = cache / "duckdb"
        self.data = f"{folder}/data/"
        # Postgres has its catalog from this one: see prepare.
        self.prepared = f"{folder}/prepared.ducklake"
        self.working = f"{folder}/working.ducklake"
        self.template = server.create("prepared") if server.used else None

    @staticmethod
    def try_out(cache):
        """Whether the extensions, which come in packages of their own, can be loaded."""
        connected(cache / "duckdb").close()

    def prepare(self):
        self.lake.write(day_in_files=False)
        connection = self.attached(self.prepared)
        create_table(connection)
        first, *others = self.lake.all_days()
        connection.execute(
            "CALL ducklake_add_data_files('lake', 'events', ?, hive_partitioning => true)",
            [f"{self.lake.day_folder(first)}/*.parquet"],
        )
        connection.close()
        if others:
            self.repeat_first_day(first, others)
        if self.server.used:
            self.move_to_postgres()

    def repeat_first_day(self, first, others):
        """Adds the files of all other days, in the catalog's tables and as DuckLake writes them
        there itself.

        It looks into every file, which takes it minutes for all of them; here they are the same
        but for their day.
        """
        connection = duckdb.connect(self.prepared)
        connection.execute(REPEAT.substitute(
            first=f"'{first}'",
            last=f"'{others[-1]}'",
            others=len(others),
            files=self.lake.files_per_day,
            rows=self.lake.files_per_day * ROWS_PER_FILE,
        ))
        connection.close()

    def move_to_postgres(self):
        """Copies the catalog into Postgres.

        Because adding files to a catalog there takes six times as long as to one in a file.
        """
        connection = self.attached(f"postgres:dbname={self.template}")
        create_table(connection)
        connection.execute(f"ATTACH '{self.prepared}' AS prepared (READ_ONLY)")
        names = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'prepared'"
        ).fetchall()
        for (name,) in names:
            connection.execute(f"DELETE FROM {CATALOG}.{name}")
            connection.execute(f"INSERT INTO {CATALOG}.{name} SELECT * FROM prepared.{name}")
        connection.close()
        self.server.run("VACUUM (ANALYZE)", self.template)

    def restore(self):
        if self.server.used:
            self.working = f"postgres:dbname={self.server.create('working', self.template)}"
        else:
            shutil.copyfile(self.prepared, self.working)

    def open(self):
        connection = self.attached(self.working)
        # The catalog is read when it is used first.
        connection.execute("SELECT * FROM lake.events LIMIT 0")
        return connection

    def close(self, connection):
        connection.close()

    def drop(self, connection, day):
        connection.execute(self.what(day))

    def what(self, day):
        return f"DELETE FROM lake.events WHERE day = DATE '{day}'"

    def registered(self, connection):
        counted = connection.execute(f"""
            SELECT value.partition_value::DATE, count(*), sum(file.record_count)::BIGINT
            FROM {CATALOG}.ducklake_data_file AS file
            JOIN {CATALOG}.ducklake_file_partition_value AS value USING (data_file_id)
            WHERE file.end_snapshot IS NULL
            GROUP BY 1
        """)
        return {day: (files, rows) for day, files, rows in counted.fetchall()}

    def read(self, connection, day):
        question = "SELECT count(*), coalesce(sum(id), 0)::BIGINT FROM lake.events WHERE day = ?"
        return connection.execute(question, [day]).fetchone()

    def version(self):
        with_extension = importlib.metadata.version("duckdb_extension_ducklake")
        return f"{with_extension} of DuckDB {duckdb.__version__}"

    def catalog(self):
        return f"postgres {self.server.version()}" if self.server.used else "duckdb"

    def attached(self, catalog):
        connection = connected(self.extensions)
        connection.execute(f"ATTACH 'ducklake:{catalog}' AS lake (DATA_PATH '{self.data}')")
        return connection


def connected(extensions):
    settings = {
        "extension_directory": str(extensions),
        # None is fetched: what is not in the packages is missing.
        "autoinstall_known_extensions": "false",
    }
    connection = duckdb.connect(config=settings)
    for name in ("ducklake", "postgres_scanner"):
        package = importlib.util.find_spec(f"duckdb_extension_{name}").origin
        (file,) = pathlib.Path(package).parent.glob(f"extensions/*/{name}.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    return connection


def create_table(connection):
    connection.execute("CREATE TABLE lake.events (id BIGINT, note VARCHAR, day DATE)")
    connection.execute("ALTER TABLE lake.events SET PARTITIONED BY (day)")
