import pytest

from caraway_core.manifest.texts import names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Orders", "orders"),
        ("Sales.Orders", "sales.orders"),
        ('"Orders"', "Orders"),
        ('Sales."Big Orders"', "sales.Big Orders"),
        ("ÄB", "Äb"),
        ("a-b", "a-b"),
    ],
)
def test_canonical_names(text: str, expected: str) -> None:
    assert names.canonical(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        "a.b.c",
        "a b",
        '"a',
        '""',
        '"a.b"',
        '"a""b"',
        "a/b",
        "Runtime.x",
        '"runtime".x',
        "information_schema.t",
        '"a\x00b"',
        "x" * 200,
    ],
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a table name|belongs to the runtime"):
        names.canonical(text)


@pytest.mark.parametrize(
    ("text", "connector", "path"),
    [
        ("file:/a", "file", "/a"),
        ("file:///a", "file", "/a"),
        ("file://a", "file", "a"),
        ("file:a", "file", "a"),
        ("file:./a/", "file", "./a/"),
        ("file/a", "file", "a"),
        ("s3://b/k", "s3", "b/k"),
        ("S3:b/k", "s3", "b/k"),
        ("http://h:80/p?a=b:c", "http", "h:80/p?a=b:c"),
        ("abfss://c@a.host/p", "abfss", "c@a.host/p"),
        ("memory", "memory", ""),
        ("memory:", "memory", ""),
    ],
)
def test_origins(text: str, connector: str, path: str) -> None:
    assert names.split_origin(text) == names.Origin(connector, path)


@pytest.mark.parametrize("text", ["", "/a", "./a", "../a", ":a", "a b", "1:2"])
def test_origins_without_a_connector(text: str) -> None:
    with pytest.raises(ValueError, match="names no connector; write '<connector>:<path>'"):
        names.split_origin(text)
