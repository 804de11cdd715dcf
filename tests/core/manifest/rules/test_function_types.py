"""Types of functions: the names of columns and of Arrow, as casts that the engine runs."""

from typing import Any

import pytest
from datafusion import SessionContext

from caraway_core.manifest.rules import function_types

TYPES = [
    ("boolean", "true", "bool", {"type": "boolean"}),
    ("int8", "1", "int8", {"type": "integer"}),
    ("Int64", "1", "int64", {"type": "integer"}),
    ("int", "1", "int32", {"type": "integer"}),
    ("smallint unsigned", "1", "uint16", {"type": "integer"}),
    ("uint64", "1", "uint64", {"type": "integer"}),
    ("float", "1", "float", {"type": "number"}),
    ("double", "1", "double", {"type": "number"}),
    ("decimal(38, 10)", "1", "decimal128(38, 10)", {"type": "number"}),
    ("Decimal128(9, 2)", "1", "decimal128(9, 2)", {"type": "number"}),
    ("decimal256(76, 20)", "1", "decimal256(76, 20)", {"type": "number"}),
    ("utf8", "'a'", "string", {"type": "string"}),
    ("large_utf8", "'a'", "string", {"type": "string"}),
    ("binary", "'a'", "binary", {"type": "string"}),
    ("date32", "'2024-01-01'", "date32[day]", {"type": "string", "format": "date"}),
    ("time(3)", "'10:00:00'", "time32[ms]", {"type": "string"}),
    ("timestamp(us, utc)", "'2024-01-01'", "timestamp[us, tz=UTC]",
     {"type": "string", "format": "date-time"}),
    ('Timestamp(Nanosecond, None)', "'2024-01-01'", "timestamp[ns]",
     {"type": "string", "format": "date-time"}),
    ("list<int64>", "[1]", "list<item: int64>", {"type": "array", "items": {"type": "integer"}}),
    ("List(Utf8)", "['a']", "list<item: string>", {"type": "array", "items": {"type": "string"}}),
    ("double[]", "[1]", "list<item: double>", {"type": "array", "items": {"type": "number"}}),
    ("struct<First: utf8, n: decimal(9, 2)>", "named_struct('First', 'x', 'n', 1)",
     "struct<First: string, n: decimal128(9, 2)>",
     {"type": "object", "properties": {"First": {"type": "string"}, "n": {"type": "number"}}}),
    ("list<struct<a: int>>", "[named_struct('a', 1)]", "list<item: struct<a: int32>>",
     {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "arrow", "schema"), TYPES)
def test_types(text: str, value: str, arrow: str, schema: dict[str, Any]) -> None:
    made = function_types.cast(text)
    rows = SessionContext().sql(f"SELECT {made.cast_of(value)} AS v").to_arrow_table()
    found = str(rows.schema.field("v").type)
    # The engine may keep texts as views.
    assert found.replace("string_view", "string").replace("binary_view", "binary") == arrow
    assert made.type == text
    assert function_types.schema(text, None, None) == schema
    described = function_types.schema(text, "d", "x")
    assert described == {**schema, "description": "d", "default": "x"}


@pytest.mark.parametrize(
    "text",
    ["", "money", "struct<>", "struct<a int>", "struct<a: int, a: int>", "list<>", "list<money>",
     "timestamp(us, cet)", "decimal(99, 1)", "int64, text", "x" * 5_000, "struct<a: int>)"],
)  # fmt: skip
def test_texts_that_are_no_types(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a (column )?type"):
        function_types.cast(text)
