import pytest

from caraway_core.partitions import keys
from caraway_core.partitions.keys import BucketKey, ByColumn, ByExpression


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("bucket(10, a)", BucketKey(10, "a")),
        (' BUCKET ( 1000000,"My ""col""" )', BucketKey(1_000_000, 'My "col"')),
        ("bucket(007, a)", BucketKey(7, "a")),
        ("bucket", ByColumn("bucket")),
        (" region ", ByColumn("region")),
        ("Größe", ByColumn("Größe")),
        ('"order date"', ByColumn("order date")),
        (" date_trunc('day', at) ", ByExpression("date_trunc('day', at)")),
        ("a.b", ByExpression("a.b")),
        ("a || ')' || \"(\"", ByExpression("a || ')' || \"(\"")),
        ("tags[1]", ByExpression("tags[1]")),
        (r"a || E'\')'", ByExpression(r"a || E'\')'")),
        ("a || $$;)$$", ByExpression("a || $$;)$$")),
        ("`a)`", ByExpression("`a)`")),
    ],
)
def test_terms(text: str, term: keys.Term) -> None:
    assert keys.parse(text) == term


def test_terms_may_be_named() -> None:
    assert keys.parse("bucket(2, a)", "cut") == BucketKey(2, "a", "cut")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "must be a column or an expression, not empty"),
        ("bucket(0, a)", r"has no such number of buckets: 1 to 1,000,000"),
        ("bucket(1000001, a)", "has no such number"),
        (f"bucket({'9' * 5000}, a)", "has no such number"),
        ("bucket(-1, a)", r"is not a bucket; write 'bucket\(n, column\)'"),
        ("bucket(a, 10)", "is not a bucket"),
        ("bucket(10)", "is not a bucket"),
        ("bucket(10, lower(a))", "is not a bucket"),
        ("lower(a", "has a bracket that is never closed"),
        ("lower(a))", "closes a bracket that it does not open"),
        ("(a]", "closes a bracket that it does not open"),
        ("a || 'b", "has a quote that is never closed"),
        ("a; DROP TABLE b", "holds ';'"),
        ("a -- b", "holds '--'"),
        ("a /* b", "holds '/\\*'"),
        ("a /* /* b */ */", "holds '/\\*'"),
    ],
)
def test_what_is_no_term(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        keys.parse(text)


def test_columns() -> None:
    assert keys.columns("id") == ("id",)
    assert keys.columns(' ( a , "b,c" ) ') == ("a", "b,c")


@pytest.mark.parametrize("text", ["", "()", "a, ", "a b", "lower(a)", "(a, b", "1"])
def test_what_is_no_column(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a column; write 'a', or '\(a, b\)'"):
        keys.columns(text)


def test_column_is_named_once() -> None:
    with pytest.raises(ValueError, match="names a column twice"):
        keys.columns('(a, "a")')
