"""What a partition shows at each position of its log, held against plain dictionaries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.changes import Op
from caraway_core.errors import ExecutionError, OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.tables import Keys, Lookup, ResultPlace, StoredTable
from caraway_engine import entries
from caraway_engine.merging import Merged
from tests.kit.changes import Change, changed, offset

T = TableName("t")
SCHEMA = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64()), ("s", pa.string())])
KEYS = Keys(("k",), "refuse", (Lookup(("v",)),))
Row = dict[str, Any]


def spec(schema: pa.Schema = SCHEMA, keys: Keys | None = KEYS) -> StoredTable:
    return StoredTable(schema, ResultPlace("file", "nowhere"), "t", (), keys)


def merged(rows: Sequence[Row], of: StoredTable | None = None, size: int = 3) -> Merged:
    of = of or spec()
    table = pa.Table.from_pylist(list(rows), of.schema)
    base = [(each, None) for each in table.to_batches(max_chunksize=size)]
    return Merged(T, of, base, lambda size_bytes: size_bytes)


def apply(to: Merged, changes: Sequence[Change], of: StoredTable | None = None) -> None:
    of = of or spec()
    to.apply(entries.read(T, of, [changed(of.schema, changes)]), None)


def ordered(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["k"], str(row["v"]), str(row["s"])))


def shown(of: Merged, position: int) -> list[Row]:
    rows = [row for seen in of.seen(position) for row in seen.batch.to_pylist()]
    assert of.count(position) == len(rows)
    return ordered(rows)


def looked_up(of: Merged, column: str, value: int, position: int) -> list[Row]:
    array = pa.array([value], pa.int64())
    found = of.rows_of((column,), [array], position)
    return ordered(row for each in found for row in each.to_pylist())


@dataclass
class Model:
    """One row for each key, and the last offset; each change as the rules in words have it."""

    rows: dict[int, Row]
    offsets: dict[int, bytes | None] = field(default_factory=dict)
    floors: dict[bytes, bytes] = field(default_factory=dict)

    def apply(self, op: Op, row: Row, at: bytes | None) -> None:
        if op is Op.TRUNCATE:
            self._truncate(at)
            return
        key = row["k"]
        if at is not None:
            known = self.offsets.get(key)
            if known is not None and known[:8] == at[:8] and at < known:
                return
            if at < self.floors.get(at[:8], b""):
                return
        if op is Op.KEEP and key in self.rows:
            return
        self.offsets[key] = at
        if op in (Op.UPSERT, Op.KEEP):
            self.rows[key] = row
        elif op is Op.DELETE:
            self.rows.pop(key, None)

    def _truncate(self, at: bytes | None) -> None:
        if at is not None:
            if at < self.floors.get(at[:8], b""):
                return
            self.floors[at[:8]] = at
        for key in list(self.rows):
            known = self.offsets.get(key)
            is_later = at is not None and known is not None and known[:8] == at[:8] and known > at
            if not is_later:
                del self.rows[key]


KEY = st.integers(0, 6)
ROW = st.fixed_dictionaries(
    {"k": KEY, "v": st.none() | st.integers(0, 3), "s": st.none() | st.sampled_from(["a", "b"])}
)
AT = st.none() | st.builds(offset, st.integers(0, 9), st.sampled_from(["one", "two"]))
CHANGE: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.sampled_from([Op.UPSERT, Op.KEEP]), ROW, AT),
    st.tuples(st.sampled_from([Op.DELETE, Op.SEEN, Op.GONE]), ROW, AT),
    st.tuples(st.just(Op.TRUNCATE), st.just({}), AT),
    st.tuples(st.just(Op.UPSERT), ROW, AT),
)
ENTRIES = st.lists(st.lists(CHANGE, max_size=6), max_size=50)


@settings(max_examples=150, deadline=None)
@given(st.lists(ROW, max_size=12, unique_by=lambda row: row["k"]), ENTRIES, st.data())
def test_every_position_is_what_a_dictionary_holds(
    base: list[Row], log: list[list[Change]], data: st.DataObject
) -> None:
    subject, model = merged(base), Model({row["k"]: row for row in base})
    wanted = [list(model.rows.values())]
    for changes in log:
        apply(subject, changes)
        for op, row, *at in changes:
            model.apply(op, row, at[0] if at else None)
        wanted.append(list(model.rows.values()))
        if data.draw(st.booleans()):
            # What is read meanwhile is kept, and must not be shown for another position.
            shown(subject, data.draw(st.integers(0, len(wanted) - 1)))

    for position in data.draw(st.permutations(range(len(wanted)))):
        rows = ordered(wanted[position])
        assert shown(subject, position) == rows
        key = data.draw(KEY)
        assert looked_up(subject, "k", key, position) == [r for r in rows if r["k"] == key]
        value = data.draw(st.integers(0, 3))
        assert looked_up(subject, "v", value, position) == [r for r in rows if r["v"] == value]


def test_rows_without_a_key_are_only_added() -> None:
    keyless = spec(keys=None)
    subject = merged([{"k": 1, "v": 1, "s": "a"}], keyless)
    row = {"k": 1, "v": 2, "s": None}

    apply(subject, [(Op.INSERT, row), (Op.INSERT, row)], keyless)
    apply(subject, [(Op.INSERT, row), (Op.TRUNCATE, {}), (Op.INSERT, row)], keyless)

    assert [len(shown(subject, position)) for position in range(3)] == [1, 3, 1]


def test_many_small_entries_become_few_pieces() -> None:
    subject = merged([{"k": -1, "v": 0, "s": "a"}])
    for number in range(200):
        apply(subject, [(Op.UPSERT, {"k": number % 50, "v": number, "s": None})])

    assert len(subject._log) < 40
    for position in (200, 3, 120, 60, 199):
        wanted = {each % 50: each for each in range(position)} | {-1: 0}
        assert {row["k"]: row["v"] for row in shown(subject, position)} == wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((Op.UPSERT, {"v": 1}), "'k' of a row is NULL"),
        ((Op.DELETE, {"v": 1}), "'k' of its primary key is NULL"),
    ],
)
def test_changes_that_lack_what_they_need_are_refused(change: Change, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        apply(merged([]), [change])


def test_changes_of_other_columns_are_refused() -> None:
    other = pa.schema([("k", pa.string())])
    with pytest.raises(ExecutionError, match="other types"):
        entries.read(T, spec(), [changed(other, [(Op.DELETE, {"k": "a"})])])


def test_an_entry_that_does_not_fit_changes_nothing() -> None:
    room = [10_000]

    def hold(size_bytes: int) -> object:
        if size_bytes > room[0]:
            raise OutOfMemoryQueryError("no room")
        return object()

    rows = pa.Table.from_pylist([{"k": 1, "v": 1, "s": "a"}], SCHEMA)
    subject = Merged(T, spec(), [(rows.to_batches()[0], None)], hold)
    room[0] = 100
    row = {"k": 1, "v": 2, "s": "b"}
    with pytest.raises(OutOfMemoryQueryError):
        apply(subject, [(Op.UPSERT, row)])
    assert shown(subject, 0) == [{"k": 1, "v": 1, "s": "a"}]

    room[0] = 10_000
    apply(subject, [(Op.UPSERT, row)])
    assert shown(subject, 1) == [row]
