"""The descriptions of tables and columns in the manifest, as a table."""

from pathlib import Path

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, DeclaredColumn, View
from caraway_scheduler.catalog import descriptions
from caraway_scheduler.catalog.states import DatasetState, ViewState

COLUMNS = (
    DeclaredColumn("id", description="The number."),
    DeclaredColumn("note"),
)


def dataset(name: str, text: str | None, columns: tuple[DeclaredColumn, ...] = ()) -> DatasetState:
    return DatasetState(
        Dataset(name, "file:t", "file", "t", Path("/"), description=text, columns=columns)
    )


def test_tables_come_before_their_columns_by_name() -> None:
    datasets = [dataset("shop.items", "What we sell.", COLUMNS), dataset("plain", None, COLUMNS)]
    view = ViewState(View("by_day", "SELECT 1", Path("/"), description="Sums."))
    told = descriptions.table({each.name: each for each in datasets}, {view.name: view})
    assert [tuple(row.values()) for row in told.to_pylist()] == [
        ("public", "by_day", None, "Sums."),
        ("public", "plain", "id", "The number."),
        ("shop", "items", None, "What we sell."),
        ("shop", "items", "id", "The number."),
    ]


def test_table_without_descriptions_has_its_columns() -> None:
    plain = dataset("plain", "")
    assert descriptions.table({TableName("plain"): plain}, {}).schema == descriptions.SCHEMA
    assert descriptions.table({TableName("plain"): plain}, {}).num_rows == 0
