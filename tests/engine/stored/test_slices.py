"""A long log is applied in slices; in between others have their turn."""

from collections.abc import Callable
from threading import Thread

import pyarrow as pa
import pytest

from caraway_core.changes import Log, LogEntry, Op
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, ResultPlace, StoredTable
from caraway_engine.rows import lineages
from caraway_engine.rows.held import Chunk
from caraway_engine.stored import StoredVersion
from tests.kit.changes import changed
from tests.kit.deadlines import until

T = TableName("t")
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
SPEC = StoredTable(SCHEMA, ResultPlace("file", "nowhere"), "t", (), Keys(("k",), "refuse"))
COUNT = 6


class Held:
    """Chunks in memory; calls `tell` before each entry is applied."""

    def __init__(self) -> None:
        self.tell: Callable[[], None] = lambda: None
        self._chunks: dict[ChunkInfo, Chunk] = {}

    def log(self, count: int, kind: str = "a") -> Log:
        """Make entries of one row each."""
        entries = []
        for number in range(count):
            rows = changed(SCHEMA, [(Op.UPSERT, {"k": number, "v": number})])
            info = ChunkInfo(number, 1, rows.nbytes, kind * 64, key="log")
            self._chunks[info] = Chunk((rows,))
            entries.append(LogEntry(info))
        return tuple(entries)

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return self._chunks.get(chunk)

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        if size_bytes:
            self.tell()
        return size_bytes


def test_a_reader_does_not_wait_until_all_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineages, "SLICE_ROWS", 1)
    held, version, read = Held(), StoredVersion(T, SPEC, 1), list[int]()
    log, applied = held.log(COUNT), 0
    version.at(log[:1]).load(version.names, held)

    def look_up() -> None:
        read.append(version.rows_of(("k",), (0,), held, log[:1]).num_rows)

    reader = Thread(target=look_up, daemon=True)

    def tell() -> None:
        nonlocal applied
        applied += 1
        if applied == 1:
            reader.start()
            until(lambda: version.content.merging._waiting, "the reader waits")
        if applied == 3:
            # It had a turn to find the rows, and one to read them.
            until(lambda: read, "the reader is answered")

    held.tell = tell
    assert version.at(log).load(version.names, held) == COUNT
    assert read == [1] and applied == COUNT - 1


def test_a_position_is_found_while_others_are_merged() -> None:
    held, version = Held(), StoredVersion(T, SPEC, 1)
    log, found = held.log(2), list[object]()

    def tell() -> None:
        finder = Thread(target=lambda: found.append(version.at(log[:1])), daemon=True)
        finder.start()
        finder.join(60)

    held.tell = tell
    version.at(log).load(version.names, held)

    assert len(found) == 2 and found[0] is not None


def test_what_is_half_done_is_not_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineages, "SLICE_ROWS", 1)
    now_s = 0.0
    held, version = Held(), StoredVersion(T, SPEC, 1, lambda: now_s)
    log, applied = held.log(COUNT), list[int]()
    lineage = version.content.lineage_of(log, None)

    for _ in range(COUNT - 1):
        now_s += 1000
        assert lineage.bring(version.names, COUNT, held, now_s, is_scan=False) is None
        version.let_go()
        applied += [each.applied for each in lineage._merged.values()]

    assert applied == list(range(1, COUNT))
    assert lineage.bring(version.names, COUNT, held, now_s) is not None


def test_a_key_is_found_at_hand_at_every_position_that_is_there() -> None:
    held, version = Held(), StoredVersion(T, SPEC, 1)
    log = held.log(COUNT)
    version.at(log).load(version.names, held)

    for count in range(1, COUNT + 1):
        rows = version.rows_at_hand(("k",), (count - 1,), log[:count])
        assert rows is not None and rows.num_rows == 1
        rows = version.rows_at_hand(("k",), (count,), log[:count])
        assert rows is not None and not rows.num_rows
    assert version.rows_at_hand(("k",), (0,), held.log(COUNT, "b")) is None
