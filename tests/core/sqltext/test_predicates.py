import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import lexer, predicates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 1", "(a > 1\n)"),
        ("WHERE a > 1", "(      a > 1\n)"),
        ("  -- c\n where a > 1", "(  -- c\n       a > 1\n)"),
        ('"where" = 1', '("where" = 1\n)'),
        ("a = ';' AND b = ')'", "(a = ';' AND b = ')'\n)"),
        ("a = 1 -- no more", "(a = 1 -- no more\n)"),
        ("a IN (SELECT x[1] FROM u)", "(a IN (SELECT x[1] FROM u)\n)"),
        ("a = 'it''s' /* ( */", "(a = 'it''s' /* ( */\n)"),
        ("a = $$;)$$", "(a = $$;)$$\n)"),
    ],
)
def test_a_predicate_is_put_in_parentheses(text: str, expected: str) -> None:
    assert predicates.in_parentheses(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("WHERE", "is empty"),
        ("-- only", "is empty"),
        ("()", "is empty"),
        ("a = 1;", "remove the ';'"),
        ("a = 1; DROP TABLE t", "remove the ';'"),
        ("1 = 1) OR (1 = 1", "did not open"),
        ("1 = 1) UNION SELECT (1", "did not open"),
        ("a = 1)", "did not open"),
        ("(a = 1", "not closed"),
        ("a[1) = 2", "did not open"),
        ("a = 'b", "not closed"),
        ('"a = 1', "not closed"),
        ("a = 1 /* b", "not closed"),
        ("a = $$ b", "not closed"),
        ("a = e'\\", "not closed"),
        ("a = $1", "placeholder \\$1"),
        ("a = :id", "placeholder :id"),
        ("a = ?", "placeholder \\?"),
        ("a = $vector", "placeholder \\$vector"),
    ],
)
def test_what_is_not_one_predicate_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        predicates.in_parentheses(text)


def test_conditions_are_counted_and_texts_are_not() -> None:
    most = " OR ".join(["a = 'x OR y AND z'"] * (predicates.MOST_JOINED + 1))
    assert predicates.in_parentheses(f"WHERE {most}").endswith("'x OR y AND z'\n)")
    with pytest.raises(
        InvalidQueryError, match=r"where has more than 500 ANDs and ORs; write `col"
    ):
        predicates.in_parentheses(f"{most} and b")


@given(st.text(alphabet="a1='\"()[]{};-/*\n$:?` WHERE", max_size=30))
def test_no_text_ends_its_parentheses(text: str) -> None:
    try:
        made = predicates.in_parentheses(text)
    except InvalidQueryError:
        return
    depth = 0
    found = [token for token in lexer.tokens(f"SELECT {made} AS x") if token.kind != "comment"]
    assert [token.text for token in found[-2:]] == ["AS", "x"]
    for token in found[1:-2]:
        depth += {"open": 1, "close": -1}.get(token.kind, 0)
        assert depth > 0 or token is found[-3]
    assert depth == 0
