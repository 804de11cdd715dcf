"""Namespaces and names of tables, as clients of the Iceberg catalog write them."""

import pytest

from caraway_core.ids import TableName
from caraway_gateway.iceberg import names
from caraway_gateway.iceberg.names import NamespaceFormatError, QualifiedName

NAMES = [TableName(each) for each in ("b", "sales.orders", "a", "sales.lines", "x.y.z")]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("public", ("public",)),
        ("a.b", ("a", "b")),
        ("a\x1fb", ("a", "b")),
        ("a.b\x1fc", ("a.b", "c")),
        ("ä ö", ("ä ö",)),
        ("a" * 512, ("a" * 512,)),
    ],
)
def test_a_namespace_has_parts(text: str, parts: tuple[str, ...]) -> None:
    assert names.parse(text) == parts


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "\x1f", "a\x1f", "a\x1f\x1fb", "a\0", "a\nb", "a" * 513]
)
def test_what_is_no_namespace_is_refused(text: str) -> None:
    with pytest.raises(NamespaceFormatError, match="the namespace is not valid"):
        names.parse(text)


def test_names_without_a_schema_are_public() -> None:
    assert QualifiedName.from_name(TableName("a")) == QualifiedName("public", "a", TableName("a"))
    assert QualifiedName.from_name(TableName("x.y.z")).schema == "x.y"


def test_schemas_are_sorted_and_public_is_always_there() -> None:
    assert names.schemas(NAMES) == ["public", "sales", "x.y"]
    assert names.schemas([]) == ["public"]


def test_the_names_of_a_schema_are_sorted() -> None:
    assert list(names.inside(NAMES, "sales")) == ["lines", "orders"]
    assert names.inside(NAMES, "sales")["orders"].known_as == "sales.orders"
    assert list(names.inside(NAMES, "public")) == ["a", "b"]
    assert names.inside(NAMES, "other") == {}


def test_what_is_missing_is_named() -> None:
    assert names.no_namespace(("a", "b")).message == (
        "there is no namespace 'a.b'; list the namespaces"
    )
    assert names.no_table("t", ("a",)).message == "there is no table 't' in namespace 'a'"
    assert names.no_view("v", ("a",)).message == "there is no view 'v' in namespace 'a'"
