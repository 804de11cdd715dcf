"""Rows of partitions merged with a log, after any order of reads, releases and replacements."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from caraway_core.changes import Log, LogEntry, Op
from caraway_core.errors import ExecutionError, OutOfMemoryQueryError
from caraway_core.ids import TableName
from caraway_core.partitions import hashing, naming
from caraway_core.partitions.keys import BucketKey, ByColumn, PartitionBy, Term
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, LookupColumns, ResultPlace, StoredTable
from caraway_engine.rows import lineages
from caraway_engine.rows.held import Chunk
from caraway_engine.rows.lineages import Lineage
from caraway_engine.rows.merging import Merged
from caraway_engine.rows.uniqueness import DuplicateError
from tests.kit.changes import Change, changed

T = TableName("t")
SCHEMA = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())])
Row = dict[str, Any]


@dataclass
class Shelf:
    """Chunks in memory. Those in `away` are known but not here; with `is_full` none are built."""

    chunks: dict[ChunkInfo, Chunk] = field(default_factory=dict)
    away: set[ChunkInfo] = field(default_factory=set)
    is_full: bool = False

    def put(self, batch: pa.RecordBatch, key: str = "t", partition: str = "") -> ChunkInfo:
        number = len(self.chunks)
        digest = sha256(str(number).encode()).hexdigest()
        info = ChunkInfo(number, batch.num_rows, batch.nbytes, digest, partition, key)
        self.chunks[info] = Chunk((batch,))
        return info

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None if chunk in self.away else self.chunks[chunk]

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        if self.is_full:
            raise OutOfMemoryQueryError(f"dataset '{table}' does not fit")
        return object()


def spec(*terms: Term, keys: Keys | None = Keys(("k",), "refuse")) -> StoredTable:  # noqa: B008
    return StoredTable(SCHEMA, ResultPlace("file", "nowhere"), "t", (), keys, PartitionBy(terms))


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), SCHEMA)


def in_buckets(shelf: Shelf, rows: Sequence[Row], count: int) -> dict[str, list[ChunkInfo]]:
    """Every bucket as two chunks, of which one may be empty."""
    pieces: dict[str, list[ChunkInfo]] = {}
    numbers = hashing.bucket_of(pa.array([row["k"] for row in rows], pa.int64()), count)
    for number in range(count):
        name = naming.name_of([number])
        own = [row for row, at in zip(rows, numbers.to_pylist(), strict=True) if at == number]
        half = len(own) // 2
        pieces[name] = [shelf.put(batch(part), partition=name) for part in (own[:half], own[half:])]
    return pieces


def entry(shelf: Shelf, *changes: Change) -> LogEntry:
    return LogEntry(shelf.put(changed(SCHEMA, changes), "t-log"))


def brought(
    of: Lineage, shelf: Shelf, names: tuple[str, ...], count: int, **more: Any
) -> list[Merged]:
    """Bring partitions as a view does: until no part of the work is left."""
    for _ in range(1000):
        found = of.bring(names, count, shelf, more.get("now_s", 1.0), is_scan=True)
        if found is None:
            continue
        merged, missing = found
        if not missing:
            return merged
        assert not merged
        assert set(missing) <= shelf.away
        shelf.away -= set(missing)
    raise AssertionError("the work has no end")


def shown(merged: Sequence[Merged], position: int) -> list[Row]:
    rows = [
        row for each in merged for seen in each.seen(position) for row in seen.batch.to_pylist()
    ]
    assert sum(each.count(position) for each in merged) == len(rows)
    return sorted(rows, key=lambda row: (row["k"], row["v"]))


CHANGES = st.lists(
    st.tuples(
        st.sampled_from([Op.UPSERT, Op.UPSERT, Op.DELETE, Op.KEEP]),
        st.fixed_dictionaries({"k": st.integers(0, 9), "v": st.integers(0, 5)}),
    ),
    max_size=5,
)


def applied(rows: dict[int, int], changes: Sequence[Any]) -> dict[int, int]:
    found = dict(rows)
    for op, row in changes:
        if op is Op.UPSERT:
            found[row["k"]] = row["v"]
        elif op is Op.KEEP:
            found.setdefault(row["k"], row["v"])
        else:
            found.pop(row["k"], None)
    return found


class Readers(RuleBasedStateMachine):
    """Reads at any position, while the log grows, chunks go away and memory is full at times."""

    COUNT = 3

    @initialize(keys=st.sets(st.integers(0, 9)), slice_rows=st.sampled_from([1, 3, 1000]))
    def start(self, keys: set[int], slice_rows: int) -> None:
        self.slice_rows = lineages.SLICE_ROWS
        lineages.SLICE_ROWS = slice_rows
        self.shelf = Shelf()
        base = {key: 100 + key for key in keys}
        rows = [{"k": key, "v": value} for key, value in base.items()]
        pieces = in_buckets(self.shelf, rows, self.COUNT)
        self.names = tuple(pieces)
        self.subject = Lineage(T, spec(BucketKey(self.COUNT, "k")), pieces)
        self.log: Log = ()
        self.model = [base]
        self.most_read = 0
        self.now_s = 0.0

    def teardown(self) -> None:
        if hasattr(self, "slice_rows"):
            lineages.SLICE_ROWS = self.slice_rows

    @rule(changes=CHANGES)
    def grow(self, changes: list[Any]) -> None:
        self.log = (*self.log, entry(self.shelf, *changes))
        self.model.append(applied(self.model[-1], changes))
        assert self.subject.reach(self.log)

    @precondition(lambda self: len(self.log) > self.most_read)
    @rule(changes=CHANGES, data=st.data())
    def replace(self, changes: list[Any], data: st.DataObject) -> None:
        """Entries that were not read may be replaced."""
        kept = data.draw(st.integers(self.most_read, len(self.log) - 1))
        self.log = (*self.log[:kept], entry(self.shelf, *changes))
        self.model = [*self.model[: kept + 1], applied(self.model[kept], changes)]
        assert self.subject.reach(self.log)

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, len(self.log)))
        names = tuple(data.draw(st.lists(st.sampled_from(self.names), unique=True)))
        self.now_s += 1
        merged = brought(self.subject, self.shelf, names, position, now_s=self.now_s)
        if names:
            self.most_read = max(self.most_read, position)
        numbers = {self.names.index(name) for name in names}
        model = self.model[position]
        at = hashing.bucket_of(pa.array(list(model), pa.int64()), self.COUNT).to_pylist()
        wanted = [
            {"k": key, "v": model[key]}
            for key, number in zip(model, at, strict=True)
            if number in numbers
        ]
        assert shown(merged, position) == sorted(wanted, key=lambda row: row["k"])
        again = self.subject.at_hand(names, position, self.now_s)
        assert again == merged

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        """Chunks leave memory."""
        self.shelf.away |= set(data.draw(st.lists(st.sampled_from(list(self.shelf.chunks)))))

    @rule()
    def fill(self) -> None:
        """An entry that does not fit changes nothing."""
        self.shelf.is_full = True
        try:
            self.read_nothing_else()
        finally:
            self.shelf.is_full = False

    def read_nothing_else(self) -> None:
        for name in self.names:
            try:
                brought(self.subject, self.shelf, (name,), len(self.log))
            except OutOfMemoryQueryError as exc:
                assert "'t' does not fit" in str(exc)
        # Entries before the one that does not fit were applied.
        self.most_read = len(self.log)

    @rule(before_s=st.integers(0, 30), standing=st.sets(st.integers(0, 2)))
    def release(self, before_s: int, standing: set[int]) -> None:
        was_held = self.subject.is_held
        self.subject.let_go(before_s, {self.names[number] for number in standing})
        # The last read rows stay.
        assert self.subject.is_held == was_held

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, len(self.log)))
        assert self.subject.is_of(self.log[:position])
        assert self.subject.reach(self.log[:position])

    @precondition(lambda self: self.most_read > 0)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        """A log with another entry in a place that was read is of another lineage."""
        place = data.draw(st.integers(0, self.most_read - 1))
        other = [*self.log]
        other[place] = entry(self.shelf)
        held = max((each.applied for each in self.subject._merged.values()), default=0)
        if place < held:
            assert not self.subject.reach(tuple(other))
        assert not self.subject.is_of(tuple(other[: place + 1])) or place >= held

    @invariant()
    def knows_its_log(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.is_of(())
            assert self.subject.reach(self.log)


TestReaders = Readers.TestCase
TestReaders.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def simple(
    shelf: Shelf,
    *terms: Term,
    keys: Keys | None = Keys(("k",), "refuse"),  # noqa: B008
) -> Lineage:
    pieces = {
        "a": [shelf.put(batch([{"k": 1, "v": 1}]), partition="a")],
        "b": [shelf.put(batch([{"k": 2, "v": 2}]), partition="b")],
    }
    return Lineage(T, spec(*terms, keys=keys), pieces)


def test_without_changes_any_share_can_be_read() -> None:
    shelf = Shelf()
    subject = simple(shelf)
    assert shown(brought(subject, shelf, ("b",), 0), 0) == [{"k": 2, "v": 2}]
    assert shown(brought(subject, shelf, ("b", "a"), 0), 0) == [{"k": 1, "v": 1}, {"k": 2, "v": 2}]
    assert brought(subject, shelf, (), 0) in ([], brought(subject, shelf, (), 0))


def test_a_share_of_what_cannot_be_merged_alone_is_refused() -> None:
    shelf = Shelf()
    subject = simple(shelf)
    assert subject.reach((entry(shelf, (Op.UPSERT, {"k": 2, "v": 7})),))
    for names in (("a",), ("b", "a"), ()):
        with pytest.raises(ExecutionError, match="a share of dataset 't', which has changes"):
            subject.bring(names, 1, shelf, 1.0)
    merged = brought(subject, shelf, ("a", "b"), 1)
    assert shown(merged, 1) == [{"k": 1, "v": 1}, {"k": 2, "v": 7}]
    assert shown(merged, 0) == [{"k": 1, "v": 1}, {"k": 2, "v": 2}]


@pytest.mark.parametrize("names", [("c",), ("a", "c"), ("",)])
def test_a_partition_that_is_not_there_is_refused(names: tuple[str, ...]) -> None:
    shelf = Shelf()
    subject = simple(shelf)
    with pytest.raises(ExecutionError, match="with chunks that its version does not have"):
        subject.bring(names, 0, shelf, 1.0)
    assert not subject.is_held


@pytest.mark.parametrize(
    ("terms", "keys", "alone"),
    [
        ((), Keys(("k",), "refuse"), False),
        ((BucketKey(2, "k"),), Keys(("k",), "refuse"), True),
        ((BucketKey(2, "v"),), Keys(("k",), "refuse"), False),
        ((BucketKey(2, "v"),), None, True),
        ((ByColumn("k"),), Keys(("k",), "refuse"), True),
        ((ByColumn("v"),), Keys(("k",), "refuse"), False),
        ((ByColumn("v"),), None, False),
        ((BucketKey(2, "k"), ByColumn("v")), Keys(("k",), "refuse"), False),
        ((BucketKey(2, "k"), ByColumn("v")), Keys(("k", "v"), "refuse"), True),
    ],
)
def test_partitions_are_merged_alone_where_they_have_all_rows_of_a_key(
    terms: tuple[Term, ...], keys: Keys | None, alone: bool
) -> None:
    shelf = Shelf()
    subject = simple(shelf, *terms, keys=keys)
    assert len(brought(subject, shelf, ("a", "b"), 0)) == (2 if alone else 1)


def test_chunks_of_the_log_are_missing_only_for_what_is_behind() -> None:
    shelf = Shelf()
    subject = simple(shelf)
    log = (
        entry(shelf, (Op.UPSERT, {"k": 1, "v": 5})),
        entry(shelf, (Op.UPSERT, {"k": 2, "v": 6})),
    )
    assert subject.reach(log)
    brought(subject, shelf, ("a", "b"), 1)
    shelf.away = set(shelf.chunks)
    found = subject.bring(("a", "b"), 2, shelf, 1.0)
    assert found == ([], (log[1].chunk,))
    assert brought(subject, shelf, ("a", "b"), 1) != []
    assert subject.at_hand(("a", "b"), 2, 1.0) is None


def test_a_refused_entry_can_be_replaced() -> None:
    shelf = Shelf()
    keys = Keys(("k",), "refuse", (LookupColumns(("v",), is_unique=True),))
    subject = simple(shelf, keys=keys)
    good = entry(shelf, (Op.UPSERT, {"k": 1, "v": 9}))
    assert subject.reach((good, entry(shelf, (Op.UPSERT, {"k": 3, "v": 2}))))
    brought(subject, shelf, ("a", "b"), 1)
    with pytest.raises(DuplicateError):
        brought(subject, shelf, ("a", "b"), 2)
    before = brought(subject, shelf, ("a", "b"), 1)
    assert shown(before, 1) == [{"k": 1, "v": 9}, {"k": 2, "v": 2}]
    assert subject.reach((good, entry(shelf, (Op.UPSERT, {"k": 3, "v": 3}))))
    after = brought(subject, shelf, ("a", "b"), 2)
    assert shown(after, 2) == [{"k": 1, "v": 9}, {"k": 2, "v": 2}, {"k": 3, "v": 3}]


def test_what_was_read_last_and_what_stands_is_not_released() -> None:
    shelf = Shelf()
    subject = simple(shelf, BucketKey(2, "k"))
    brought(subject, shelf, ("a",), 0, now_s=1.0)
    brought(subject, shelf, ("b",), 0, now_s=5.0)
    subject.let_go(100.0, {"a"})
    assert subject.at_hand(("a", "b"), 0, 5.0) is not None
    brought(subject, shelf, ("b",), 0, now_s=6.0)
    subject.let_go(100.0)
    assert subject.at_hand(("a",), 0, 6.0) is None
    assert subject.at_hand(("b",), 0, 6.0) is not None
    subject.let_go(0.0)
    assert subject.is_held
