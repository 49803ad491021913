"""Checks of tailrace's feed of changes through the client's own method and models."""

from lake import Case, files_of, snapshots_of
from pyhoglake import (
    ChangesPlan,
    CommitConflictError,
    DataFile,
    DeleteFile,
    ReconciliationRequiredError,
)


class Changes(Case):
    def test_a_window_of_appends_and_vectors_is_parsed(self):
        table = self.table("steady")
        start, first, second, vector = snapshots_of("steady")
        plan = table.changes(start, vector)
        sent = dict(self.response.request.url.params)
        self.assertEqual(sent, {"from_snapshot": str(start), "to_snapshot": str(vector)})
        self.assertIs(type(plan), ChangesPlan)
        self.assertEqual(plan.table_uuid, table.table_uuid)
        self.assertEqual((plan.from_snapshot, plan.to_snapshot), (start, vector))
        one, two, three = files_of("steady")
        told = [(f.data_file_id, f.begin_snapshot, f.partition_values) for f in plan.files]
        self.assertEqual(
            told, [(one, first, ("1",)), (two, first, (None,)), (three, second, ("2",))]
        )
        self.assertIs(type(plan.files[0]), DataFile)
        self.assertEqual({f.file_format for f in plan.files}, {"parquet"})
        self.assertEqual([f.record_count for f in plan.files], [10, 10, 10])
        [deleted] = plan.delete_files
        self.assertIs(type(deleted), DeleteFile)
        self.assertEqual((deleted.data_file_id, deleted.delete_count), (one, 4))
        self.assertEqual(table.changes(second, second).files, ())

    def test_without_an_end_the_window_ends_at_the_head(self):
        table = self.table("steady")
        start, *_, vector = snapshots_of("steady")
        plan = table.changes(start)
        self.assertEqual(set(self.response.request.url.params), {"from_snapshot"})
        self.assertGreater(plan.to_snapshot, vector)
        self.assertEqual(len(plan.files), 3)

    def test_a_window_with_a_drop_is_told_whole_or_not_at_all(self):
        table = self.table("shrunk")
        start, appended = snapshots_of("shrunk")
        one, two, three = files_of("shrunk")
        dropped = self.drop(table, ["1"], conflict=CommitConflictError)["snapshot_id"]
        self.assertEqual(len(table.changes(start, appended).files), 3)
        for window in ((start, dropped), (appended, dropped), (start, None)):
            with self.assertRaises(ReconciliationRequiredError):
                table.changes(*window)
        self.assertEqual(table.changes(dropped).files, ())

        body = self.changes(
            table, from_snapshot=start, to_snapshot=dropped, ended_files=True
        )
        plan = ChangesPlan.from_wire(body)
        # Both began and ended in the window: they are in both lists.
        self.assertEqual([f.data_file_id for f in plan.files], [one, two, three])
        ends = [(f["data_file_id"], f["end_snapshot"]) for f in body["ended_files"]]
        self.assertEqual(ends, [(one, dropped), (two, dropped)])
        parsed = [DataFile.from_wire(entry) for entry in body["ended_files"]]
        self.assertEqual(parsed, list(plan.files[:2]))
        self.assertEqual({f.partition_values for f in parsed}, {("1",)})
        self.assertNotIn("end_snapshot", body["files"][0])
        self.assertFalse(hasattr(plan, "ended_files"))

    def test_a_fenced_drop_and_a_truncate_too(self):
        table = self.table("fence")
        start, appended = snapshots_of("fence")
        fenced = self.drop(table, ["1"], fence=True)
        path = table._path("/truncate")
        uuid = {"expected_table_uuid": table.table_uuid}
        emptied = self.client._request("POST", path, params=uuid)
        for window in (
            (start, fenced["snapshot_id"]),
            (fenced["snapshot_id"], emptied["snapshot_id"]),
        ):
            with self.assertRaises(ReconciliationRequiredError):
                table.changes(*window)
        body = self.changes(table, from_snapshot=appended, ended_files=True)
        ends = [(f["data_file_id"], f["end_snapshot"]) for f in body["ended_files"]]
        one, two = files_of("fence")
        self.assertEqual(
            ends, [(one, fenced["snapshot_id"]), (two, emptied["snapshot_id"])]
        )

    def test_pages_put_together_are_the_window(self):
        table = self.table("steady")
        start, *_, vector = snapshots_of("steady")
        window = {"from_snapshot": start, "to_snapshot": vector, "ended_files": True}
        whole = self.changes(table, **window)
        pages = {name: [] for name in ("files", "delete_files", "ended_files")}
        cursor, count = None, 0
        while count == 0 or cursor:
            page = self.changes(table, **window, limit=1, cursor=cursor)
            ChangesPlan.from_wire(page)
            for name, entries in pages.items():
                entries.extend(page[name])
            cursor, count = page.get("next_cursor"), count + 1
        self.assertEqual(whole | pages, whole)
        self.assertEqual(count, 5)
