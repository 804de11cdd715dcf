"""What is kept of a log that has become part of its base."""

import pyarrow as pa

from caraway_core.changes import OFFSET, OP, Log, LogEntry, Op, log_schema
from caraway_core.protocols.results import ChunkInfo
from caraway_scheduler.acceleration import logs

SCHEMA = log_schema(pa.schema([("id", pa.int64()), ("v", pa.string())]))
Row = tuple[int | None, Op, bytes | None]


def table(*rows: Row) -> pa.Table:
    return pa.table(
        {
            "id": [each[0] for each in rows],
            "v": ["v"] * len(rows),
            OP: [each[1] for each in rows],
            OFFSET: [each[2] for each in rows],
        },
        schema=SCHEMA,
    )


def kept(*rows: Row) -> list[Row]:
    found = logs.remembered(table(*rows), ("id",))
    if found is None:
        return []
    assert found.schema == SCHEMA and found["v"].null_count == found.num_rows
    return [(each["id"], Op(each[OP]), each[OFFSET]) for each in found.to_pylist()]


def at(number: int, source: bytes = b"source-1") -> bytes:
    return source + number.to_bytes(8)


def test_of_each_key_the_furthest_change_is_kept() -> None:
    assert kept(
        (1, Op.UPSERT, at(5)), (2, Op.UPSERT, at(6)), (1, Op.DELETE, at(9)), (2, Op.KEEP, at(3))
    ) == [(1, Op.GONE, at(9)), (2, Op.SEEN, at(6))]


def test_sources_are_told_apart() -> None:
    other = b"source-2"
    assert kept((1, Op.UPSERT, at(5)), (1, Op.DELETE, at(2, other))) == [
        (1, Op.SEEN, at(5)),
        (1, Op.GONE, at(2, other)),
    ]


def test_what_was_kept_before_stays_and_may_be_overtaken() -> None:
    assert kept((1, Op.GONE, at(5)), (2, Op.SEEN, at(6)), (1, Op.UPSERT, at(7))) == [
        (2, Op.SEEN, at(6)),
        (1, Op.SEEN, at(7)),
    ]


def test_changes_without_a_place_are_not_kept() -> None:
    assert kept((1, Op.UPSERT, None)) == []
    assert logs.remembered(table((1, Op.UPSERT, at(1))), ()) is None


def test_a_truncate_does_not_make_older_changes_new() -> None:
    found = kept((1, Op.UPSERT, at(5)), (None, Op.TRUNCATE, at(9)), (1, Op.UPSERT, at(12)))
    assert found == [(None, Op.EMPTIED, at(9)), (1, Op.SEEN, at(12))]
    assert kept((None, Op.EMPTIED, at(9)), (None, Op.TRUNCATE, at(20))) == [
        (None, Op.EMPTIED, at(20))
    ]


def log(*rows: int) -> Log:
    return tuple(
        LogEntry(ChunkInfo(number, count, count, "0" * 64)) for number, count in enumerate(rows)
    )


def test_the_small_entries_at_the_end_are_gathered() -> None:
    assert logs.tail(log(*[10] * 64)) == 0
    assert logs.tail(log(*[10] * 65)) == 65
    assert logs.tail(log(*[50_000] * 60, *[10] * 5)) == 5
    assert logs.tail(log(*[50_000] * 64, 10, 10)) == 0


def test_no_large_entry_is_made_of_those_of_a_load() -> None:
    assert logs.tail(log(*[50_000] * 300)) == 0
    assert logs.tail(log(*[10_000] * 300)) == 4
    assert logs.tail(log(*[5_000] * 300)) == 13
