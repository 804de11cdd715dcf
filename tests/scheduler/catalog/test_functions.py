"""The table `runtime.functions`."""

from caraway_core.sqltext.sql_functions import FunctionParameter, SqlCast, SqlFunction
from caraway_scheduler.catalog import functions

INT = SqlCast("int", "CAST(", " AS INT)")


def test_functions_are_rows() -> None:
    twice = SqlFunction(
        "twice", (FunctionParameter("x", INT),), "x + x", INT, volatility="immutable"
    )
    rows = SqlFunction("rows", (), "SELECT 1", is_table=True, description="d", as_tool=False)
    columns = ("name", "kind", "volatility", "signature", "description", "as_tool")
    assert [tuple(each.values()) for each in functions.table([twice, rows]).to_pylist()] == [
        ("twice", "scalar", "immutable", "twice(x int)", None, True),
        ("rows", "table", "volatile", "rows()", "d", False),
    ]
    assert tuple(functions.table([]).column_names) == columns
