"""Versions of datasets in memory, held against lists of rows."""

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.catalog import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.changes import Log, LogEntry, Op
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.partitions import hashing, naming
from caraway_core.partitions.keys import BucketKey, PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, LookupColumns, ResultPlace, StoredTable
from caraway_engine.rows.held import Chunk
from caraway_engine.stored import ChunksAwayError, MissingChunks, StoredVersion, making
from tests.kit.changes import Change, changed

T = TableName("t")
SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
KEYS = Keys(("k",), "refuse", (LookupColumns(("s",)),))
Row = dict[str, Any]


class Memory:
    """Chunks in memory, some of which may be away."""

    def __init__(self) -> None:
        self.away: set[ChunkInfo] = set()
        self._chunks: dict[ChunkInfo, Chunk] = {}
        self._count = itertools.count()

    def add(self, batch: pa.RecordBatch, partition: str = "") -> ChunkInfo:
        number = next(self._count)
        info = ChunkInfo(number, batch.num_rows, batch.nbytes, f"{number:064}", partition)
        self._chunks[info] = Chunk((batch,))
        return info

    def entry(self, *changes: Change) -> LogEntry:
        return LogEntry(self.add(changed(SCHEMA, changes)))

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None if chunk in self.away else self._chunks[chunk]

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        return size_bytes


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), SCHEMA)


def spec(chunks: Sequence[ChunkInfo], keys: Keys | None = KEYS, buckets: int = 0) -> StoredTable:
    cut = PartitionBy((BucketKey(buckets, "k"),)) if buckets else PartitionBy()
    return StoredTable(SCHEMA, ResultPlace("file", "nowhere"), "t", tuple(chunks), keys, cut)


def rows_of(table: Table | MissingChunks) -> list[Row]:
    assert not isinstance(table, MissingChunks)
    context = SessionContext()
    context.catalog().schema().register_table("t", table)
    found: list[Row] = context.table("t").to_pylist()
    return sorted(found, key=lambda row: (row["k"] is None, row["k"] or 0, str(row["s"])))


def rows(*numbers: int, text: str = "a") -> list[Row]:
    return [{"k": number, "s": text} for number in numbers]


@pytest.mark.parametrize("keys", [None, KEYS])
@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_a_table_has_the_rows_of_all_its_chunks(keys: Keys | None, partitions: int) -> None:
    memory = Memory()
    infos = [memory.add(batch(rows(*each))) for each in ((1, 2, 3), (), (4,))]
    version = StoredVersion(T, spec(infos, keys), partitions)
    assert not version.is_held and rows_of(version.table) == []
    assert version.fill(memory) is None
    assert rows_of(version.table) == rows(1, 2, 3, 4)
    assert version.is_held
    assert version.fill(memory) is None and len(rows_of(version.table)) == 4, "filled once"


def test_a_version_of_no_chunks_is_a_table_of_no_rows() -> None:
    version = StoredVersion(T, spec([]), 2)
    assert version.fill(Memory()) is None
    assert rows_of(version.table) == []
    assert version.rows_of(("k",), (1,), Memory()).num_rows == 0


@pytest.mark.parametrize("keys", [None, KEYS])
def test_what_is_missing_is_named_and_nothing_is_half_done(keys: Keys | None) -> None:
    memory = Memory()
    infos = [memory.add(batch(rows(number))) for number in range(3)]
    version = StoredVersion(T, spec(infos, keys), 2)
    memory.away = set(infos[1:])
    missing = version.fill(memory)
    assert isinstance(missing, MissingChunks)
    assert (missing.table, set(missing.chunks)) == (T, memory.away)
    assert rows_of(version.table) == [] and not version.is_held
    with pytest.raises(ChunksAwayError, match="rows of dataset 't' are not in memory"):
        version.at(()).load(version.names, memory)
    memory.away = set()
    assert version.fill(memory) is None and rows_of(version.table) == rows(0, 1, 2)


@pytest.mark.parametrize("keys", [None, KEYS])
def test_a_share_is_some_of_the_pieces(keys: Keys | None) -> None:
    memory = Memory()
    infos = [memory.add(batch(rows(number))) for number in range(3)]
    version = StoredVersion(T, spec(infos, keys), 2)
    names = version.names
    assert len(names) == 3
    assert rows_of(version.share(names[:1], memory)) == rows(0)
    assert rows_of(version.share(names[1:], memory)) == rows(1, 2)
    assert rows_of(version.share(names, memory)) == rows(0, 1, 2)
    assert version.share(names[:1], memory) is version.share(names[:1], memory)
    assert version.at(()).load(names[1:], memory) == 2
    with pytest.raises(ExecutionError, match="chunks that its version does not have"):
        version.share(("none",), memory)


def test_each_position_shows_its_own_rows() -> None:
    memory = Memory()
    version = StoredVersion(T, spec([memory.add(batch(rows(1, 2)))]), 2)
    log: Log = (
        memory.entry((Op.UPSERT, {"k": 1, "s": "new"})),
        memory.entry((Op.DELETE, {"k": 2})),
        memory.entry((Op.TRUNCATE, {}), (Op.UPSERT, {"k": 9, "s": "z"})),
    )
    expected = [
        rows(1, 2), [*rows(1, text="new"), *rows(2)], rows(1, text="new"), rows(9, text="z"),
    ]  # fmt: skip
    for count in (3, 0, 1, 2, 3):
        view = version.at(log[:count])
        assert view.load(version.names, memory) == len(expected[count])
        assert view.fill(memory) is None
        assert rows_of(view.table) == expected[count]


def test_a_view_is_found_again_and_another_log_has_another() -> None:
    memory = Memory()
    version = StoredVersion(T, spec([memory.add(batch(rows(1)))]), 1)
    first, other = memory.entry((Op.UPSERT, {"k": 2})), memory.entry((Op.UPSERT, {"k": 3}))
    view = version.at((first,))
    assert version.at((first,)) is view and version.at(()) is version.at(())
    assert version.at((other,)) is not view
    for log, numbers in (((first,), [1, 2]), ((other,), [1, 3]), ((first, other), [1, 2, 3])):
        found = version.at(log)
        found.fill(memory)
        assert [row["k"] for row in rows_of(found.table)] == numbers


def test_readers_of_a_log_that_is_being_replaced_do_not_start_over() -> None:
    memory = Memory()
    version = StoredVersion(T, spec([memory.add(batch(rows(1)))]), 1)
    changes = [(Op.UPSERT, {"k": number}) for number in (2, 3, 4)]
    old = memory.entry(changes[0]), memory.entry(changes[1])
    joined = (memory.entry(*changes[:2]),)

    def last(log: Log) -> object:
        return version.at(log).units(None, memory)[-1].key

    before, after = last(old), last(joined)
    for _ in range(2):
        assert last(old) is before
        assert last(joined) is after
    longer = (*joined, memory.entry(changes[2]))
    assert version.at(longer).units(None, memory)[-2].key is after


@pytest.mark.parametrize(
    ("columns", "values", "found"),
    [
        (("k",), (2,), [2]),
        (("k",), (7,), []),
        (("k",), (None,), []),
        (("k",), (2**63 - 1,), []),
        (("s",), ("a",), [1, 2]),
        (("s",), ("",), [3]),
        (("s",), ("A",), []),
    ],
)
@pytest.mark.parametrize("buckets", [0, 3])
def test_rows_are_looked_up(
    columns: tuple[str, ...], values: tuple[Any, ...], found: list[int], buckets: int
) -> None:
    memory = Memory()
    held = [*rows(1, 2), {"k": 3, "s": ""}, {"k": 4, "s": None}]
    version = StoredVersion(T, parted(memory, held, buckets), 1)
    assert version.rows_at_hand(columns, values) is None or None in values
    got = version.rows_of(columns, values, memory)
    assert sorted(row["k"] for row in got.to_pylist()) == found
    again = version.rows_at_hand(columns, values)
    assert again is not None and again.num_rows == len(found)


def parted(memory: Memory, held: Sequence[Row], buckets: int) -> StoredTable:
    whole = batch(held)
    if not buckets:
        return spec([memory.add(whole)])
    numbers = hashing.bucket_of(whole.column("k"), buckets).to_pylist()
    parts = [
        [row for row, at in zip(held, numbers, strict=True) if at == n] for n in range(buckets)
    ]
    infos = [memory.add(batch(part), naming.name_of([n])) for n, part in enumerate(parts)]
    return spec(infos, KEYS, buckets)


def test_a_look_up_reads_only_the_bucket_that_the_key_is_in() -> None:
    memory = Memory()
    table = parted(memory, rows(*range(20)), 4)
    bucket = hashing.bucket_of(pa.array([7]), 4)[0].as_py()
    memory.away = {info for n, info in enumerate(table.chunks) if n != bucket}
    version = StoredVersion(T, table, 1)
    assert version.rows_of(("k",), (7,), memory).to_pylist() == rows(7)
    with pytest.raises(ChunksAwayError):
        version.rows_of(("s",), ("a",), memory)


@pytest.mark.parametrize("columns", [("none",), ("k", "s"), ()])
def test_columns_without_an_index_are_refused(columns: tuple[str, ...]) -> None:
    version = StoredVersion(T, spec([]), 1)
    with pytest.raises(ExecutionError, match="'t' has no index of the columns"):
        version.rows_of(columns, (1,) * len(columns), Memory())


def test_columns_of_an_index_may_come_in_any_order() -> None:
    memory = Memory()
    keys = Keys(("k", "s"))
    version = StoredVersion(T, spec([memory.add(batch(rows(1, 2)))], keys), 1)
    for columns, values in ((("k", "s"), (2, "a")), (("s", "k"), ("a", 2))):
        assert version.rows_of(columns, values, memory).to_pylist() == rows(2)


def test_what_was_not_read_of_late_is_let_go() -> None:
    memory, now = Memory(), [1000.0]
    infos = [memory.add(batch(rows(number))) for number in range(2)]
    version = StoredVersion(T, spec(infos, None), 1, lambda: now[0])
    one, two = version.names
    first = version.share((one,), memory)
    now[0] += 30
    second = version.share((two,), memory)
    now[0] += 40
    version.let_go()
    assert version.share((two,), memory) is second
    assert version.share((one,), memory) is not first, "read 70 seconds ago"
    now[0] += 1000
    version.let_go()
    assert version.is_held, "what was read last is kept"


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 4))
def test_batches_are_dealt_out_in_order(sizes: list[int], partitions: int) -> None:
    batches = [batch(rows(*range(size))) for size in sizes if size]
    parts = making.divide_batches(batches, partitions)
    assert len(parts) == partitions
    assert [each for part in parts for each in part] == batches
    total, largest = sum(sizes), max(sizes, default=0)
    for part in parts:
        assert sum(each.num_rows for each in part) <= total / partitions + largest
