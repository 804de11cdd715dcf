"""Tables of rows in memory: how they are divided, and that nothing is lost or copied."""

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table
from hypothesis import given
from hypothesis import strategies as st

from caraway_engine.stored import making

SCHEMA = pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})], metadata={"of": "t"})


def batches(*heights: int) -> list[pa.RecordBatch]:
    numbers = iter(range(sum(heights)))
    return [
        pa.record_batch({"a": [next(numbers) for _ in range(height)]}, schema=SCHEMA)
        for height in heights
    ]


def context(table: Table) -> SessionContext:
    made = SessionContext()
    made.catalog().schema().register_table("t", table)
    return made


def values(table: Table) -> list[int]:
    found = context(table).sql("SELECT a FROM t ORDER BY a").to_arrow_table()
    numbers: list[int] = found.column(0).to_pylist()
    return numbers


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 9))
def test_batches_are_divided_in_their_order_and_about_evenly(
    heights: list[int], partitions: int
) -> None:
    made = batches(*heights)
    parts = making.divide_batches(made, partitions)
    assert len(parts) == partitions
    # Batches without rows are left out; others are the same objects.
    assert [id(batch) for part in parts for batch in part] == [
        id(batch) for batch in made if batch.num_rows
    ]
    share = sum(heights) / partitions
    for part in parts:
        assert sum(batch.num_rows for batch in part) < share + max(heights, default=0) + 1


@pytest.mark.parametrize("heights", [(), (0,), (0, 0), (3, 0), (0, 3), (3, 0, 0, 2, 0)])
def test_batches_without_rows_are_no_rows(heights: tuple[int, ...]) -> None:
    parts = making.divide_batches(batches(*heights), 2)
    table = making.table(parts, SCHEMA)
    assert values(table) == list(range(sum(heights)))


def test_a_table_keeps_its_schema_and_its_partitions() -> None:
    made = context(making.table([[], batches(2), []], SCHEMA))
    frame = made.sql("SELECT * FROM t")
    assert frame.execution_plan().partition_count == 3
    assert pa.schema(frame.schema()).field("a").metadata == {b"k": b"v"}


def test_rows_can_be_appended_any_number_of_times() -> None:
    table = making.table([[], []], SCHEMA)
    making.append(table, [], SCHEMA)
    assert values(table) == []
    first, second, third = batches(3, 2, 4)
    making.append(table, [first, second], SCHEMA)
    plan = context(table).sql("SELECT * FROM t")
    making.append(table, [third], SCHEMA)
    assert values(table) == list(range(9))
    # A plan that was made before reads what the table has when it runs.
    assert len(plan.to_arrow_table()) == 9
    assert plan.execution_plan().partition_count == 2


def scanned(table: Table, partition: int) -> list[int]:
    """Return the height of each batch that a scan gets, unless the engine cuts it again."""
    config = SessionConfig().with_target_partitions(1).with_batch_size(1_000_000)
    made = SessionContext(config)
    plan = made.read_table(table).execution_plan()
    return [batch.to_pyarrow().num_rows for batch in made.execute(plan, partition)]


def test_scans_read_batches_after_which_other_statements_run() -> None:
    """A scan that reads large batches keeps a thread for 128 of them: a second, or more."""
    large = batches(20_000, 9_000)
    table = making.table([large[:1], large[1:]], SCHEMA)
    assert [scanned(table, number) for number in range(2)] == [[8192, 8192, 3616], [8192, 808]]
    making.append(table, large, SCHEMA)
    assert sorted(scanned(table, 0)[3:] + scanned(table, 1)[2:]) == [808, 3616, 8192, 8192, 8192]
    assert scanned(making.listed(large, SCHEMA), 0) == [20_000, 9_000]


def test_no_rows_have_the_schema() -> None:
    empty = making.no_rows(SCHEMA)
    assert (empty.num_rows, empty.schema) == (0, SCHEMA)


def test_fields_of_null_structs_are_null() -> None:
    batch = pa.record_batch({"s": pa.array([{"a": 1}, None])})
    for table in (making.table([[batch]], batch.schema), making.table([[]], batch.schema)):
        if not context(table).sql("SELECT * FROM t").count():
            making.append(table, [batch], batch.schema)
        found = context(table).sql("SELECT s['a'] AS a FROM t").to_pydict()
        assert found == {"a": [1, None]}
