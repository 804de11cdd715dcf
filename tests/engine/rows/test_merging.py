"""The rows of a partition at each position of its log, compared with plain dictionaries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.changes import Op, log_schema
from caraway_core.errors import ExecutionError, OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.tables import Keys, LookupColumns, ResultPlace, StoredTable
from caraway_engine.rows import choosing, entries, keyed
from caraway_engine.rows.merging import Merged
from tests.kit.changes import Change, changed, offset

T = TableName("t")
SCHEMA = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64()), ("s", pa.string())])
KEYS = Keys(("k",), "refuse", (LookupColumns(("v",)),))
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
    found = of.rows_of((column,), keyed.sought([array]), position)
    return ordered(row for each in found for row in each.to_pylist())


def test_batches_of_one_entry_are_read_from_the_same_position_on() -> None:
    of = spec(keys=None)
    merging = merged([{"k": 1, "v": 1, "s": ""}], of)
    rows = [{"k": n, "v": n % 7, "s": "x"} for n in range(entries.LEAST_ROWS)]
    batch = changed(SCHEMA, [(Op.INSERT, row) for row in rows])
    apply(merging, [(Op.INSERT, {"k": 2, "v": 2, "s": ""})], of)
    merging.apply(entries.read(T, of, [batch, batch]), None)
    apply(merging, [(Op.TRUNCATE, {}), (Op.INSERT, {"k": 3, "v": 3, "s": ""})], of)
    assert [len(shown(merging, position)) for position in range(4)] == [
        1, 2, 2 + 2 * len(rows), 1
    ]  # fmt: skip
    assert (
        shown(merging, 2)[:3] == ordered([{"k": 0, "v": 0, "s": "x"}] * 2 + shown(merging, 1))[:3]
    )


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
            # The rows read meanwhile are kept, and must not be shown for another position.
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
    with pytest.raises(ExecutionError, match="column types differ"):
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


TYPED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-1, 0, 1, 2]),
    (pa.uint64(), [0, 1, 2**64 - 1, 2**63]),
    (pa.bool_(), [True, False]),
    (pa.float32(), [0.5, -0.5, float("inf"), 0.0]),
    (pa.string(), ["", "a", "ä", "a text that is longer than views are"]),
    (pa.large_string(), ["", "a", "ä", "b"]),
    (pa.string_view(), ["", "a", "ä", "a text that is longer than views are"]),
    (pa.binary(), [b"", b"\x00", b"\x00\x00", b"a"]),
    (pa.binary_view(), [b"", b"\x00", b"\x00\x00", b"a"]),
    (pa.binary(2), [b"ab", b"cd", b"\x00\x00", b"ba"]),
    (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("-1.50"), Decimal("1.50"), Decimal("2.25")]),
    (pa.decimal256(50, 1), [Decimal("0.0"), Decimal("-1.5"), Decimal(10**48), Decimal("2.5")]),
    (pa.date32(), [-1, 0, 1, 19000]),
    (pa.date64(), [-86_400_000, 0, 86_400_000, 19000 * 86_400_000]),
    (pa.time32("ms"), [0, 1, 1000, 86_399_999]),
    (pa.time64("ns"), [0, 1, 999, 1000]),
    (pa.timestamp("s"), [-1, 0, 1, 2]),
    # Within one microsecond, so that their hashes are the same.
    (pa.timestamp("ns"), [0, 1, 2, 999]),
    (pa.timestamp("us", "Europe/Berlin"), [-1, 0, 1, 2]),
    (pa.duration("ns"), [0, 1, 2, 999]),
    (pa.dictionary(pa.int8(), pa.string()), ["", "a", "ä", "b"]),
]


@pytest.mark.parametrize(("kind", "values"), TYPED, ids=str)
@pytest.mark.parametrize("is_alone", [True, False])
def test_keys_may_be_of_any_type(kind: pa.DataType, values: list[Any], is_alone: bool) -> None:
    schema = pa.schema([("k", kind), ("n", pa.int64()), ("v", pa.int64())])
    keyed_by = spec(schema, Keys(("k",) if is_alone else ("n", "k")))
    held = pa.array(values, kind)
    *base, new = range(len(values))

    def rows(numbers: Sequence[int], v: int) -> pa.RecordBatch:
        column = choosing.take(held, pa.array(numbers, pa.int64()))
        fixed = pa.repeat(pa.scalar(7, pa.int64()), len(numbers))
        return pa.RecordBatch.from_arrays(
            [column, fixed, pa.repeat(pa.scalar(v, pa.int64()), len(numbers))], schema=schema
        )

    def entry(op: Op, numbers: Sequence[int], v: int) -> entries.EntryChanges:
        batch = rows(numbers, v)
        ops = pa.array([int(op)] * len(numbers), pa.int8())
        none = pa.nulls(len(numbers), pa.binary())
        logged = pa.RecordBatch.from_arrays([*batch.columns, ops, none], schema=log_schema(schema))
        return entries.read(T, keyed_by, [logged])

    subject = Merged(T, keyed_by, [(rows(base, 0), None)], lambda size: size)
    subject.apply(entry(Op.UPSERT, [base[0], new], 1), None)
    subject.apply(entry(Op.DELETE, [base[0]], 2), None)
    subject.apply(entry(Op.KEEP, [*range(len(values))], 3), None)

    def found(number: int, position: int) -> list[int]:
        arrays = [held.slice(number, 1)]
        if not is_alone:
            arrays.insert(0, pa.array([7], pa.int64()))
        columns = keyed_by.keys.primary if keyed_by.keys else ()
        hits = subject.rows_of(columns, keyed.sought(arrays), position)
        assert all(hit.column("k").equals(held.slice(number, 1)) for hit in hits)
        return [hit.column("v")[0].as_py() for hit in hits]

    assert [subject.count(position) for position in range(4)] == [
        len(base), len(base) + 1, len(base), len(base) + 1
    ]  # fmt: skip
    for number in range(len(values)):
        before = [] if number == new else [0]
        changed_to = [1] if number in (base[0], new) else before
        assert found(number, 0) == before
        assert found(number, 1) == changed_to
        assert found(number, 2) == ([] if number == base[0] else changed_to)
        assert found(number, 3) == ([3] if number == base[0] else changed_to)


def test_numbers_that_are_equal_are_one_key() -> None:
    schema = pa.schema([("k", pa.float64())])
    of = spec(schema, Keys(("k",), "first"))
    nan = float("nan")
    batch = pa.RecordBatch.from_arrays([pa.array([0.0, -0.0, nan, -nan, 1.0])], schema=schema)

    assert Merged(T, of, [(batch, None)], lambda size: size).count(0) == 3


def test_columns_that_cannot_be_keys_are_named() -> None:
    schema = pa.schema([("k", pa.list_(pa.int64()))])
    batch = pa.RecordBatch.from_arrays([pa.array([[1]])], schema=schema)
    with pytest.raises(ExecutionError, match=r"'k' of type list<.*> cannot be a key"):
        Merged(T, spec(schema, Keys(("k",))), [(batch, None)], lambda size: size)
