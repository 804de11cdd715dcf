"""The types of columns in SQLAlchemy's terms, and the SQL that names them.

Imported with the dialect only: SQLAlchemy comes with the extra `sqlalchemy`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds
from sqlalchemy import types
from sqlalchemy.sql.compiler import GenericTypeCompiler

_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[], types.TypeEngine[Any]]], ...] = (
    (kinds.is_boolean, types.Boolean),
    (kinds.is_int8, types.SmallInteger),
    (kinds.is_int16, types.SmallInteger),
    (kinds.is_uint8, types.SmallInteger),
    (kinds.is_int32, types.Integer),
    (kinds.is_uint16, types.Integer),
    (kinds.is_int64, types.BigInteger),
    (kinds.is_uint32, types.BigInteger),
    (kinds.is_uint64, lambda: types.Numeric(20, 0)),
    (kinds.is_float16, types.REAL),
    (kinds.is_float32, types.REAL),
    (kinds.is_float64, types.Double),
    (kinds.is_string, types.String),
    (kinds.is_large_string, types.String),
    (kinds.is_string_view, types.String),
    (kinds.is_binary, types.LargeBinary),
    (kinds.is_large_binary, types.LargeBinary),
    (kinds.is_fixed_size_binary, types.LargeBinary),
    (kinds.is_binary_view, types.LargeBinary),
    (kinds.is_date, types.Date),
    (kinds.is_time, types.Time),
)
_IS_LIST = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)


def of_arrow(kind: pa.DataType) -> types.TypeEngine[Any]:
    """Return the type of an Arrow type.

    Structs, maps and durations have none, so they are `NullType`: their values arrive as Python
    objects, but SQLAlchemy does not convert them.
    """
    if kinds.is_dictionary(kind):
        return of_arrow(kind.value_type)
    if kinds.is_timestamp(kind):
        return types.DateTime(timezone=kind.tz is not None)
    if kinds.is_decimal(kind):
        return types.Numeric(kind.precision, kind.scale)
    if any(is_list(kind) for is_list in _IS_LIST):
        item = of_arrow(kind.value_type)
        dimensions = 1
        if isinstance(item, types.ARRAY):
            dimensions, item = (item.dimensions or 1) + 1, item.item_type
        return types.ARRAY(item, dimensions=dimensions)
    return next((make() for is_kind, make in _TYPES if is_kind(kind)), types.NullType())


class Bytes(types.LargeBinary):
    """Bytes, which the driver takes as they are: its DB-API has no `Binary`."""

    def bind_processor(self, dialect: object) -> None:
        """Convert nothing."""


class CarawayTypeCompiler(GenericTypeCompiler):
    """Names types as the runtime's SQL does, such as in casts."""

    def visit_float(self, type_: object, **kw: object) -> str:
        # FLOAT has 32 bits here.
        return "DOUBLE"

    def visit_FLOAT(self, type_: object, **kw: object) -> str:
        return "DOUBLE"

    def visit_double(self, type_: object, **kw: object) -> str:
        return "DOUBLE"

    def visit_large_binary(self, type_: object, **kw: object) -> str:
        return "BYTEA"

    def visit_BLOB(self, type_: object, **kw: object) -> str:
        return "BYTEA"

    def visit_datetime(self, type_: Any, **kw: object) -> str:
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_DATETIME(self, type_: object, **kw: object) -> str:
        return self.visit_datetime(type_, **kw)

    def visit_string(self, type_: object, **kw: object) -> str:
        return "VARCHAR"

    def visit_text(self, type_: object, **kw: object) -> str:
        return "VARCHAR"

    def visit_uuid(self, type_: object, **kw: object) -> str:
        return "VARCHAR"

    def visit_JSON(self, type_: object, **kw: object) -> str:
        return "VARCHAR"

    def visit_ARRAY(self, type_: Any, **kw: object) -> str:
        return f"{self.process(type_.item_type, **kw)}{'[]' * (type_.dimensions or 1)}"


def columns_of(
    schema: pa.Schema, comments: Mapping[str | None, str]
) -> Sequence[dict[str, object]]:
    """Describe the columns of a table as SQLAlchemy's `get_columns` does."""
    return [
        {
            "name": column.name,
            "type": of_arrow(column.type),
            "nullable": column.nullable,
            "default": None,
            "autoincrement": False,
            "comment": comments.get(column.name),
        }
        for column in schema
    ]
