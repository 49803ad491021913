"""Checks that each error of the contract's table raises exactly the class that the table names."""

from lake import SCENARIO, Case
from pyhoglake import (
    AlreadyExistsError,
    CommitConflictError,
    DdlSinceReadSnapshotError,
    ExpiredError,
    HoglakeError,
    IncarnationChangedError,
    NotFoundError,
    ReconciliationRequiredError,
    ValidationError,
)


class Errors(Case):
    def refused(self, cls, status, code, call):
        """Checks that a call raises this class and no other, with status, code and words."""
        with self.assertRaises(HoglakeError) as raised:
            call()
        error = raised.exception
        told = (type(error), error.status_code, error.message)
        self.assertEqual(told, (cls, status, code), str(error))
        self.assertTrue(error.detail)
        self.assertEqual(self.response.headers["content-type"], "application/json")
        return error

    def test_400_bad_request(self):
        raw = self.table("raw")
        for call in (
            lambda: self.drop(raw, ["1"], surprise=True),
            lambda: self.drop(raw, ["1"], idempotency_key="no uuid"),
            lambda: self.drop(raw, [1]),
            lambda: self.client._request("POST", raw._path("/partitions/drop"), json=[]),
            lambda: self.client._request("POST", raw._path("/partitions/drop"), json={}),
            lambda: self.changes(raw, from_snapshot="yesterday"),
            lambda: self.changes(raw),
            lambda: self.changes(raw, from_snapshot=0, limit=1, cursor="made up"),
        ):
            self.refused(HoglakeError, 400, "bad_request", call)

    def test_404_not_found(self):
        for table in (
            self.table("raw", catalog="nowhere"),
            self.table("raw", namespace="nowhere"),
            self.table("nothing"),
        ):
            self.refused(NotFoundError, 404, "not_found", lambda: self.drop(table, ["1"]))
            self.refused(NotFoundError, 404, "not_found", lambda: table.changes(0))

    def test_404_names_are_escaped_by_the_client_and_read_by_us(self):
        call = lambda: self.drop(self.table("50% a/b ü?"), ["1"])
        error = self.refused(NotFoundError, 404, "not_found", call)
        self.assertIn('table events.50% a/b ü? in catalog "lake"', error.detail)

    def test_409_commit_conflict_is_the_class_that_the_caller_passes(self):
        raw, read = self.table("raw"), SCENARIO["read_snapshot"]
        for passed, raised in (
            (None, AlreadyExistsError),
            (CommitConflictError, CommitConflictError),
        ):
            call = lambda: self.drop(raw, ["20720"], read_snapshot=read, conflict=passed)
            self.refused(raised, 409, "commit_conflict", call)

    def test_409_table_recreated(self):
        old = self.table("twice", table_uuid=SCENARIO["old_uuid"])
        for passed in (None, CommitConflictError):
            call = lambda: self.drop(
                old, ["1"], expected_table_uuid=old.table_uuid, conflict=passed
            )
            error = self.refused(IncarnationChangedError, 409, "table_recreated", call)
            self.assertEqual(error.table, "events.twice")
            self.assertTrue(error.re_prepare)

    def test_409_ddl_since_read_snapshot(self):
        altered, read = self.table("altered"), SCENARIO["read_snapshot"]
        for passed in (None, CommitConflictError):
            call = lambda: self.drop(altered, ["1"], read_snapshot=read, conflict=passed)
            error = self.refused(
                DdlSinceReadSnapshotError, 409, "ddl_since_read_snapshot", call
            )
            self.assertEqual(error.tables, ("events.altered",))
            self.assertEqual(error.read_snapshot, read)
            self.assertTrue(error.re_prepare)

    def test_409_table_dropped(self):
        """Its DROP TABLE stands before our request in the queue for the commit lock."""
        table = self.table("raw", catalog="race")
        call = lambda: self.drop(table, ["1"], conflict=CommitConflictError)
        self.refused(CommitConflictError, 409, "table_dropped", call)

    def test_409_reconciliation_required(self):
        table = self.table("fenced")
        call = lambda: table.changes(SCENARIO["read_snapshot"])
        error = self.refused(
            ReconciliationRequiredError, 409, "reconciliation_required", call
        )
        self.assertFalse(error.retryable or error.re_prepare)

    def test_410_expired(self):
        old = self.table("raw", catalog="old")
        self.refused(ExpiredError, 410, "expired", lambda: old.changes(1))
        call = lambda: self.drop(old, ["1"], read_snapshot=1, conflict=CommitConflictError)
        self.refused(ExpiredError, 410, "expired", call)

    def test_422_validation(self):
        raw, ahead = self.table("raw"), 1_000_000
        for call in (
            lambda: self.drop(raw, ["1"], read_snapshot=ahead),
            lambda: self.drop(raw),
            lambda: self.drop(raw, ["*"]),
            lambda: self.drop(raw, ["2026-09-17"]),
            lambda: self.drop(raw, ["1", "2"]),
            lambda: self.drop(raw, ["1"], ["1"]),
            lambda: raw.changes(0, ahead),
            lambda: raw.changes(2, 1),
            lambda: self.changes(raw, from_snapshot=0, limit=0),
        ):
            self.refused(ValidationError, 422, "validation", call)

    def test_422_for_a_key_that_another_request_used(self):
        raw, key = self.table("raw"), SCENARIO["used_key"]
        call = lambda: self.drop(raw, ["1"], idempotency_key=key)
        self.refused(ValidationError, 422, "validation", call)

    def test_500_internal_error(self):
        table = self.table("broken")
        call = lambda: self.drop(table, ["1"], conflict=CommitConflictError)
        error = self.refused(HoglakeError, 500, "internal_error", call)
        self.assertNotIn("secret", str(error))

    def test_503_commit_queue_timeout(self):
        """The commit lock is held by somebody else, or a file's row is."""
        for table in (self.table("raw", catalog="busy"), self.table("locked")):
            call = lambda: self.drop(table, ["1"], conflict=CommitConflictError)
            self.refused(HoglakeError, 503, "commit_queue_timeout", call)
            self.assertEqual(self.response.headers["retry-after"], "1")

    def test_who_may_not(self):
        raw = self.table("raw")
        for token, status, code in (
            ("guess", 401, "unauthorized"),
            (SCENARIO["reader"], 403, "forbidden"),
        ):
            client = self.client_of(token)
            call = lambda: self.drop(raw, ["1"], client=client)
            self.refused(HoglakeError, status, code, call)
