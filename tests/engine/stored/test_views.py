"""Views of versions: shares, look-ups and units at each position, against lists of rows."""

import datetime as dt
import itertools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext
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
from caraway_engine.stored import ChunksAwayError, MissingChunks, StoredShare, StoredVersion
from tests.kit.changes import Change, changed

T = TableName("t")
Row = dict[str, Any]
VALUES: Mapping[pa.DataType, Sequence[Any]] = {
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.uint64(): [0, 1, 2**63, 2**64 - 1],
    pa.string(): ["", "a", "A", "é", "a\x00", "x" * 40],
    pa.string_view(): ["", "a", "x" * 40],
    pa.bool_(): [True, False],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(2024, 2, 29)],
    pa.timestamp("us"): [dt.datetime(2024, 1, 1), dt.datetime(1, 1, 1)],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("9999999.99")],
    pa.binary(): [b"", b"\x00", b"\xff\xff"],
}  # fmt: skip


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

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None if chunk in self.away else self._chunks[chunk]

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        return size_bytes


def divided(
    memory: Memory, schema: pa.Schema, rows: Sequence[Row], terms: tuple[BucketKey, ...], keys: Keys
) -> StoredTable:
    """Store rows by bucket; buckets without rows have no chunk."""
    whole = pa.RecordBatch.from_pylist(list(rows), schema)
    numbers = [
        hashing.bucket_of(whole.column(term.column), term.count).to_pylist() for term in terms
    ]
    parts: dict[str, list[Row]] = {}
    for place, row in enumerate(rows):
        parts.setdefault(naming.name_of([each[place] for each in numbers]), []).append(row)
    chunks = [
        memory.add(pa.RecordBatch.from_pylist(part, schema), name) for name, part in parts.items()
    ]
    place_ = ResultPlace("file", "nowhere")
    return StoredTable(schema, place_, "t", tuple(chunks), keys, PartitionBy(terms))


def ordered(rows: Sequence[Row]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def read(version: StoredVersion, memory: Memory, names: tuple[str, ...], log: Log) -> list[Row]:
    table = version.at(log).share(names, memory)
    assert not isinstance(table, MissingChunks)
    context = SessionContext()
    context.catalog().schema().register_table("t", table)
    found: list[Row] = context.table("t").to_pylist()
    return found


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_every_way_to_read_finds_the_rows_of_each_position(data: st.DataObject) -> None:
    types = data.draw(st.tuples(*[st.sampled_from(list(VALUES))] * 2))
    schema = pa.schema(
        [pa.field("a", types[0], False), pa.field("b", types[1], False), ("v", pa.int64())]
    )
    one = {"a": st.sampled_from(VALUES[types[0]]), "b": st.sampled_from(VALUES[types[1]])}
    row = st.fixed_dictionaries({**one, "v": st.none() | st.integers(0, 3)})
    counts = [BucketKey(count, name) for name in "ab" for count in (1, 2, 3)]
    terms = tuple(data.draw(st.lists(st.sampled_from(counts), min_size=1, max_size=2,
                                     unique_by=lambda term: term.column)))  # fmt: skip
    keys = Keys(("a", "b"), "refuse", (LookupColumns(("v",)), LookupColumns(("b",))))
    base = data.draw(st.lists(row, max_size=8, unique_by=lambda each: (each["a"], each["b"])))
    memory = Memory()
    version = StoredVersion(T, divided(memory, schema, base, terms, keys), 2)

    model = {(each["a"], each["b"]): each for each in base}
    positions, log = [list(model.values())], list[LogEntry]()
    for _ in range(data.draw(st.integers(0, 3))):
        changes: list[Change] = []
        for change in data.draw(st.lists(row, max_size=3)):
            op = data.draw(st.sampled_from([Op.UPSERT, Op.DELETE]))
            changes.append((op, change))
            if op is Op.UPSERT:
                model[change["a"], change["b"]] = change
            else:
                model.pop((change["a"], change["b"]), None)
        log.append(LogEntry(memory.add(changed(schema, changes))))
        positions.append(list(model.values()))

    for count in data.draw(st.permutations(range(len(positions)))):
        rows, upto = positions[count], tuple(log[:count])
        assert ordered(read(version, memory, version.names, upto)) == ordered(rows)
        some = tuple(data.draw(st.lists(st.sampled_from(version.names), unique=True)))
        others = tuple(name for name in version.names if name not in some)
        apart = [*read(version, memory, some, upto), *read(version, memory, others, upto)]
        assert ordered(apart) == ordered(rows)
        assert version.at(upto).load(some, memory) + version.at(upto).load(others, memory) == len(
            rows
        )
        sought = data.draw(row)
        for columns in (("a", "b"), ("b", "a"), ("b",), ("v",)):
            values = [sought[name] for name in columns]
            found = version.rows_of(columns, values, memory, upto).to_pylist()
            wanted = [
                each for each in rows
                if None not in values and [each[name] for name in columns] == values
            ]  # fmt: skip
            assert ordered(found) == ordered(wanted), (columns, values)


def small(keys: Keys | None = None) -> tuple[Memory, StoredVersion, pa.Schema]:
    memory, schema = Memory(), pa.schema([("k", pa.int64())])
    infos = [memory.add(pa.record_batch({"k": [number]}, schema=schema)) for number in range(3)]
    table = StoredTable(schema, ResultPlace("file", "nowhere"), "t", tuple(infos), keys)
    return memory, StoredVersion(T, table, 1), schema


def test_units_are_the_same_objects_until_their_share_is_let_go() -> None:
    memory, version, _ = small()
    view = version.at(())
    for names in (version.names, version.names[:2]):
        first = view.units(names, memory)
        assert [unit.batch.column(0).to_pylist() for unit in first] == [
            [number] for number in range(len(names))
        ]
        assert view.units(names, memory) is first
    some = view.units(version.names[:2], memory)
    other = view.units(version.names[1:], memory)
    assert [unit.batch.column(0).to_pylist() for unit in other] == [[1], [2]]
    view.let_go(math.inf)  # all but what was read last
    assert view.units(version.names[1:], memory) is other
    assert view.units(version.names[:2], memory) is not some


@pytest.mark.parametrize("keys", [None, Keys(("k",), "refuse")])
def test_a_share_of_no_piece_has_no_rows(keys: Keys | None) -> None:
    memory, version, _ = small(keys)
    assert read(version, memory, (), ()) == []
    assert version.at(()).load((), memory) == 0
    assert len(version.at(()).units((), memory)) == 0


@pytest.mark.parametrize("keys", [None, Keys(("k",), "refuse")])
def test_pieces_that_are_not_there_are_refused(keys: Keys | None) -> None:
    memory, version, _ = small(keys)
    view = version.at(())
    for names in (("9",), (*version.names, "9")):
        with pytest.raises(ExecutionError, match="with chunks that its version does not have"):
            view.share(names, memory)
        with pytest.raises(ExecutionError, match="dataset 't'"):
            view.load(names, memory)
        with pytest.raises(ExecutionError, match="dataset 't'"):
            view.units(names, memory)


@pytest.mark.parametrize("keys", [None, Keys(("k",), "refuse")])
def test_what_is_away_is_named_and_read_once_it_is_there(keys: Keys | None) -> None:
    memory, version, _ = small(keys)
    first, second, third = version.spec.chunks
    memory.away = {first, third}
    view = version.at(())
    found = view.share(version.names, memory)
    assert isinstance(found, MissingChunks)
    assert (found.table, set(found.chunks)) == (T, {first, third})
    for read_ in (view.load, view.units):
        with pytest.raises(ChunksAwayError, match="rows of dataset 't' are not in memory") as away:
            read_(version.names, memory)
        assert set(away.value.wanted[0].chunks) == {first, third}
    assert len(read(version, memory, version.names[1:2], ())) == 1
    memory.away = set()
    assert len(read(version, memory, version.names, ())) == 3
    # Rows that were read stay with their table when the chunks go.
    memory.away = set(version.spec.chunks)
    assert len(read(version, memory, version.names, ())) == 3
    assert second.row_count == 1


def test_rows_that_all_were_deleted_are_a_table_of_no_rows() -> None:
    memory, version, schema = small(Keys(("k",), "refuse"))
    gone = [(Op.DELETE, {"k": number}) for number in range(3)]
    log = (LogEntry(memory.add(changed(schema, gone))),)
    assert read(version, memory, version.names, log) == []
    assert version.at(log).load(version.names, memory) == 0
    assert not version.at(log).units(version.names, memory) or all(
        not any(unit.seen or b"\x01") for unit in version.at(log).units(version.names, memory)
    )
    assert len(read(version, memory, version.names, ())) == 3


def test_a_table_that_is_filled_twice_has_its_rows_once() -> None:
    memory, version, _ = small()
    view = version.at(())
    assert view.fill(memory) is None
    assert view.fill(memory) is None
    assert view.is_held
    assert len(read(version, memory, version.names, ())) == 3


def test_shares_are_let_go_but_for_the_last_and_those_that_stand_by() -> None:
    memory, version, _ = small()
    view = version.at(())
    one, two, three = ((name,) for name in version.names)
    made: dict[tuple[str, ...], StoredShare] = {}
    for names in (one, two, three):
        found = view.part(names, memory)
        assert not isinstance(found, MissingChunks)
        made[names] = found
    version.content.standing = frozenset({one})
    last = max(made, key=lambda names: made[names].used_s)
    view.let_go(float("inf"))
    for share, part in made.items():
        is_kept = share in (one, last)
        assert (view.part(share, memory) is part) == is_kept
