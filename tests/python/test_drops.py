"""Checks of drops and truncates that succeed."""

import json
import unittest

from lake import SCENARIO, Case, files_of
from pyhoglake import CommitResult, IncarnationChangedError, ValidationError
from pyhoglake.client import Table


class Drops(Case):
    def test_a_drop_answers_and_a_retry_gets_the_same(self):
        table, key = self.table("dropped"), SCENARIO["fresh_key"]
        tuples = (["1"], ["9"], [None])
        dry = self.drop(table, *tuples, idempotency_key=key, dry_run=True)
        answer = self.drop(table, *tuples, idempotency_key=key, author="me", message="why")
        self.assertGreater(answer["snapshot_id"], dry["snapshot_id"])
        of_tuple = lambda values, files, vectors, records, size: {
            "spec_id": table_spec(),
            "partition_values": values,
            "files_ended": files,
            "delete_files_ended": vectors,
            "records": records,
            "bytes": size,
        }
        expected = {
            "snapshot_id": answer["snapshot_id"],
            "schema_version": dry["schema_version"],
            "committed": True,
            "replayed": False,
            "files_ended": 3,
            "delete_files_ended": 1,
            "records": 30,
            "bytes": 300,
            "partitions": [
                of_tuple(["1"], 2, 1, 20, 200),
                of_tuple(["9"], 0, 0, 0, 0),
                of_tuple([None], 1, 0, 10, 100),
            ],
        }
        self.assertEqual(answer, expected)
        head = {"snapshot_id": dry["snapshot_id"], "committed": False}
        self.assertEqual(dry, expected | head)
        again = self.drop(table, *tuples, idempotency_key=key)
        self.assertEqual(again, expected | {"replayed": True})
        nothing = self.drop(table, ["1"])
        told = (nothing["committed"], nothing["files_ended"], nothing["replayed"])
        self.assertEqual(told, (False, 0, False))

    def test_a_reader_may_try_out(self):
        reader = self.client_of(SCENARIO["reader"])
        dry = self.drop(self.table("raw"), ["20720"], client=reader, dry_run=True)
        self.assertEqual((dry["files_ended"], dry["committed"]), (1, False))


def table_spec():
    return SCENARIO["tables"]["lake.events.dropped"]["spec_id"]


@unittest.skipUnless(hasattr(Table, "truncate"), "this client cannot truncate")
class Truncates(Case):
    def test_the_clients_own_truncate(self):
        table = self.table("whole")
        before = self.drop(table, ["77"], dry_run=True)
        done = table.truncate(author="me", message="all of it")
        request = self.response.request
        self.assertEqual(request.method, "POST")
        self.assertEqual(request.url.path, "/v1" + table._path("/truncate"))
        query = dict(request.url.params)
        self.assertEqual(query, {"expected_table_uuid": table.table_uuid})
        sent = json.loads(request.content)
        self.assertEqual(sent, {"author": "me", "message": "all of it"})

        self.assertIs(type(done), CommitResult)
        self.assertGreater(done.snapshot_id, before["snapshot_id"])
        self.assertEqual(done.schema_version, before["schema_version"] + 1)
        self.assertEqual(table.snapshot_id, done.snapshot_id)
        empty = table.truncate(author="me", message="nothing is left")
        self.assertGreaterEqual(empty.snapshot_id, done.snapshot_id)

    def test_of_another_incarnation(self):
        old = self.table("twice", table_uuid=SCENARIO["old_uuid"])
        with self.assertRaises(IncarnationChangedError) as raised:
            old.truncate(author="me", message="too late")
        self.assertEqual(raised.exception.table, "events.twice")

    def test_with_a_key_it_can_be_retried(self):
        """The client's method sends no key; its transport takes one."""
        table = self.table("keyed")
        call = lambda **body: self.client._request(
            "POST",
            table._path("/truncate"),
            params={"expected_table_uuid": table.table_uuid},
            json={"idempotency_key": SCENARIO["truncate_key"]} | body,
        )
        first = call(author="me")
        self.assertEqual(set(first), {"snapshot_id", "schema_version"})
        self.assertEqual(call(author="somebody else"), first)
        with self.assertRaises(ValidationError):
            call(read_snapshot=1)
        self.assertEqual(len(files_of("keyed")), 2)
