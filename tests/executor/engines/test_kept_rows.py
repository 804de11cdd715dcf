"""Tables in memory outlive the process that wrote them, and never go back to earlier rows."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import TableName
from caraway_core.tables import MemoryTable, TableSpec
from caraway_executor.engines.kept_rows import KeptRows, ProcessRows

T, U = TableName("t"), TableName("u")


def _table(*numbers: int) -> MemoryTable:
    rows = pa.table({"n": pa.array(numbers, pa.int64())})
    return MemoryTable(rows.schema, rows)


def _numbers(spec: TableSpec) -> list[int]:
    assert spec.first_rows is not None
    values: list[int] = spec.first_rows.column("n").to_pylist()
    return values


def test_a_process_gets_the_rows_of_the_last_write() -> None:
    kept, origin = KeptRows(), _table(1)
    first = ProcessRows(kept)
    assert first.give({T: origin})[T] is origin
    first.keep(T, pa.table({"n": [1, 2]}))
    assert first.is_newest

    second = ProcessRows(kept)
    assert _numbers(second.give({T: origin})[T]) == [1, 2]
    second.keep(T, pa.table({"n": [3]}))
    assert not first.is_newest
    assert _numbers(first.give({T: origin})[T]) == [3]
    assert first.is_newest


def test_a_process_keeps_the_tables_that_it_was_given() -> None:
    kept, origin = KeptRows(), _table(1)
    process = ProcessRows(kept)
    given_first = process.give({T: origin, U: _table(9)})
    process.keep(T, pa.table({"n": [1, 2]}))
    # It changed these rows itself; another spec would put it back to fewer rows.
    assert process.give({T: origin})[T] is given_first[T]


def test_a_dataset_that_was_declared_anew_begins_anew() -> None:
    kept, origin, other = KeptRows(), _table(1), _table(5)
    process = ProcessRows(kept)
    process.give({T: origin})
    process.keep(T, pa.table({"n": [1, 2]}))
    assert process.give({T: other})[T] is other
    assert kept.current_table(T, other) is other and _numbers(kept.current_table(T, origin)) == [
        1,
        2,
    ]


def test_rows_take_the_types_of_their_table() -> None:
    kept, origin = KeptRows(), _table(1)
    kept.keep(T, origin, pa.table({"n": pa.array([1], pa.int32())}))
    found = kept.current_table(T, origin)
    assert found.first_rows is not None and found.first_rows.schema == origin.schema
    with pytest.raises(pa.ArrowInvalid):
        kept.keep(T, origin, pa.table({"n": ["x"]}))
    assert kept.writes == 1


def test_a_write_to_an_unknown_table_is_not_kept() -> None:
    kept = KeptRows()
    ProcessRows(kept).keep(T, pa.table({"n": [1]}))
    assert kept.writes == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["give", "write"]))))
def test_processes_that_are_asked_before_they_write_see_every_write(
    steps: list[tuple[int, str]],
) -> None:
    kept, origin = KeptRows(), _table()
    processes = [ProcessRows(kept) for _ in range(3)]
    here: list[list[int]] = [[], [], []]
    last: list[int] = []
    given_specs: list[TableSpec | None] = [None, None, None]
    for number, (which, step) in enumerate(steps):
        process = processes[which]
        spec = process.give({T: origin})[T]
        if spec is not given_specs[which]:
            given_specs[which], here[which] = spec, _numbers(spec)
        assert here[which] == last
        if step == "write":
            last = here[which] = [*here[which], number]
            process.keep(T, pa.table({"n": pa.array(last, pa.int64())}))
    assert kept.writes == sum(step == "write" for _, step in steps)
