"""Functions of the manifest as tools: which statement calls them, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_ai.tools.data_access import ReadRows, RowLimits
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.statement_tools import FunctionTools, SqlTool
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import InvalidRequestError, QueryError, QueryForbiddenError
from caraway_core.manifest import load
from caraway_core.manifest.values.declared_tools import DeclaredTool
from caraway_core.sqltext.expanding import Expander
from tests.kit.tool_data import LIMITS, EngineData

MANIFEST = """
name: app
functions:
  - name: net_price
    from: sql
    signature:
      args:
        - {name: gross, type: double}
        - {name: Rate, type: double, default: 0.25}
      returns: double
    body: gross / (1 + rate)
  - name: greeting
    description: Greets
    signature: {args: [{name: who, type: text, required: false}], returns: text}
    body: "'hello ' || who"
  - name: one
    signature: {returns: int}
    body: "1"
  - name: people_of
    kind: table
    signature: {args: [{name: least, type: int}], returns: [{name: id, type: Int64}]}
    body: SELECT id FROM people WHERE id >= $least ORDER BY id
  - name: hidden
    as_tool: false
    signature: {returns: int}
    body: "1"
"""
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b'", None]})


@dataclass
class CallingData(EngineData):
    """Data whose statements may call the functions of a manifest."""

    expander: Expander = field(default_factory=Expander)

    async def bound_query(
        self, sql: str, parameters: Mapping[str, object], caller: ToolCaller, limits: RowLimits
    ) -> ReadRows:
        return await super().bound_query(
            self.expander.expanded(sql).sql, parameters, caller, limits
        )


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return made(tmp_path, LIMITS)


def made(folder: Path, limits: RowLimits) -> Toolbox:
    path = folder / "caraway.yaml"
    path.write_text(MANIFEST)
    functions = load(path).functions
    rows = pa.table({"id": [1, 2, 3]})
    data = CallingData({"people": rows}, expander=Expander(functions))
    found = Toolbox()
    found.sources = [FunctionTools(functions, data, limits)]
    return found


@pytest.mark.parametrize(
    ("tool", "given", "result"),
    [
        ("net_price", {"gross": 125}, 100.0),
        ("net_price", {"gross": 125.0, "rate": 0}, 125.0),
        ("greeting", {"who": "x'; DROP TABLE people --"}, "hello x'; DROP TABLE people --"),
        ("greeting", {"who": "$who"}, "hello $who"),
        ("greeting", {}, None),
        ("greeting", {"who": None}, None),
        ("one", {}, 1),
        ("people_of", {"least": 2}, [{"id": 2}, {"id": 3}]),
        ("people_of", {"least": 9}, []),
    ],
)
async def test_a_function_returns_its_value_or_its_rows(
    box: Toolbox, tool: str, given: dict[str, Any], result: object
) -> None:
    assert await box.call(tool, given, ToolCaller()) == result


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("net_price", {}, "'gross' is missing"),
        ("net_price", {"gross": "x"}, "'gross'"),
        ("net_price", {"gross": 1, "x) => 1 --": 1}, "is unknown; known: gross, "),
        ("people_of", {"least": 1.5}, "'least'"),
        ("one", {"x": 1}, "known: none"),
    ],
)
async def test_arguments_are_checked_before_a_statement_is_made(
    box: Toolbox, tool: str, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        await box.call(tool, given, ToolCaller())


def test_tools_are_described_and_hidden_functions_are_not_there(box: Toolbox) -> None:
    told = {each.name: each.description for each in box.definitions()}
    assert set(told) == {"net_price", "greeting", "one", "people_of"}
    assert told["greeting"] == "Greets"
    assert told["net_price"].startswith("Returns the value of net_price(")
    assert told["people_of"].startswith("Returns the rows of people_of(")


async def test_more_rows_than_fit_are_cut(tmp_path: Path) -> None:
    few = made(tmp_path, RowLimits(2, 1000))
    cut = await few.call("people_of", {"least": 1}, ToolCaller())
    assert (cut["rows"], cut["is_truncated"]) == ([{"id": 1}, {"id": 2}], True)


async def test_a_value_that_cannot_be_computed_is_an_error(box: Toolbox) -> None:
    with pytest.raises(QueryError):
        await box.call("people_of", {"least": 2**70}, ToolCaller())


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
