"""The tables that stand for calls of table functions while a statement is planned.

Each call has a schema of its own, in which the table has the name of the function. So columns can
be qualified by it as by any table. Only the statement that is being planned sees its tables.
"""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from itertools import count
from types import MappingProxyType

import pyarrow as pa
from datafusion import SessionContext
from datafusion.catalog import SchemaProvider, Table

from caraway_core.ids import TableName
from caraway_core.sqltext.table_calls import MOST_CALLS, TableCall
from caraway_core.statements import GivenRows

PREFIX = "search$"
"""Begins the name of each schema. The engine reads it without quotes, also from a plan's bytes."""
_NOTHING: Mapping[TableName, Table] = MappingProxyType({})
_IN_MESSAGES = re.compile(r"\"?search\$[\w$]+\"?\.")
_NOT_IN_WORDS = re.compile(r"[^a-z0-9_]")
_numbers = count()
_shown: ContextVar[Mapping[TableName, Table]] = ContextVar("caraway-searches", default=_NOTHING)


class SearchSchema(SchemaProvider):  # type: ignore[misc] # datafusion is untyped to us
    """The schema of one call. It lists nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def owner_name(self) -> str | None:
        """Return None: the schema has no owner."""
        return None

    @property
    def table_names(self) -> list[str]:
        """The listed tables: none."""
        return []

    def table(self, name: str) -> Table | None:
        """Return the table that stands for a call of the statement that is planned, or None."""
        return _shown.get().get(TableName(f"{self._name}.{name}"))

    def table_exist(self, name: str) -> bool:
        """Return whether the statement that is planned has such a call."""
        return TableName(f"{self._name}.{name}") in _shown.get()


@contextmanager
def shown(tables: Mapping[TableName, Table]) -> Iterator[None]:
    """Plan with these tables. The engine looks names up in the thread that plans."""
    token = _shown.set({**_shown.get(), **tables})
    try:
        yield
    finally:
        _shown.reset(token)


def shown_rows(found: Sequence[GivenRows]) -> AbstractContextManager[None]:
    """Plan with the rows of searches, under the names that they have."""
    return shown({each.name: filled(each) for each in found}) if found else nullcontext()


def numbered() -> list[str]:
    """Return the schemas of the calls in a statement's own text."""
    return [f"{PREFIX}{number}" for number in range(1, MOST_CALLS + 1)]


def schema_name(number: int, view: TableName | None = None) -> str:
    """Return the schema of a call in a statement, or in the text of a view."""
    if view is None:
        return f"{PREFIX}{number}"
    plain = _NOT_IN_WORDS.sub("_", view.lower())
    unique = plain if plain == view else f"{plain}${zlib.crc32(view.encode()):x}"
    return f"{PREFIX}{number}${unique}"


def is_stand_in(name: str) -> bool:
    """Return whether a table stands for a call."""
    return name.startswith(PREFIX)


def without_schemas(message: str) -> str:
    """Leave the schemas of calls out of a message."""
    return _IN_MESSAGES.sub("", message)


def named(number: int, call: TableCall, view: TableName | None = None) -> TableName:
    """Return the name of the table that stands for a call."""
    return TableName(f"{schema_name(number, view)}.{call.function}")


def empty(schema: pa.Schema) -> Table:
    """Return a table without rows."""
    return _table([pa.RecordBatch.from_pylist([], schema=schema)])


def filled(given: GivenRows) -> Table:
    """Return a table with the rows of a search; columns that were not fetched are NULL."""
    rows = given.rows
    schema = given.schema or rows.schema
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    made = pa.Table.from_arrays(columns, schema=schema).combine_chunks()
    return _table(made.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)])


def _table(batches: Sequence[pa.RecordBatch]) -> Table:
    context, name = _scratch(), f"rows{next(_numbers)}"
    context.register_record_batches(name, [list(batches)])
    try:
        return context.catalog().schema().table(name)
    finally:
        context.deregister_table(name)


@cache
def _scratch() -> SessionContext:
    return SessionContext()
