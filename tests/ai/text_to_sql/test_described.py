"""Samples of tables are read by statements that the engine takes, whatever columns are called."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_ai.text_to_sql import described
from caraway_ai.text_to_sql.described import SampledValues, TableSampling
from caraway_ai.tools.data_access import KnownColumn, KnownTable, ReadRows, RowLimits
from caraway_ai.tools.protocol import ToolCaller
from caraway_core.errors import CarawayError, QueryError
from caraway_core.ids import TableName
from caraway_serving.formats import datatypes

CALLER = ToolCaller()


class Engine:
    """Reads tables of Arrow; some are away."""

    def __init__(self, tables: dict[str, pa.Table], away: Sequence[str] = ()) -> None:
        self._context = SessionContext()
        self._tables = tables
        self._away = away
        self.statements: list[str] = []
        for name, each in tables.items():
            self._context.from_arrow(each, name)

    async def columns(self, table: TableName, caller: ToolCaller) -> Sequence[KnownColumn]:
        if table in self._away:
            raise QueryError("it is loading")
        schema = self._tables[table].schema
        return [KnownColumn(each.name, datatypes.display(each.type)) for each in schema]

    async def query(self, sql: str, caller: ToolCaller, limits: RowLimits) -> ReadRows:
        self.statements.append(sql)
        if "fails" in sql:
            raise CarawayError("it failed")
        rows = self._context.sql(sql).to_arrow_table().to_pylist()
        return ReadRows(rows[: limits.rows], len(rows) > limits.rows)


async def one(content: pa.Table, values: int = 3, rows: int = 0, name: str = "t") -> Any:
    data: Any = Engine({name: content})
    known = KnownTable(TableName(name), "dataset")
    [found] = await described.describe(data, CALLER, [known], TableSampling(values, rows))
    return found


HOSTILE = ['a"b', "a'b", "select", "A", "ä ö", "a.b", "--", "/*", ";", "n", "v", "c", "s", "", "😀"]


async def test_columns_of_any_name_are_sampled() -> None:
    content = pa.table({name: ["x", "y", "x"] for name in HOSTILE})
    found = await one(content, rows=2)
    assert set(found.values) == set(HOSTILE)
    assert all(each == SampledValues(("x", "y"), True) for each in found.values.values())
    assert found.rows == [dict.fromkeys(HOSTILE, "x"), dict.fromkeys(HOSTILE, "y")]


async def test_values_are_those_that_are_there_most_often() -> None:
    texts = ["c"] * 3 + ["a"] * 2 + ["b"] * 2 + ["d", None, None, None, None]
    found = await one(pa.table({"x": texts, "y": pa.array(texts).dictionary_encode()}))
    assert found.values == dict.fromkeys("xy", SampledValues(("c", "a", "b"), False, ("d",)))
    every = await one(pa.table({"x": texts}), values=4)
    assert every.values == {"x": SampledValues(("c", "a", "b", "d"), True)}


async def test_of_moments_the_first_and_the_last_are_told() -> None:
    content = pa.table({
        "at": pa.array([3_000_000, None, 1_000_000], pa.timestamp("us")),
        "day": pa.array([20_000, 10_000, None], pa.date32()),
        "never": pa.array([None] * 3, pa.date32()), "n": [1, 2, 3],
    })  # fmt: skip
    found = await one(content)
    assert found.values == {
        "at": SampledValues(("1970-01-01T00:00:01", "1970-01-01T00:00:03"), True),
        "day": SampledValues(("1997-05-19", "2024-10-04"), True),
    }


async def test_long_values_are_cut_and_texts_of_nothing_else_left_out() -> None:
    content = pa.table({"long": ["x" * 41, "y" * 99], "mixed": ["x" * 41, "short"]})
    found = await one(content, rows=1)
    assert set(found.values) == {"mixed"}
    assert set(found.values["mixed"].values) == {"x" * 40 + "...", "short"}
    assert found.rows[0]["long"] == "x" * 40 + "..."


@pytest.mark.parametrize(
    "content",
    [pa.table({"n": [1]}), pa.table({"x": pa.array([], pa.string())}),
     pa.table({"x": pa.array([None], pa.string())}), pa.table({"x": pa.array([[1]])})],
)  # fmt: skip
async def test_a_table_without_such_values(content: pa.Table) -> None:
    assert (await one(content)).values == {}


async def test_more_columns_than_are_sampled() -> None:
    found = await one(pa.table({f"c{n}": ["x"] for n in range(100)}))
    assert list(found.values) == [f"c{n}" for n in range(60)] and len(found.columns) == 100


async def test_a_table_that_is_away_is_left_out_and_a_sample_that_fails_is_not() -> None:
    tables = {name: pa.table({"x": ["a"]}) for name in ("here", "away", "fails")}
    data: Any = Engine(tables, away=["away"])
    known = [KnownTable(TableName(name), "dataset") for name in tables]
    found = await described.describe(data, CALLER, known, TableSampling(1, 1))
    assert [each.table.name for each in found] == ["here", "fails"]
    assert found[0].values and found[0].rows and not found[1].values and not found[1].rows


async def test_nothing_is_read_where_nothing_is_sampled() -> None:
    data: Any = Engine({"t": pa.table({"x": ["a"]})})
    known = KnownTable(TableName("t"), "dataset")
    await described.describe(data, CALLER, [known], TableSampling())
    assert data.statements == []
