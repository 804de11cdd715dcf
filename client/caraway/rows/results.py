"""The result of a statement: an Arrow table with views for other libraries and notebooks."""

import importlib
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from caraway.errors import NotInstalledHereError
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa

SHOWN_ROWS = 20
SHOWN_CHARACTERS = 200


class SqlResult:
    """All rows of a statement.

    It has every method and attribute of `pyarrow.Table`, and `table` is the table itself. Anything
    that reads Arrow takes it as it is, such as `polars.DataFrame(result)`.
    """

    def __init__(self, table: "pa.Table") -> None:
        self.table = table

    # Any: the attributes of pyarrow.Table, which has no types.
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "table":
            raise AttributeError(name)
        return getattr(self.table, name)

    def __getitem__(self, key: object) -> Any:
        return self.table[key]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __bool__(self) -> bool:
        # An empty result is a result.
        return True

    def __eq__(self, other: object) -> bool:
        return bool(self.table == (other.table if isinstance(other, SqlResult) else other))

    __hash__ = None  # type: ignore[assignment] # tables cannot be hashed either

    def __repr__(self) -> str:
        return f"SqlResult({self.table.num_rows} rows)\n{self.table.schema}"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dictionaries."""
        check_names(self.table.column_names, "rows as dictionaries")
        for batch in self.table.to_batches():
            yield from batch.to_pylist()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return list(self.rows())

    # Any: arguments of pyarrow's own method.
    def to_pandas(self, **options: object) -> "pandas.DataFrame":
        """Return a pandas DataFrame; `options` are those of `pyarrow.Table.to_pandas`.

        Raises:
            NotInstalledHereError: pandas is not installed.
        """
        _package("pandas")
        frame: pandas.DataFrame = self.table.to_pandas(**options)
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """Return a polars DataFrame, mostly without a copy.

        Raises:
            NotInstalledHereError: polars is not installed.
        """
        check_names(self.table.column_names, "a polars DataFrame")
        return _package("polars").from_arrow(self.table)

    def to_duckdb(
        self, connection: "duckdb.DuckDBPyConnection | None" = None
    ) -> "duckdb.DuckDBPyRelation":
        """Return a DuckDB relation over the rows, without a copy.

        Raises:
            NotInstalledHereError: duckdb is not installed.
        """
        check_names(self.table.column_names, "a DuckDB relation")
        duckdb = _package("duckdb")
        return (duckdb if connection is None else connection).from_arrow(self.table)

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, for notebooks."""
        head = self.table.slice(0, SHOWN_ROWS)
        columns = [[_cell(value) for value in column] for column in head.columns]
        names = "".join(
            f"<th>{escape(field.name)}<br><small>{escape(str(field.type))}</small></th>"
            for field in head.schema
        )
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(column[row])}</td>' for column in columns)}</tr>"
            for row in range(head.num_rows)
        )
        total = self.table.num_rows
        shown = (
            f"first {head.num_rows:,} of {total:,} rows"
            if total > SHOWN_ROWS
            else _counted(total, "row")
        )
        return (
            f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table><p>{shown}, "
            f"{_counted(self.table.num_columns, 'column')}</p>"
        )


def check_names(names: Iterable[str], target: str) -> None:
    """Raise an error if columns share a name, since one would hide the other.

    Raises:
        CarawayError: a name repeats.
    """
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise CarawayError(
            f"columns share the name '{repeated[0]}', which {target} cannot have; name them in "
            "the statement (SELECT a.id AS a_id), or use the Arrow table"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count:,} {what}s"


# Any: a pyarrow scalar.
def _cell(scalar: Any) -> str:
    if not scalar.is_valid:
        return "NULL"
    try:
        text = str(scalar.as_py())
    # Values that Python's types cannot hold, such as nanoseconds.
    except (ValueError, OverflowError):
        text = _arrow_text(scalar)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."


# Any: a pyarrow scalar.
def _arrow_text(scalar: Any) -> str:
    import pyarrow as pa

    try:
        return str(scalar.cast(pa.string()))
    except (pa.ArrowException, ValueError, OverflowError):
        return f"({scalar.type})"


# Any: a module.
def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise NotInstalledHereError(
            f"this conversion needs {name}; install it with: pip install {name}"
        ) from exc
