"""The built-in tools over tables that the engine reads."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from caraway_ai.tools.arguments import ToolArgumentsError
from caraway_ai.tools.builtin import BuiltinTools
from caraway_ai.tools.data_access import KnownTable, RowLimits, SearchedColumn
from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.toolbox import Toolbox
from caraway_core.errors import InvalidQueryError, NotFoundError, QueryForbiddenError
from caraway_core.ids import TableName
from caraway_core.manifest.values.declared_tools import BUILTIN_TOOLS
from tests.kit.tool_data import LIMITS, EngineData

ANYBODY = ToolCaller()
LIMITED = ToolCaller(tables=frozenset({TableName("orders")}))
SCHEMA = pa.schema([pa.field("id", pa.int64(), False), ("Note", pa.string())])
ORDERS = pa.table({"id": [1, 2, 3], "Note": ["a", None, "c"]}, SCHEMA)


def data(**more: Any) -> EngineData:
    return EngineData({"orders": ORDERS, "s.people": ORDERS.slice(0, 1)}, **more)


def searchable(name: str, *, by_meaning: bool = False, by_text: bool = False) -> KnownTable:
    column = (SearchedColumn("Note"),)
    return KnownTable(
        TableName(name),
        "dataset",
        vector_columns=column if by_meaning else (),
        text_columns=column if by_text else (),
    )


async def call(
    of: EngineData,
    tool: str,
    caller: ToolCaller = ANYBODY,
    limits: RowLimits = LIMITS,
    **given: Any,
) -> Any:
    box = Toolbox()
    box.sources = [BuiltinTools(of, limits)]
    return await box.call(tool, given, caller)


def test_the_tools_are_those_that_the_manifest_knows() -> None:
    tools = BuiltinTools(data(can_search=True), LIMITS).tools()
    assert sorted(tool.name for tool in tools) == sorted(
        {*BUILTIN_TOOLS} - {"load_memory", "store_memory"}
    )


def test_there_is_no_search_without_anything_to_search() -> None:
    of = data()
    tools = BuiltinTools(of, LIMITS)
    assert "search" not in [tool.name for tool in tools.tools()]
    of.can_search = True
    assert "search" in [tool.name for tool in tools.tools()]


@pytest.mark.parametrize("tool", BuiltinTools(data(can_search=True), LIMITS).tools())
def test_every_parameter_is_described_and_no_other_is_taken(tool: Any) -> None:
    schema = tool.parameters
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for name, each in schema["properties"].items():
        assert name == "limit" or each.get("description"), name
        assert not ("default" in each and name in schema["required"])


async def test_tables_are_listed_with_what_can_be_searched() -> None:
    known = {
        "orders": replace(
            searchable("orders", by_meaning=True), description="All", metadata={"owner": "x"}
        )
    }
    assert await call(data(known=known), "list_datasets") == [
        {
            "name": "orders", "description": "All", "status": "ready",
            "can_search_by_meaning": True, "can_search_text": False, "metadata": {"owner": "x"},
        },
        {
            "name": "s.people", "description": None, "status": "ready",
            "can_search_by_meaning": False, "can_search_text": False, "metadata": {},
        },
    ]  # fmt: skip


async def test_only_tables_of_the_allowlist_and_of_the_caller_are_listed() -> None:
    tools = BuiltinTools(data(), LIMITS)
    box = Toolbox()
    box.sources = [tools]

    async def listed(caller: ToolCaller) -> list[str]:
        return [each["name"] for each in await box.call("list_datasets", {}, caller)]

    assert await listed(ANYBODY) == ["orders", "s.people"]
    assert await listed(LIMITED) == ["orders"]
    tools.allowed = frozenset({"s.people"})
    assert await listed(ANYBODY) == ["s.people"]
    assert await listed(LIMITED) == []
    tools.allowed = frozenset()
    assert await listed(ANYBODY) == []


async def test_sql_returns_rows_and_says_if_there_are_more() -> None:
    query = 'SELECT id, "Note" FROM orders ORDER BY id'
    rows = ORDERS.to_pylist()
    assert await call(data(), "sql", query=query) == rows
    cut = await call(data(), "sql", limits=RowLimits(2, 1000), query=query)
    assert (cut["rows"], cut["is_truncated"]) == (rows[:2], True)
    assert await call(data(), "sql", limits=RowLimits(3, 1000), query=query) == rows


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT nothing FROM orders", InvalidQueryError),
        ("SELEC 1", InvalidQueryError),
        ("", ToolArgumentsError),
        ("   ", InvalidQueryError),
        ("SELECT 1; SELECT 2", InvalidQueryError),
        ("DELETE FROM orders", QueryForbiddenError),
        ("DROP TABLE orders", InvalidQueryError),
        ("CREATE TABLE x AS SELECT 1", InvalidQueryError),
    ],
)
async def test_sql_that_is_no_query_is_refused(query: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await call(data(), "sql", query=query)


async def test_columns_are_described_in_full() -> None:
    known = {
        "orders": KnownTable(TableName("orders"), "dataset", description="All", primary_key=("id",))
    }
    assert await call(data(known=known), "table_schema", tables=["ORDERS"]) == [
        {
            "table": "orders",
            "description": "All",
            "primary_key": ["id"],
            "columns": [
                {"name": "id", "data_type": "Int64", "nullable": False},
                {"name": "Note", "data_type": "Utf8", "nullable": True},
            ],
        }
    ]


async def test_columns_are_described_with_names_and_types_alone() -> None:
    told = await call(data(), "table_schema", tables=["orders", "s.people"], output="minimal")
    columns = [{"name": "id", "data_type": "Int64"}, {"name": "Note", "data_type": "Utf8"}]
    assert told == [
        {"table": "orders", "columns": columns}, {"table": "s.people", "columns": columns},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "'tables' is missing"),
        ({"tables": []}, "tables"),
        ({"tables": "orders"}, "must be of type array"),
        ({"tables": ["x"] * 51}, "tables"),
        ({"tables": ["orders"], "output": "all"}, "must be one of"),
        ({"tables": ["orders"], "more": 1}, "'more' is unknown; known: tables, output"),
    ],
)
async def test_descriptions_of_nothing_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolArgumentsError, match=words):
        await call(data(), "table_schema", **given)


async def test_a_table_that_the_caller_may_not_read_is_not_there() -> None:
    for tool, given in (
        ("table_schema", {"tables": ["orders", "s.people"]}),
        ("random_sample", {"tbl": "s.people"}),
        ("sample_distinct_columns", {"tbl": "s.people"}),
        ("top_n_sample", {"tbl": "s.people", "order_by": "id"}),
    ):
        with pytest.raises(NotFoundError, match=r"no table 's\.people'") as caught:
            await call(data(), tool, LIMITED, **given)
        with pytest.raises(NotFoundError) as nothing:
            await call(data(), tool, LIMITED, **_renamed(given))
        # The message does not reveal whether the table exists.
        told = caught.value.message.replace("s.people", "s.nobody")
        assert told == nothing.value.message


def _renamed(given: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value.replace("people", "nobody")
        if isinstance(value, str)
        else [each.replace("people", "nobody") for each in value]
        for key, value in given.items()
    }


async def test_a_search_asks_for_what_it_is_given() -> None:
    of = data(can_search=True)
    await call(
        of, "search", text="red", datasets=["orders"], limit=3, where="id > 1",
        additional_columns=["id"], keywords=["x", "y"],
    )  # fmt: skip
    (asked,) = of.asked
    assert (asked.text, asked.datasets, asked.limit) == ("red", ("orders",), 3)
    assert (asked.where, asked.additional_columns, asked.keywords) == (
        "id > 1",
        ("id",),
        ("x", "y"),
    )


@pytest.mark.parametrize("given", [{}, {"datasets": []}, {"datasets": None}])
async def test_a_search_without_datasets_is_of_all_that_can_be_searched(
    given: dict[str, Any],
) -> None:
    known = {"orders": searchable("orders", by_text=True)}
    of = data(can_search=True, known=known)
    await call(of, "search", text="red", **given)
    assert of.asked[0].datasets == ("orders",)
    assert (of.asked[0].limit, of.asked[0].where) == (10, None)


async def test_a_search_of_nothing_is_refused() -> None:
    known = {"s.people": searchable("s.people", by_meaning=True)}
    of = data(can_search=True, known=known)
    await call(of, "search", text="red")
    with pytest.raises(NotFoundError, match="no dataset can be searched; query with SQL instead"):
        await call(of, "search", LIMITED, text="red")


async def test_a_caller_with_few_tables_reads_the_status_of_nothing_else() -> None:
    states = {
        "datasets": {"orders": "ready", "s.people": "error"},
        "views": {"v": "ready"},
        "models": {"m": "ready"},
        "tools": {"s.people": "ready"},
    }
    of = data(states=states)
    assert await call(of, "get_readiness") == states
    assert await call(of, "get_readiness", LIMITED) == {
        "datasets": {"orders": "ready"},
        "views": {},
    }
    assert states["views"] == {"v": "ready"}
