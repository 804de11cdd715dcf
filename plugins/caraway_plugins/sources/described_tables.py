"""Tables that servers describe by the columns of an answer: their names, and their columns."""

import hashlib
import re
from collections.abc import Sequence

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.loading import registry
from caraway_core.protocols.sources import SourceRequest
from caraway_core.sqltext.grammar import CLOSED_QUOTED_NAME
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_plugins.sources import database_files, params, schemas
from caraway_plugins.sources.foreign_dialects import DIALECTS

types = pa.types
_PART = rf'(?:{CLOSED_QUOTED_NAME}|[^".]+)'
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")
_ABSENT = re.compile(
    "not found|n(?:o|')t exist|unknown table|no such|no table|invalid object name|42S02",
    re.IGNORECASE,
)


def relation(request: SourceRequest) -> tuple[str, ...]:
    """Return the parts of the name of a table.

    Raises:
        DatasetError: it is not the name of a table.
    """
    written = request.path.strip()
    if not _NAME.fullmatch(written):
        kind = request.connector
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': '{request.path}' is not the name of a table; write "
            f"'{kind}:table', '{kind}:schema.table' or '{kind}:catalog.schema.table', and names "
            "with dots in double quotes",
        )
    parts = re.findall(_PART, written)
    return tuple(each[1:-1].replace('""', '"') if each.startswith('"') else each for each in parts)


def quoted(name: str) -> str:
    """Return a name as SQL reads it."""
    return '"' + name.replace('"', '""') + '"'


def column_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column: moments are in UTC, whichever zone the server shows them in."""
    if isinstance(type_, pa.BaseExtensionType):
        return column_type(type_.storage_type)
    if types.is_null(type_):
        return pa.string()
    if types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    return schemas.plain(type_)


def dialect(request: SourceRequest, *names: str) -> str:
    """Return the dialect that the first of some params names; none, if none of them is set.

    Raises:
        DatasetError: there is no such dialect.
    """
    name = params.checked(request.connector, request.params).text(*names) or "none"
    if name not in DIALECTS:
        fault = registry.unknown("dialect", name, DIALECTS)
        raise DatasetError("invalid", f"dataset '{request.name}': params.{names[0]}: {fault}")
    return name


def table(
    request: SourceRequest,
    reader: str,
    columns: Sequence[RemoteColumn],
    login: dict[str, str],
) -> RemoteTable:
    """Return a table with all of its columns, or with those that the dataset declares.

    Raises:
        DatasetError: it lacks one of them, or has none, or one has a type that the engine lacks.
    """
    if not columns:
        raise DatasetError("schema", f"dataset '{request.name}': its table has no columns")
    chosen = database_files.chosen(request, {each.name: each for each in columns})
    found = tuple(_as_declared(*each) for each in chosen)
    for each in found:
        if types.is_union(each.type) or types.is_run_end_encoded(each.type):
            raise DatasetError(
                "unsupported",
                f"dataset '{request.name}': column '{each.name}' has the type {each.type}, which "
                "the engine has not; name the other columns under 'columns'",
            )
    schema = pa.schema([pa.field(each.name, each.type) for each in found])
    return RemoteTable(schema, reader, relation(request), found, login)


def fingerprint(columns: Sequence[RemoteColumn]) -> str:
    """Return a text that changes when the columns do."""
    parts = [(each.name, str(each.type)) for each in columns]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def is_absent(said: str) -> bool:
    """Return whether a message of a server says that there is no such table."""
    return bool(_ABSENT.search(said))


def _as_declared(column: RemoteColumn, type_: pa.DataType | None) -> RemoteColumn:
    if type_ is None or type_ == column.type:
        return column
    # Some databases have decimals only; the reader checks that their values fit.
    is_whole = types.is_decimal(column.type) and column.type.scale == 0 and types.is_integer(type_)
    return RemoteColumn(column.name, type_, is_whole and column.is_comparable, column.is_text)
