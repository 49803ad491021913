"""Shared by the checks: the scenario, clients of the daemon, and the bytes of an answer."""

import json
import sys
import unittest
import uuid
from pathlib import Path

from pyhoglake import CatalogInfo, HoglakeClient, TableInfo
from pyhoglake.client import Catalog, Namespace, Table

SCENARIO = json.loads(Path(sys.argv.pop(1)).read_text())


class Case(unittest.TestCase):
    """A check with a client of its own, whose last request and response it keeps."""

    maxDiff = None

    def setUp(self):
        self.client = self.client_of(SCENARIO["operator"])

    def client_of(self, token):
        client = HoglakeClient(SCENARIO["url"])
        client._http.headers["Authorization"] = f"Bearer {token}"
        client._http.event_hooks = {"response": [self.keep]}
        self.addCleanup(client.close)
        return client

    def keep(self, response):
        response.read()
        self.response = response

    def table(self, name, catalog="lake", namespace="events", table_uuid=None):
        """A `Table` as the client itself has it, of an info of our own: no server is asked."""
        known = SCENARIO["tables"].get(f"{catalog}.{namespace}.{name}", {})
        info = TableInfo(
            name=name,
            namespace=namespace,
            table_uuid=table_uuid or known.get("uuid") or str(uuid.uuid4()),
            columns=(),
            record_count=None,
            file_count=None,
            file_size_bytes=None,
        )
        about = CatalogInfo(
            name=catalog, data_path="", head_snapshot_id=0, schema_version=0
        )
        return Table(Namespace(Catalog(self.client, about), namespace), info)

    def drop(self, table, *tuples, client=None, conflict=None, **more):
        """Posts a drop of these tuples, through the client's own transport."""
        body = {
            "idempotency_key": str(uuid.uuid4()),
            "partitions": [{"partition_values": list(values)} for values in tuples],
        } | more
        options = {} if conflict is None else {"conflict": conflict}
        path = table._path("/partitions/drop")
        return (client or self.client)._request("POST", path, json=body, **options)

    def changes(self, table, **params):
        """Asks for changes with parameters that the client's method does not have."""
        return self.client._request("GET", table._path("/changes"), params=params)


def files_of(name):
    """The ids of the files that the table was made with."""
    return SCENARIO["tables"][f"lake.events.{name}"]["files"]


def snapshots_of(name):
    """The snapshot before the table's first append, and that of each append."""
    return SCENARIO["tables"][f"lake.events.{name}"]["snapshots"]
