"""The metrics of plans of the engine itself."""

import pyarrow as pa
from datafusion import SessionContext

from caraway_engine.execution import profiling


def test_each_operator_has_its_place_and_sums_of_all_partitions() -> None:
    context = SessionContext()
    rows = pa.table({"k": [number % 3 for number in range(900)]})
    context.register_record_batches("t", [rows.to_batches(100), rows.to_batches(100)])
    dataframe = context.sql("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n")
    assert sum(len(batch.to_pyarrow()) for batch in dataframe.execute_stream()) == 3

    found = profiling.operators(dataframe.execution_plan())

    assert [each.depth for each in found] == list(range(len(found))), "a chain has one child each"
    partial = next(each for each in found if "mode=Partial" in each.text)
    assert partial.metrics["output_rows"] == 3 * 2, "two partitions with three groups each"
    assert partial.metrics["elapsed_compute"] > 0
    assert all(isinstance(value, int) for each in found for value in each.metrics.values())


def test_long_texts_of_operators_are_cut() -> None:
    context = SessionContext()
    columns = ", ".join(f"{number} AS c{number}" for number in range(200))
    dataframe = context.sql(f"SELECT {columns}")
    assert all(len(each.text) <= 160 for each in profiling.operators(dataframe.execution_plan()))
