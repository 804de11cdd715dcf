"""Reading of log entries: the refused ones, and the partitions that take parts of them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.changes import Op, log_schema
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.partitions import hashing
from caraway_core.partitions.keys import BucketKey, PartitionBy, parse
from caraway_core.tables import Keys, ResultPlace, StoredTable
from caraway_engine.rows import entries, keyed
from tests.kit.changes import Change, changed, offset

T = TableName("t")
SCHEMA = pa.schema([pa.field("k", pa.int64()), pa.field("s", pa.string()),
                    pa.field("v", pa.float64(), nullable=False)])  # fmt: skip


def spec(keys: Keys | None = None, cut: PartitionBy | None = None) -> StoredTable:
    place = ResultPlace("file", "nowhere")
    return StoredTable(SCHEMA, place, "t", (), keys, cut or PartitionBy())


def row(k: int | None = 1, s: str | None = "a", v: float | None = 0.0) -> dict[str, Any]:
    return {"k": k, "s": s, "v": v}


def read(of: StoredTable, *batches: Sequence[Change]) -> entries.EntryChanges:
    return entries.read(T, of, [changed(SCHEMA, each) for each in batches])


KEYED = spec(Keys(("k", "s")))


def test_changes_of_several_batches_come_in_order() -> None:
    found = read(
        KEYED,
        [(Op.UPSERT, row(1)), (Op.DELETE, row(2, "b", None))],
        [],
        [(Op.INSERT, row(3, "c"), offset(7)), (Op.TRUNCATE, {})],
    )
    assert list(found.ops) == [Op.UPSERT, Op.DELETE, Op.INSERT, Op.TRUNCATE]
    assert found.rows.schema.names == ["k", "s", "v"] and found.rows.num_rows == 4
    assert list(found.keys) == [(1, "a"), (2, "b"), (3, "c"), (None, None)]
    assert found.hashes == keyed.hashes([found.rows["k"], found.rows["s"]])
    assert found.offsets == [None, None, offset(7), None]
    assert list(found.changes_of("any")) == list(found.changes_of(None)) == [0, 1, 2, 3]


def test_rows_of_a_single_batch_are_not_copied() -> None:
    inserts = [(Op.INSERT, row(number)) for number in range(9)]
    batch = changed(SCHEMA, [(Op.TRUNCATE, {}), *inserts, (Op.TRUNCATE, {})])
    found = entries.read(T, spec(), [batch.slice(1, 9)])
    assert found.ops == bytes([Op.INSERT] * 9) and found.only_inserts
    assert found.rows["k"].to_pylist() == list(range(9))
    assert found.rows["k"].buffers()[1].address == batch["k"].buffers()[1].address
    assert not entries.read(T, spec(), [batch]).only_inserts


def inserted(first: int, count: int, value: float | None = 0.0) -> pa.RecordBatch:
    return changed(SCHEMA, [(Op.INSERT, row(first + n, v=value)) for n in range(count)])


def test_large_batches_that_only_insert_rows_stay_where_they_are() -> None:
    many = entries.LEAST_ROWS
    batches = [inserted(0, many), inserted(many, many + 1)]
    found = entries.read(T, spec(), batches)
    assert found.only_inserts and len(found.ops) == 2 * many + 1
    for batch, kept in zip(batches, found.batches, strict=True):
        assert kept["k"].buffers()[1].address == batch["k"].buffers()[1].address
    assert found.size_bytes == sum(each.nbytes for each in found.batches)
    assert found.rows["k"].to_pylist() == list(range(2 * many + 1))


def test_other_batches_become_one() -> None:
    many = entries.LEAST_ROWS
    emptying = changed(SCHEMA, [(Op.TRUNCATE, {})])
    for of, batches in (
        (spec(), [inserted(0, many), inserted(0, many - 1)]),
        (spec(), [inserted(0, 3 * many), emptying]),
        (KEYED, [inserted(0, many), inserted(many, many)]),
        (spec(cut=CUT), [inserted(0, many), inserted(many, many)]),
    ):
        assert len(entries.read(T, of, batches).batches) == 1


def test_a_value_that_is_missing_in_a_later_batch_is_refused() -> None:
    batches = [inserted(0, entries.LEAST_ROWS), inserted(0, entries.LEAST_ROWS, None)]
    with pytest.raises(ExecutionError, match="column 'v' of a row is NULL"):
        entries.read(T, spec(), batches)


def test_an_entry_of_no_changes_is_empty() -> None:
    for found in (entries.read(T, KEYED, []), read(KEYED, []), read(spec(), [])):
        assert len(found.ops) == 0 and found.rows.num_rows == 0 and not list(found.changes_of(None))
        assert found.offsets is None


def test_without_a_key_there_are_no_keys() -> None:
    found = read(spec(), [(Op.INSERT, row(None))])
    assert (found.keys, found.hashes) == ((), None)


@pytest.mark.parametrize("op", [Op.INSERT, Op.UPSERT, Op.KEEP])
def test_a_row_without_a_value_that_it_must_have_is_refused(op: Op) -> None:
    with pytest.raises(ExecutionError, match=r"'t': changes .* column 'v' of a row is NULL"):
        read(KEYED, [(Op.DELETE, row(v=None)), (op, row(v=None))])


@pytest.mark.parametrize("op", [Op.UPSERT, Op.DELETE, Op.KEEP, Op.SEEN, Op.GONE])
@pytest.mark.parametrize(("k", "s", "name"), [(None, "a", "k"), (1, None, "s")])
def test_a_change_without_its_key_is_refused(
    op: Op, k: int | None, s: str | None, name: str
) -> None:
    with pytest.raises(ExecutionError, match=f"column '{name}' of its primary key is NULL"):
        read(KEYED, [(Op.TRUNCATE, {}), (op, row(k, s))])


def test_other_types_are_refused_and_other_names_are_not() -> None:
    batch = changed(SCHEMA, [(Op.UPSERT, row())])
    renamed = batch.rename_columns([f"c{n}" for n in range(batch.num_columns)])
    assert entries.read(T, KEYED, [batch, renamed]).rows.to_pylist() == [row(), row()]
    wide = log_schema(SCHEMA.set(2, pa.field("v", pa.float32())))
    with pytest.raises(ExecutionError, match="column types differ"):
        entries.read(T, KEYED, [batch, pa.RecordBatch.from_pylist([], schema=wide)])


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ((), None),
        (("s",), None),
        (("bucket(2, k)", "s"), None),
        (("bucket(2, k)",), 2),
        (("bucket(2, k)", "bucket(3, s)"), 6),
    ],
)
def test_partitions_follow_from_the_key_if_all_are_buckets(
    terms: tuple[str, ...], names: int | None
) -> None:
    found = entries.buckets(spec(cut=PartitionBy(tuple(map(parse, terms)))))
    assert (found if found is None else len(set(found))) == names


CUT = PartitionBy((BucketKey(2, "k"), BucketKey(3, "s")))
FIRST = hashing.bucket_of(pa.array(range(10)), 2).to_pylist()
SECOND = dict(zip("abcdef", hashing.bucket_of(pa.array([*"abcdef"]), 3).to_pylist(), strict=True))
CHANGES: st.SearchStrategy[Any] = st.lists(
    st.tuples(st.sampled_from([Op.UPSERT, Op.DELETE]),
              st.builds(row, st.integers(0, 9), st.sampled_from("abcdef")))
    | st.tuples(st.just(Op.TRUNCATE), st.just({})),
    max_size=12,
)  # fmt: skip


@settings(max_examples=25, deadline=None, derandomize=True)
@given(CHANGES)
def test_each_change_goes_to_the_partition_of_its_row(changes: list[Any]) -> None:
    of = spec(Keys(("k", "s")), CUT)
    names = entries.buckets(of)
    assert names is not None and len(names) == 6
    found = read(of, changes)
    for number, name in enumerate(names):
        expected = []
        for at, (op, values) in enumerate(changes):
            if op is Op.TRUNCATE:
                expected.append(at)
                continue
            if FIRST[values["k"]] * 3 + SECOND[values["s"]] == number:
                expected.append(at)
        assert list(found.changes_of(name)) == expected
    assert list(found.changes_of("none")) == []
    assert list(found.changes_of(None)) == list(range(len(changes)))
