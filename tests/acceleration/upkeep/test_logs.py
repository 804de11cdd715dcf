"""The records that outlive a compaction of a log."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_acceleration.upkeep import logs
from caraway_core.changes import OFFSET, OP, Log, LogEntry, Op, log_schema
from caraway_core.protocols.results import ChunkInfo
from caraway_plugins.stores.folder import FolderResultStore

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


def test_the_furthest_change_of_each_key_is_kept() -> None:
    assert kept(
        (1, Op.UPSERT, at(5)), (2, Op.UPSERT, at(6)), (1, Op.DELETE, at(9)), (2, Op.KEEP, at(3))
    ) == [(1, Op.GONE, at(9)), (2, Op.SEEN, at(6))]


def test_sources_are_distinguished() -> None:
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


def test_changes_without_an_offset_are_not_kept() -> None:
    assert kept((1, Op.UPSERT, None)) == []
    assert logs.remembered(table((1, Op.UPSERT, at(1))), ()) is None


def test_a_truncate_does_not_make_older_changes_new() -> None:
    found = kept((1, Op.UPSERT, at(5)), (None, Op.TRUNCATE, at(9)), (1, Op.UPSERT, at(12)))
    assert found == [(None, Op.EMPTIED, at(9)), (1, Op.SEEN, at(12))]
    assert kept((None, Op.EMPTIED, at(9)), (None, Op.TRUNCATE, at(20))) == [
        (None, Op.EMPTIED, at(20))
    ]


def test_a_truncate_outlives_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_REMEMBERED", 2)
    found = kept((None, Op.TRUNCATE, at(9)), *((n, Op.UPSERT, at(10 + n)) for n in range(5)))
    assert found == [(None, Op.EMPTIED, at(9)), (3, Op.SEEN, at(13)), (4, Op.SEEN, at(14))]


async def test_a_long_log_is_processed_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[Row] = [(None, Op.TRUNCATE, at(1))]
    chance = random.Random(3)
    for number in range(100):
        op = chance.choice((Op.UPSERT, Op.DELETE))
        changes.append((chance.randrange(20), op, at(chance.randrange(2, 200))))
        changes.append((None, Op.TRUNCATE, at(number + 2, b"source-2")))
    wanted = kept(*changes)
    results, log = FolderResultStore(tmp_path), []
    for number in range(0, len(changes), 4):
        batches = table(*changes[number : number + 4]).to_batches()
        chunk = await results.write_chunk("log", number, SCHEMA, batches)
        log.append(LogEntry(replace(chunk, key="log")))
    most = 0
    whole = logs.remembered

    def counting(rows: pa.Table, keys: Sequence[str]) -> pa.Table | None:
        nonlocal most
        most = max(most, rows.num_rows)
        return whole(rows, keys)

    monkeypatch.setattr(logs, "remembered", counting)
    monkeypatch.setattr(logs, "ROWS_AT_ONCE", 12)
    found = await logs.remember(results, tuple(log), ("id",))
    assert found is not None and most <= 20 + 2 + 12
    rows = [(each["id"], Op(each[OP]), each[OFFSET]) for each in found.to_pylist()]
    assert sorted(rows, key=str) == sorted(wanted, key=str)
    # The order matters, because the keys that changed longest ago are dropped first.
    keys = [each for each in rows if each[0] is not None]
    assert keys == [each for each in wanted if each[0] is not None]


def log(*rows: int) -> Log:
    return tuple(
        LogEntry(ChunkInfo(number, count, count, "0" * 64)) for number, count in enumerate(rows)
    )


def test_the_small_entries_at_the_end_are_merged() -> None:
    assert logs.tail(log(*[10] * 64)) == 0
    assert logs.tail(log(*[10] * 65)) == 65
    assert logs.tail(log(*[50_000] * 60, *[10] * 5)) == 5
    assert logs.tail(log(*[50_000] * 64, 10, 10)) == 0


def test_no_large_entry_is_made_of_those_of_a_load() -> None:
    assert logs.tail(log(*[50_000] * 300)) == 0
    assert logs.tail(log(*[10_000] * 300)) == 4
    assert logs.tail(log(*[5_000] * 300)) == 13
