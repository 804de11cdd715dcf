"""Facts of Parquet files are what their source says, and what their first rows show."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.catalog import Table

from caraway_core.tables import FilesTable, StoreSpec
from caraway_core.tables.ranges import ColumnRange, number_of
from caraway_engine.join_orders import described
from tests.kit.engine import memory
from tests.kit.tables import parquet

ROWS = pa.table(
    {
        "k": range(-10, 9_990),
        "day": [date(1970, 1, 1 + number % 20) for number in range(10_000)],
        "price": pa.array([Decimal(number % 100) / 4 for number in range(10_000)],
                          pa.decimal128(9, 2)),
        "text": [f"Col[0]: Min=Exact(Int64({number % 5}))" for number in range(10_000)],
        "part": [number / 7 for number in range(10_000)],
    }
)  # fmt: skip
RANGES: dict[str, ColumnRange] = {
    "k": (-10.0, 9_989.0), "day": (0.0, 19.0), "price": (0.0, 24.75), "part": (0.0, 1_428.5),
    "gone": (0.0, 1.0),
}  # fmt: skip


@pytest.fixture
def spec(tmp_path: Path) -> FilesTable:
    made = parquet(tmp_path / "t", ROWS, 2)
    return replace(made, row_count=10_000, ranges=tuple(RANGES.items()))


@pytest.fixture
def table(spec: FilesTable, tmp_path: Path) -> Table:
    context = SessionContext()
    context.register_parquet("t", str(tmp_path / "t"))
    return context.catalog().schema().table("t")


def stored(spec: FilesTable) -> FilesTable:
    store = StoreSpec("s3", "a", "a", {})
    return replace(spec, scans=tuple(replace(each, store=store) for each in spec.scans))


def test_ranges_show_how_many_values_there_may_be(spec: FilesTable, table: Table) -> None:
    found = described.file_facts(stored(spec), table)
    assert found is not None
    assert found.rows == 10_000
    assert (found.columns["k"].least, found.columns["k"].greatest) == (-10.0, 9_989.0)
    assert found.columns["k"].distinct == 10_000
    assert found.columns["day"].distinct == 20
    assert found.columns["price"].distinct == 2_476
    assert found.columns.keys() == {"k", "day", "price"}


def test_first_rows_show_how_many_texts_there_are(spec: FilesTable, table: Table) -> None:
    found = described.file_facts(spec, table)
    assert found is not None
    assert found.columns["text"].distinct == 5
    assert found.columns["k"].distinct == 10_000
    assert found.columns["day"].greatest == number_of(date(1970, 1, 20))


def test_first_rows_of_stores_are_not_read(spec: FilesTable) -> None:
    class Unread:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    assert described.file_facts(stored(spec), Unread()) is not None


def test_nothing_is_known_of_other_tables(spec: FilesTable, table: Table) -> None:
    others = [
        replace(spec, row_count=None),
        replace(stored(spec), ranges=()),
        replace(spec, scans=tuple(replace(each, format="csv") for each in spec.scans)),
        memory(k=[1]),
    ]
    assert [described.file_facts(each, table) for each in others] == [None] * 4


def test_files_that_cannot_be_read_say_nothing(spec: FilesTable, table: Table) -> None:
    for scan in spec.scans:
        for path in scan.paths:
            Path(path).write_bytes(b"PAR1")
    assert described.file_facts(spec, table) is None
