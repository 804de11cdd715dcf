"""Parameters: from rows of Arrow columns to the values that a statement is run with."""

from collections.abc import Mapping

import pyarrow as pa

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import ParametersError
from caraway_core.sqltext import placeholders
from caraway_core.sqltext.placeholders import Placeholders

Values = dict[str, object]


def columns(found: Placeholders, rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the column of each placeholder: by position where these are numbered.

    Raises:
        ParametersError: there are too few columns or too many, or one has another name.
    """
    names = sorted(found.names, key=_place)
    given = [name.lstrip("$:") for name in rows.column_names]
    if len(given) != len(names):
        raise ParametersError(
            f"the statement has {len(names)} parameters, but {len(given)} columns are bound"
        )
    if set(given) == set(names) and len(set(given)) == len(given):
        return dict(zip(given, rows.columns, strict=True))
    is_named = any(name.startswith(("$", ":")) for name in rows.column_names)
    if is_named or any(placeholders.number_of(name) is None for name in names):
        raise ParametersError(
            f"the columns bound are {_spell(given)}, but the parameters of the statement are "
            f"{_spell(names)}; name each column as its parameter"
        )
    return dict(zip(names, rows.columns, strict=True))


def row(bound: dict[str, pa.ChunkedArray], index: int) -> Values:
    """Return the values of one row."""
    return {name: _value(column, index) for name, column in bound.items()}


def values(sql: str, rows: pa.Table) -> Values:
    """Return the values of the first row for the placeholders of a statement.

    Raises:
        ParametersError: as in `columns`.
    """
    return row(columns(placeholders.find(sql), rows), 0)


def schema(found: Placeholders, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Describe the parameters of a statement; types that are not known are null."""
    names = sorted(found.names, key=_place)
    return pa.schema([pa.field(f"${name}", types.get(name, pa.null())) for name in names])


def _value(column: pa.ChunkedArray, index: int) -> object:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.slice(index, 1).cast(kind)
        index = 0
    is_plain = (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )
    value = column[index]
    if pa.types.is_null(kind) or (is_plain and value.is_valid):
        return value.as_py()
    # NULL has a type as well: an INSERT does not take one without.
    return ArrowValue.from_array(column.slice(index, 1).combine_chunks())


def _place(name: str) -> tuple[bool, int, str]:
    """Return what to sort by: numbers come first."""
    number = placeholders.number_of(name)
    return number is None, number or 0, name


def _spell(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
