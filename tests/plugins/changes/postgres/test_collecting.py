"""Changes of the log give the rows that the table has, whatever the log leaves out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.changes import OFFSET, OP, Op
from caraway_core.errors import DatasetError
from caraway_plugins.changes.postgres.catalog import Table, TableColumn
from caraway_plugins.changes.postgres.collecting import Collector, Key
from caraway_plugins.changes.postgres.connecting import ReplicatedTable
from caraway_plugins.changes.postgres.pgoutput import UNCHANGED, Relation, RelationColumn, Row

SOURCE = b"8 bytes!"
NAMES = ("k", "big", "n")
OIDS = {"k": 25, "big": 17, "n": 23, "more": 16}
Values = tuple[str | None, ...]


def _table(*, whole: bool = False, takes_all: bool = False) -> Table:
    return Table(
        ReplicatedTable("public", "t", "slot", "publication", {}),
        1,
        tuple(TableColumn(name, OIDS[name], -1, pa.field(name, pa.string())) for name in NAMES),
        ("k",),
        has_whole_old_rows=whole,
        takes_all=takes_all,
    )


def _relation(*names: str) -> Relation:
    return Relation(1, "public", "t", tuple(RelationColumn(each, OIDS[each], -1) for each in names))


@dataclass
class _Database:
    """A table as PostgreSQL keeps and logs it: a large value that did not change is left out."""

    whole: bool
    order: tuple[str, ...]
    rows: dict[str, Values] = field(default_factory=dict)

    def ordered(self, row: Sequence[object]) -> Row:
        """Give a row with the columns in the order of the log."""
        by_name = dict(zip(NAMES, row, strict=True))
        return tuple(by_name[name] for name in self.order)  # type: ignore[misc] # texts or marks

    def run(self, step: tuple[str, str, str, str | None], collector: Collector) -> None:
        kind, key, other, value = step
        if kind == "truncate":
            self.rows.clear()
            collector.truncate()
        elif kind == "delete" and key in self.rows:
            old = self.rows.pop(key)
            collector.delete(self.ordered(old if self.whole else (key, None, None)))
        elif kind == "upsert" and key not in self.rows:
            self.rows[key] = (key, value, other)
            collector.insert(self.ordered(self.rows[key]))
        elif kind in ("upsert", "move") and key in self.rows:
            target = other if kind == "move" and other not in self.rows else key
            old = self.rows.pop(key)
            new = (target, old[1] if value is None else value, other)
            self.rows[target] = new
            logged = (target, UNCHANGED if new[1] == old[1] and old[1] else new[1], other)
            before = None if target == key else self.ordered((key, None, None))
            if self.whole:
                before = self.ordered(old)
            collector.update(before, self.ordered(logged))

    def fetch(self, keys: Sequence[Key]) -> Mapping[Key, Values]:
        return {key: self.rows[key[0]] for key in keys if key[0] in self.rows}


def _applied(rows: dict[str, Values], changes: pa.Table) -> None:
    for change in changes.to_pylist():
        values = tuple(change[name] for name in NAMES)
        match change[OP]:
            case Op.TRUNCATE:
                rows.clear()
            case Op.DELETE:
                rows.pop(values[0], None)
            case Op.UPSERT:
                rows[values[0]] = values


STEPS = st.tuples(
    st.sampled_from(["upsert"] * 4 + ["move", "move", "delete", "truncate", "take"]),
    st.sampled_from("abc"),
    st.sampled_from("abcd"),
    st.none() | st.sampled_from(["large 1", "large 2"]),
)


@settings(max_examples=80)
@given(st.booleans(), st.permutations(NAMES), st.lists(STEPS, max_size=30))
def test_the_changes_make_the_table_again(
    whole: bool, order: list[str], steps: list[tuple[str, str, str, str | None]]
) -> None:
    collector = Collector(_table(whole=whole), SOURCE)
    collector.follow(_relation(*order))
    database = _Database(whole, tuple(order))
    made: dict[str, Values] = {}
    offsets: list[bytes] = []
    for number, step in enumerate(steps):
        collector.begin_transaction(number)
        if step[0] == "take":
            changes = collector.take_changes(database.fetch)
            _applied(made, changes.rows)
            offsets += changes.rows[OFFSET].to_pylist()
        else:
            database.run(step, collector)
    changes = collector.take_changes(database.fetch)
    _applied(made, changes.rows)
    offsets += changes.rows[OFFSET].to_pylist()

    assert made == database.rows
    assert offsets == sorted(set(offsets))
    assert len(collector) == 0 and collector.size_bytes == 0


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_a_transaction_can_be_taken_in_parts(keys: list[str], data: st.DataObject) -> None:
    """After a restart the log sends it from its beginning."""
    whole = Collector(_table(), SOURCE)
    whole.begin_transaction(7)
    for number, key in enumerate(keys):
        whole.insert((key, None, str(number)))
    expected = whole.take_changes(lambda _: {}).rows

    taken = data.draw(st.integers(0, len(keys)))
    rest = Collector(_table(), SOURCE)
    rest.begin_transaction(7, taken)
    for number, key in enumerate(keys):
        rest.insert((key, None, str(number)))
    assert rest.number == len(keys)
    assert rest.take_changes(lambda _: {}).rows.equals(expected.slice(taken))
    # The next transaction is not one that was taken.
    rest.begin_transaction(8)
    rest.delete(("a", None, None))
    assert len(rest) == 1


def test_a_change_whose_row_is_gone_waits_for_its_deletion() -> None:
    collector = Collector(_table(), SOURCE)
    collector.begin_transaction(1)
    collector.insert(("a", "large", "1"))
    collector.update(None, ("b", UNCHANGED, "2"))
    changes = collector.take_changes(lambda keys: {} if keys == [("b",)] else {keys[0]: ()})
    assert changes.rows["k"].to_pylist() == ["a"]
    assert changes.received == 2


def test_a_large_key_that_did_not_change_is_in_the_old_row() -> None:
    collector = Collector(_table(), SOURCE)
    collector.begin_transaction(1)
    collector.update(("a" * 9000, None, None), (UNCHANGED, "large", "1"))
    rows = collector.take_changes(lambda _: {}).rows
    assert rows.num_rows == 1 and rows["k"].to_pylist() == ["a" * 9000]


@pytest.mark.parametrize(
    ("relation", "says"),
    [
        (_relation("k", "n"), "has no column 'big'"),
        (
            Relation(1, "public", "t", (*_relation("k", "big").columns,
                                        RelationColumn("n", 20, -1))),
            "has a different type for column 'n'",
        ),
        (
            Relation(1, "public", "t", (*_relation("k", "big").columns,
                                        RelationColumn("n", OIDS["n"], 7))),
            "has a different type for column 'n'",
        ),
        (_relation("k", "big", "n", "more"), "has the new column 'more'"),
    ],
)  # fmt: skip
def test_other_columns_end_the_stream(relation: Relation, says: str) -> None:
    collector = Collector(_table(takes_all=True), SOURCE)
    with pytest.raises(DatasetError, match=says) as caught:
        collector.follow(relation)
    assert caught.value.code == "dataset.schema"
    assert "table 'public.t'" in caught.value.message


def test_columns_that_the_dataset_leaves_out_may_change() -> None:
    collector = Collector(_table(takes_all=False), SOURCE)
    collector.follow(_relation("more", "n", "k", "big"))
    collector.begin_transaction(1)
    collector.insert(("x", "1", "a", "large"))
    assert collector.take_changes(lambda _: {}).rows.select(NAMES).to_pylist() == [
        {"k": "a", "big": "large", "n": "1"}
    ]
