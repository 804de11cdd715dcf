"""Keys of an ORDER BY are read as SQL reads them."""

import pytest

from caraway_core.sqltext.sort_keys import NamedKey, bare_name, sort_keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a", [NamedKey("a")]),
        ("a desc", [NamedKey("a", "DESC")]),
        (" a\tASC nulls\nlast , b", [NamedKey("a", "ASC", "LAST"), NamedKey("b")]),
        ("unit price DESC", [NamedKey("unit price", "DESC")]),
        ('"a, b" DESC, c', [NamedKey('"a, b"', "DESC"), NamedKey("c")]),
        ('"say ""hi""" ASC', [NamedKey('"say ""hi"""', "ASC")]),
        ("desc", [NamedKey("desc")]),
        ("desc desc", [NamedKey("desc", "DESC")]),
        ("nulls first", [NamedKey("nulls first")]),
        ("a nulls first desc", [NamedKey("a nulls first", "DESC")]),
        ("f(a, b)", [NamedKey("f(a"), NamedKey("b)")]),
        ("", [NamedKey("")]),
        ("a,,b,", [NamedKey("a"), NamedKey(""), NamedKey("b"), NamedKey("")]),
    ],
)
def test_keys_are_names_directions_and_places_of_null(text: str, keys: list[NamedKey]) -> None:
    assert list(sort_keys(text)) == keys


@pytest.mark.parametrize(
    ("name", "bare"),
    [("a", "a"), ('"a"', "a"), ('"a""b"', 'a"b'), ('""', ""), ('"', '"'), ('"a', '"a')],
)
def test_double_quotes_are_taken_from_a_name(name: str, bare: str) -> None:
    assert bare_name(name) == bare
