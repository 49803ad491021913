"""The Postgres server that a tool may keep its catalog in."""

import os


class Server:
    """A server, and the databases that were made in it, which are dropped at the end.

    Without one (`used` is false) nothing is asked of it, and the tools keep their catalogs in
    files. libpq's own environment variables say where it is, here and inside the tools.
    """

    def __init__(self, used):
        self.used = used
        self.databases = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.databases:
            self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def create(self, name, template="template0"):
        """Makes a database of this name, anew if there is one, and returns its full name."""
        name = f"tailrace_others_{os.getpid()}_{name}"
        if name not in self.databases:
            self.databases.append(name)
        self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def version(self):
        return self.run("SHOW server_version").split()[0]

    def run(self, statement, database="postgres"):
        """Runs one statement outside a transaction; returns the first value of its first row, if
        there is one."""
        # Not there in the environments of tools without catalogs.
        import psycopg2

        connection = psycopg2.connect(dbname=database)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchone()[0] if cursor.description else None
        finally:
            connection.close()
