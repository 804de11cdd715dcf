"""Checks that appended rows have the columns of the rows that are already loaded."""

from collections.abc import Collection, Iterable

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName

_REMEDY = "request a refresh with refresh_mode 'full', which loads all rows with the new columns"


def check_there(
    name: TableName, source: pa.Schema, loaded: pa.Schema, generated: Collection[str] = ()
) -> None:
    """Check that the source of a dataset still has all loaded columns but the generated ones.

    Raises:
        DatasetError: a column is missing.
    """
    known = {*source.names, *generated}
    if missing := [column for column in loaded.names if column not in known]:
        columns = ", ".join(f"'{column}'" for column in missing)
        raise DatasetError(
            "schema", f"dataset '{name}': its source has no column {columns} any more; {_REMEDY}"
        )


def check_named(name: TableName, source: pa.Schema, key: str, columns: Iterable[str]) -> None:
    """Check that the columns that a key of the manifest names exist.

    Raises:
        DatasetError: a column is missing.
    """
    for column in columns:
        if column not in source.names:
            known = ", ".join(source.names)
            raise DatasetError(
                "schema",
                f"dataset '{name}': its `{key}` names column '{column}', which its source does "
                f"not have; columns are: {known}",
            )


def check_kept(name: TableName, loaded: pa.Schema, made: pa.Schema) -> None:
    """Check that appended rows did not change the kind of a column.

    Numbers may become wider, and strings may change their encoding.

    Raises:
        DatasetError: a column changed its kind.
    """
    for field in loaded:
        kind = made.field(field.name).type
        if kind != field.type and _kind(kind) != _kind(field.type):
            raise DatasetError(
                "schema",
                f"dataset '{name}': column '{field.name}' is of type {field.type}, but "
                f"newer rows have another type, so that both would become {kind}; {_REMEDY}",
            )


def _kind(of: pa.DataType) -> str:
    types = pa.types
    if types.is_dictionary(of):
        return _kind(of.value_type)
    if types.is_integer(of) or types.is_floating(of) or types.is_decimal(of):
        return "number"
    if types.is_string(of) or types.is_large_string(of) or types.is_string_view(of):
        return "text"
    if types.is_timestamp(of) or types.is_date(of):
        return "time"
    return str(of)
