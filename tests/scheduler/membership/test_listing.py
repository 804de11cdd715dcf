"""Executors as rows: the columns that users see."""

from dataclasses import replace

from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.protocols.fleet import Description
from caraway_scheduler.membership import listing
from caraway_scheduler.membership.members import Record

DESCRIPTION = Description(
    ExecutorId("e1"), "i1", 6, "1.0", "host", 4, 2**30, active_tasks=1, finished_tasks=2,
    failed_tasks=3, memory_used_bytes=5, holds=(TableName("t"),),
)  # fmt: skip
RECORD = Record(DESCRIPTION, heard_at=10.0, state="ready", held=CatalogVersion(7))


def test_row_has_a_value_for_every_column_and_no_other() -> None:
    (row,) = listing.rows([RECORD.status(12.5, "why")])
    assert list(row) == listing.SCHEMA.names
    assert row["heartbeat_age_ms"] == 2_500 and row["reason"] == "why"
    assert (row["active_tasks"], row["finished_tasks"], row["failed_tasks"]) == (1, 2, 3)
    assert (row["catalog_version"], row["holds"]) == (7, ["t"])


def test_table_of_executors_is_what_the_listing_says() -> None:
    found = [RECORD.status(12.5, ""), ExecutorStatus(ExecutorId("e2"), "registered")]
    table = listing.table(found)
    assert table.schema == listing.SCHEMA and table.to_pylist() == listing.rows(found)
    assert table.column("reason").to_pylist() == [None, None]
    assert table.column("catalog_version").to_pylist() == [7, None]
    assert listing.table([]).num_rows == 0


def test_clock_that_went_back_makes_no_negative_age() -> None:
    assert RECORD.status(0.0, "").heartbeat_age_s == 0.0


def test_member_is_the_record_without_what_only_matters_here() -> None:
    member = replace(RECORD, error="x", attempts=3).member()
    assert (member.executor_id, member.cores, member.memory_bytes) == ("e1", 4, 2**30)
    assert (member.address, member.incarnation, member.active_tasks) == ("host", "i1", 1)
