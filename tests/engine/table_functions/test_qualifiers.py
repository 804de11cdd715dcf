import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.sqltext import lexer
from caraway_engine.table_functions import qualifiers


def _names(text: str) -> list[str | None]:
    return [qualifiers.name_of(each) for each in lexer.significant(text)]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_quoted_name_is_read_as_it_is(name: str) -> None:
    (token,) = lexer.significant(qualifiers.quoted(name))
    assert qualifiers.name_of(token) == name


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("s.a = 1 AND s.b = 2", [0, 6]),
        ("a = 1", []),
        ('"s".a = t.s', None),
        ("s = 1", None),
        ("s.a IN (SELECT s FROM t)", None),
        ("s.a IN (SELECT x.a FROM s AS x)", None),
        ("'s.a' = s.a", [2]),
        ("s.a = u.b AND u.c = 1", [0, 4, 8]),
    ],
)
def test_columns_are_owned_only_where_nothing_else_has_the_name(
    text: str, places: list[int] | None
) -> None:
    assert qualifiers.owned(_names(text), {"s", "u"}) == places


@pytest.mark.parametrize(
    ("text", "aliased"),
    [
        ("t.a IN (SELECT u.b FROM t AS u)", '"u".a IN (SELECT u.b FROM t AS u)'),
        ("t.a IN (SELECT u.b FROM v AS u)", "t.a IN (SELECT u.b FROM v AS u)"),
        ("CAST(t.a AS INT) = 1", "CAST(t.a AS INT) = 1"),
        ("'t.a' = t", "'t.a' = t"),
        ('t.t FROM t AS "o\'x"', '"o\'x".t FROM t AS "o\'x"'),
    ],
)
def test_columns_are_qualified_by_the_alias_of_their_table(text: str, aliased: str) -> None:
    assert qualifiers.aliased(text) == aliased


@pytest.mark.parametrize(
    ("before", "is_inside"),
    [
        ("a = ", False),
        ("a IN (", False),
        ("a IN (SELECT ", True),
        ("a IN (SELECT b FROM t) AND ", False),
        ("a IN (SELECT b FROM t WHERE (c = 1) AND ", True),
        ("EXISTS (SELECT 1 FROM (SELECT 2) x WHERE ", True),
        ("'(SELECT' = ", False),
        ('"(SELECT" = ', False),
    ],
)
def test_what_is_inside_of_a_subquery(before: str, is_inside: bool) -> None:
    assert qualifiers.is_in_subquery(list(lexer.significant(before))) is is_inside


def test_other_names_are_written_in_the_place_of_tokens() -> None:
    text = "s.a /* s */ = 's' AND \"s\".b"
    tokens = [each for each in lexer.significant(text) if qualifiers.name_of(each) == "s"]
    assert qualifiers.requalified(text, tokens, '"t"') == '"t".a /* s */ = \'s\' AND "t".b'
