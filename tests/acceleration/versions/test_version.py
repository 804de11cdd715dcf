"""The facts of a version, summed over its parts and its log."""

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given, settings

from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_core.changes import LogEntry
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, ResultPlace
from tests.acceleration.versions.written_versions import VERSIONS

SCHEMA = pa.schema({"id": pa.int64()})
OLD = VersionPart("t.1", SCHEMA, (ChunkInfo(0, 10, 100, "a"), ChunkInfo(1, 20, 200, "b", "[1]")))
NEW = VersionPart("t.2", pa.schema({"id": pa.int64(), "x": pa.int8()}), (ChunkInfo(0, 5, 50, "c"),))
LOG = tuple(LogEntry(ChunkInfo(0, rows, 10 * rows, "d", key=f"t.log.{rows}")) for rows in (1, 2, 3))
VERSION = DatasetVersion(
    1, (OLD, NEW), "/data", datetime(2026, 1, 1, tzinfo=UTC), "", "", log=LOG, pending=1
)


def test_last_part_names_the_base_and_has_its_columns() -> None:
    assert VERSION.key == "t.2" and VERSION.schema == NEW.schema


def test_chunks_are_in_the_order_of_the_rows_and_say_where_they_lie() -> None:
    assert [(each.checksum, each.key) for each in VERSION.chunks] == [
        ("a", "t.1"), ("b", "t.1"), ("c", ""),
    ]  # fmt: skip


def test_keys_name_all_that_must_not_be_removed() -> None:
    assert VERSION.keys == {"t.1", "t.2", "t.log.1", "t.log.2", "t.log.3"}


def test_entries_that_are_not_whole_yet_are_not_read_but_take_room() -> None:
    assert [entry.chunk.row_count for entry in VERSION.read_log] == [1, 2]
    assert VERSION.log_rows == 3
    assert VERSION.size_bytes == 350 + 60
    assert replace(VERSION, pending=3).read_log == ()
    assert replace(VERSION, pending=0).read_log == LOG


def test_rows_are_those_that_were_counted_or_those_of_the_base() -> None:
    assert (VERSION.base_rows, VERSION.rows) == (35, 35)
    assert replace(VERSION, live_rows=0).rows == 0, "zero is a count"


def test_table_is_what_statements_read() -> None:
    keys = Keys(("id",), "last", ())
    table = VERSION.table(ResultPlace("file", "/data"), keys, is_mapped=True, replicas=2)
    assert (table.key, table.chunks, table.keys) == ("t.2", VERSION.chunks, keys)
    assert table.is_mapped and table.replicas == 2


@settings(max_examples=15, derandomize=True)
@given(VERSIONS)
def test_sums_agree_for_any_version(version: DatasetVersion) -> None:
    assert version.base_rows == sum(chunk.row_count for chunk in version.chunks)
    read = len(version.read_log)
    assert version.read_log == version.log[:read]
    assert version.keys >= {each.chunk.key for each in version.log} | {version.key}
