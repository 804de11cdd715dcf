"""Tables that servers describe: their names, their columns, and declared types."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteColumn
from caraway_plugins.sources import described_tables


def request(path: str = "t", *declared: pa.Field) -> SourceRequest:
    at = Path("/")
    return SourceRequest(TableName("sales"), "odbc", path, {}, declared, "read", at, at)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("t", ("t",)),
        (" s.t ", ("s", "t")),
        ("c.s.t", ("c", "s", "t")),
        ('"a.b".t', ("a.b", "t")),
        ('"a""b"', ('a"b',)),
        ("a b.c-d", ("a b", "c-d")),
        ("Ä.名", ("Ä", "名")),
        ("t; DROP TABLE u", ("t; DROP TABLE u",)),
    ],
)
def test_names_have_up_to_three_parts(path: str, parts: tuple[str, ...]) -> None:
    assert described_tables.relation(request(path)) == parts


@pytest.mark.parametrize("path", ["", " ", ".", "a.", ".a", "a..b", "a.b.c.d", '"a', 'a"b', '"a"b'])
def test_other_names(path: str) -> None:
    with pytest.raises(DatasetError, match="is not the name of a table"):
        described_tables.relation(request(path))


@pytest.mark.parametrize("name", ["a", 'a"b', '"', "a.b", "'; --", ""])
def test_quoted_names_are_read_again(name: str) -> None:
    found = described_tables.quoted(name)
    assert found[1:-1].replace('""', '"') == name
    if name:
        assert described_tables.relation(request(found)) == (name,)


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (pa.null(), pa.string()),
        (pa.timestamp("us", "America/New_York"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ms"), pa.timestamp("ms")),
        (pa.int32(), pa.int32()),
        (pa.json_(), pa.string()),
    ],
)
def test_types(type_: pa.DataType, found: pa.DataType) -> None:
    assert described_tables.column_type(type_) == found


def columns(**types: Any) -> list[RemoteColumn]:
    return [RemoteColumn(name, type_, is_comparable=True) for name, type_ in types.items()]


def test_tables_have_all_columns_or_those_declared() -> None:
    found = described_tables.table(request("s.t"), "odbc", columns(a=pa.int64(), b=pa.string()), {})
    assert (found.schema.names, found.relation) == (["a", "b"], ("s", "t"))
    declared = request("t", pa.field("b", pa.string()))
    found = described_tables.table(declared, "odbc", columns(a=pa.int64(), b=pa.string()), {})
    assert found.schema.names == ["b"]


@pytest.mark.parametrize(
    ("type_", "declared", "is_comparable"),
    [
        (pa.int64(), pa.int64(), True),
        (pa.decimal128(9, 0), pa.int64(), True),
        (pa.decimal128(9, 2), pa.int64(), False),
        (pa.int64(), pa.int32(), False),
        (pa.string(), pa.date32(), False),
    ],
)
def test_columns_of_other_types_are_not_compared_by_the_database(
    type_: pa.DataType, declared: pa.DataType, is_comparable: bool
) -> None:
    asked = request("t", pa.field("a", declared))
    (found,) = described_tables.table(asked, "odbc", columns(a=type_), {}).columns
    assert (found.type, found.is_comparable) == (declared, is_comparable)


@pytest.mark.parametrize(
    ("types", "type_", "said"),
    [
        ({}, "schema", "its table has no columns"),
        ({"a": pa.sparse_union([pa.field("x", pa.int64())])}, "unsupported", "the engine has not"),
        ({"a": pa.run_end_encoded(pa.int32(), pa.int64())}, "unsupported", "column 'a' has the"),
    ],
)
def test_tables_that_are_not_read(types: dict[str, Any], type_: str, said: str) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        described_tables.table(request(), "odbc", columns(**types), {})
    assert caught.value.type == type_


def test_a_fingerprint_is_that_of_names_and_types() -> None:
    one = described_tables.fingerprint(columns(a=pa.int64(), b=pa.string()))
    assert one == described_tables.fingerprint(columns(a=pa.int64(), b=pa.string()))
    for other in (columns(a=pa.int64()), columns(b=pa.string(), a=pa.int64()),
                  columns(a=pa.int32(), b=pa.string())):  # fmt: skip
        assert described_tables.fingerprint(other) != one


@pytest.mark.parametrize(
    ("said", "is_absent"),
    [
        ("Table 't' doesn't exist", True),
        ('relation "t" does not exist', True),
        ("[42S02] Invalid object name 't'", True),
        ("no such table: t", True),
        ("syntax error", False),
        ("permission denied", False),
    ],
)
def test_messages_of_tables_that_are_absent(said: str, is_absent: bool) -> None:
    assert described_tables.is_absent(said) is is_absent
