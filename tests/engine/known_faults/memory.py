"""Asks statements over the tables of the faults in memory: of the engine itself, and mended."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
from datafusion import DataFrame, SessionConfig, SessionContext

from caraway_core.statements import Statement
from caraway_core.tables import MemoryTable, TableSpec
from caraway_engine import known_faults
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults import tables
from tests.kit.engine import session

_NOTHING: Mapping[str, Any] = {}
Rows = list[tuple[Any, ...]]


class Asked:
    """A context with the tables, and both ways to ask it."""

    def __init__(self, **more: pa.Table) -> None:
        self.context = SessionContext(SessionConfig().with_target_partitions(1))
        for name, table in (*tables.tables().items(), *more.items()):
            self.context.from_arrow(table, name)

    def engine(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Rows:
        """Return the rows that the plain engine gives, sorted."""
        return _rows(self._plan(sql, parameters))

    def mended(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> Rows:
        """Return the rows that users get, sorted."""
        return _rows(self._planned(sql, parameters).dataframe)

    def in_order(self, sql: str) -> Rows:
        """Return the rows that users get, in their order."""
        return _in_order(self._planned(sql, {}).dataframe)

    def text(self, sql: str, parameters: Mapping[str, Any] = _NOTHING) -> str:
        """Return the text that is planned for users."""
        return self._planned(sql, parameters).sql

    def _planned(self, sql: str, parameters: Mapping[str, Any]) -> known_faults.PlannedStatement:
        def plan(text: str) -> DataFrame:
            return self._plan(text, parameters)

        return known_faults.planned(self.context, sql, plan, parameters)

    def _plan(self, sql: str, parameters: Mapping[str, Any]) -> DataFrame:
        return self.context.sql(sql, param_values=dict(parameters))


def _rows(frame: DataFrame) -> Rows:
    # The text distinguishes -0.0 from 0.0, and sorts NULLs.
    return sorted(_in_order(frame), key=str)


def _in_order(frame: DataFrame) -> Rows:
    return _tuples(batch.to_pyarrow() for batch in frame.execute_stream())


def _tuples(batches: Iterable[pa.RecordBatch]) -> Rows:
    # Columns of one name stay, which are one key of a dictionary.
    return [
        row
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


def session_over(tables: Mapping[str, pa.Table], views: Mapping[str, str]) -> Session:
    """Return a session over tables in memory, and views of them."""
    specs: dict[str, TableSpec | str] = {
        name: MemoryTable(rows.schema, rows) for name, rows in tables.items()
    }
    return session({**specs, **views})


async def rows_of(over: Session, sql: str) -> Rows:
    """Return the rows of a statement, in their order."""
    return _tuples([batch async for batch in over.start(Statement(sql, {}))])


def duckdb_over(
    tables: Mapping[str, pa.Table], views: Mapping[str, str] = _NOTHING
) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB over the same tables and views."""
    made = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        made.register(name, rows)
    for name, view in views.items():
        made.sql(f"CREATE VIEW {name} AS {view}")
    return made


def check_same(over: Session, duck: duckdb.DuckDBPyConnection, sql: str, meaning: str = "") -> None:
    """Check that a statement has the rows of DuckDB, in any order.

    `meaning` is the statement for DuckDB if that is another one.
    """
    found = asyncio.run(rows_of(over, sql))
    right = duck.sql(meaning or sql).fetchall()
    assert sorted(found, key=str) == sorted(right, key=str), sql
