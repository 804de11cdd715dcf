"""The table `runtime.functions`."""

from pathlib import Path

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, DeclaredColumn, View
from caraway_core.sqltext.sql_functions import FunctionParameter, SqlCast, SqlFunction
from caraway_scheduler.catalog import runtime_tables
from caraway_scheduler.catalog.states import DatasetState, ViewState

INT = SqlCast("int", "CAST(", " AS INT)")
COLUMNS = (
    DeclaredColumn("id", description="The number."),
    DeclaredColumn("note"),
)


def test_functions_are_rows() -> None:
    twice = SqlFunction(
        "twice", (FunctionParameter("x", INT),), "x + x", INT, volatility="immutable"
    )
    rows = SqlFunction("rows", (), "SELECT 1", is_table=True, description="d", as_tool=False)
    columns = ("name", "kind", "volatility", "signature", "description", "as_tool")
    assert [
        tuple(each.values()) for each in runtime_tables.functions_table([twice, rows]).to_pylist()
    ] == [
        ("twice", "scalar", "immutable", "twice(x int)", None, True),
        ("rows", "table", "volatile", "rows()", "d", False),
    ]
    assert tuple(runtime_tables.functions_table([]).column_names) == columns


def dataset(name: str, text: str | None, columns: tuple[DeclaredColumn, ...] = ()) -> DatasetState:
    return DatasetState(
        Dataset(name, "file:t", "file", "t", Path("/"), description=text, columns=columns)
    )


def test_tables_come_before_their_columns_by_name() -> None:
    datasets = [dataset("shop.items", "What we sell.", COLUMNS), dataset("plain", None, COLUMNS)]
    view = ViewState(View("by_day", "SELECT 1", Path("/"), description="Sums."))
    told = runtime_tables.descriptions_table(
        {each.name: each for each in datasets}, {view.name: view}
    )
    assert [tuple(row.values()) for row in told.to_pylist()] == [
        ("public", "by_day", None, "Sums."),
        ("public", "plain", "id", "The number."),
        ("shop", "items", None, "What we sell."),
        ("shop", "items", "id", "The number."),
    ]


def test_table_without_descriptions_has_its_columns() -> None:
    plain = dataset("plain", "")
    assert (
        runtime_tables.descriptions_table({TableName("plain"): plain}, {}).schema
        == runtime_tables.DESCRIPTIONS
    )
    assert runtime_tables.descriptions_table({TableName("plain"): plain}, {}).num_rows == 0
