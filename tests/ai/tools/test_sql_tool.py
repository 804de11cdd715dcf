"""Tools that are one statement of the manifest, over the engine."""

from typing import Any

import pyarrow as pa
import pytest

from caraway_ai.tools.data_access import RowLimits
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.sql_tool import SqlTool
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import InvalidRequestError, QueryError, QueryForbiddenError
from caraway_core.manifest.values.declared_tools import DeclaredTool
from tests.kit.tool_data import LIMITS, EngineData

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b'", None]})


async def call(
    sql: str, properties: dict[str, Any], limits: RowLimits = LIMITS, **given: Any
) -> Any:
    schema = {"type": "object", "properties": properties}
    declared = DeclaredTool("t", "sql", sql=sql, parameters=schema)
    tool = SqlTool(declared, EngineData({"people": ROWS}), limits)
    return await Toolbox().use(tool, given, ToolCaller())


BY_NAME = "SELECT id FROM people WHERE $name IS NULL OR name = $name ORDER BY id"
NAME = {"name": {"type": "string"}}


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({"name": "a"}, [1]),
        ({"name": "b'"}, [2]),
        ({"name": "x"}, []),
        ({"name": "' OR true --"}, []),
        ({"name": "$name"}, []),
        ({}, [1, 2, 3]),
        ({"name": None}, [1, 2, 3]),
    ],
)
async def test_arguments_are_values_and_nothing_else(given: dict[str, Any], ids: list[int]) -> None:
    assert [row["id"] for row in await call(BY_NAME, NAME, **given)] == ids


async def test_a_default_of_the_schema_is_a_value() -> None:
    properties = {"name": {"type": "string", "default": "a"}}
    assert await call(BY_NAME, properties) == [{"id": 1}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(7, "integer"), (1.5, "number"), (True, "boolean"), ("é", "string"), (2**40, "integer")],
)
async def test_a_value_keeps_its_type(value: object, kind: str) -> None:
    (row,) = await call("SELECT $x AS x", {"x": {"type": kind}}, x=value)
    assert row == {"x": value}
    assert type(row["x"]) is type(value)


async def test_a_statement_without_parameters_takes_none() -> None:
    assert await call("SELECT 1 AS one", {}) == [{"one": 1}]


async def test_rows_above_the_limit_are_cut() -> None:
    cut = await call("SELECT id FROM people ORDER BY id", {}, RowLimits(2, 1000))
    assert (cut["rows"], cut["is_truncated"]) == ([{"id": 1}, {"id": 2}], True)


@pytest.mark.parametrize("sql", ["DELETE FROM people", "INSERT INTO people VALUES (1, 'x')"])
async def test_a_statement_that_writes_is_refused(sql: str) -> None:
    with pytest.raises(QueryForbiddenError):
        await call(sql, {})


async def test_errors_are_those_of_the_statement_and_of_the_arguments() -> None:
    with pytest.raises(QueryError, match="nothing"):
        await call("SELECT nothing FROM people", {})
    with pytest.raises(InvalidRequestError, match="'name' must be of type string"):
        await call(BY_NAME, NAME, name=1)


def test_without_a_description_a_tool_tells_its_statement() -> None:
    data = EngineData({"people": ROWS})
    plain = SqlTool(DeclaredTool("t", "sql", sql="SELECT 1"), data, LIMITS)
    told = SqlTool(DeclaredTool("t", "sql", sql="SELECT 1", description="One"), data, LIMITS)
    assert (plain.description, told.description) == ("Runs: SELECT 1", "One")
