"""DuckDB as a second opinion: the same statements over the same files, compared by value.

Types differ between the two: an average of decimals is a double in DuckDB, a sum a HUGEINT. So
numbers are compared as numbers, to nine digits, and -0.0 equals 0.0.
"""

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import duckdb
import pyarrow as pa

from tests.differential.datasets import Dataset

_DIGITS = 9
_NULLS = "nulls_last_on_asc_first_on_desc"


class Judge:
    """A DuckDB connection that has loaded the tables of a dataset."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, sql: str) -> Counter[tuple[str, ...]] | None:
        """Return the rows of DuckDB, or None if it rejects the statement."""
        found = self.in_order(sql)
        return None if found is None else Counter(found)

    def in_order(self, sql: str) -> list[tuple[str, ...]] | None:
        """Return the rows of DuckDB in their order, or None if it rejects the statement."""
        try:
            table = self._connection.sql(sql)
            return None if table is None else listed(table.to_arrow_table())
        except duckdb.Error:
            return None


@contextmanager
def judge(dataset: Dataset) -> Iterator[Judge]:
    with duckdb.connect(config={"threads": 2, "default_null_order": _NULLS}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET integer_division = true")
        for name in dataset.tables:
            files = dataset.folder / name / "*.parquet"
            # A copy of the rows: filters that DuckDB pushes into files also mishandle NaN.
            connection.execute(f"CREATE TABLE \"{name}\" AS FROM read_parquet('{files}')")
        for name, sql in dataset.views.items():
            connection.execute(f"CREATE VIEW {name} AS {sql}")
        yield Judge(connection)


def counted(table: pa.Table) -> Counter[tuple[str, ...]]:
    """Count rows by the text of their values."""
    return Counter(listed(table))


def listed(table: pa.Table) -> list[tuple[str, ...]]:
    """Return rows as the texts of their values."""
    columns = [[_text(each) for each in _plain(column)] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _plain(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.timestamp("us"), safe=False).to_pylist())
    return list(column.to_pylist())


def _text(value: object) -> str:
    match value:
        case bool() | None:
            return str(value)
        case int() | float() | Decimal():
            return _number(value)
        case dt.datetime():
            return value.isoformat(" ")
        case dt.date():
            return f"{value.isoformat()} 00:00:00"
        case dict():
            return "{" + ", ".join(f"{key}: {_text(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_text, value)) + "]"
        case _:
            return str(value)


def _number(value: int | float | Decimal) -> str:
    as_float = float(value)
    if math.isnan(as_float) or math.isinf(as_float):
        return str(as_float)
    return f"{as_float + 0.0:.{_DIGITS}g}"
