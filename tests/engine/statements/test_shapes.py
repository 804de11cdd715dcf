"""Which literals are taken out of a statement."""

import pytest

from caraway_core.statements import Statement
from caraway_engine.statements import shapes
from caraway_engine.statements.shapes import StatementShape
from tests.kit.hostile import UNCLOSED
from tests.kit.sql_texts import HIDING, SHOWING


def shape(condition: str, **parameters: int | float | str) -> StatementShape | None:
    return shapes.of(Statement(f"SELECT a FROM t WHERE {condition}", parameters=parameters))


@pytest.mark.parametrize(
    ("condition", "text", "values"),
    [
        ("k = 5", "k = \x00i", (5,)),
        ("k = -5", "k = \x00i", (-5,)),
        ("k =- 5", "k =- \x00i", (5,)),
        ("k = l -5", "k = l -\x00i", (5,)),
        ("k IN (-1,-2)", "k IN (\x00i,\x00i)", (-1, -2)),
        ("k = 'it''s'", "k = \x00s", ("it's",)),
        ("k = '' AND l=''''", "k = \x00s AND l=\x00s", ("", "'")),
        ('k = 1 AND t."b 2" = 3;', 'k = \x00i AND t."b 2" = \x00i;', (1, 3)),
        ("k = 1 LIMIT 10 OFFSET 2", "k = \x00i LIMIT 10 OFFSET 2", (1,)),
        ("k$1 = 5", "k$1 = \x00i", (5,)),
        ("k2 = 5", "k2 = \x00i", (5,)),
        ("größe = 5", "größe = \x00i", (5,)),
    ],
)
def test_literals_are_taken_out(condition: str, text: str, values: tuple[int | str, ...]) -> None:
    assert shape(condition) == StatementShape(f"SELECT a FROM t WHERE {text}", values)


def test_bound_values_are_literals() -> None:
    found = shape("k = :k AND l = $l LIMIT 3", k=5, l="x")
    assert found == StatementShape(
        "SELECT a FROM t WHERE k = \x00i AND l = \x00s LIMIT 3", (5, "x")
    )
    assert shape("k = ?", **{"1": 1.5}) is None


@pytest.mark.parametrize(
    "condition",
    [
        "k = 1.5",
        "k = 1e5",
        "k = 5x",
        "k = 1_000",
        "k = 0x1F",
        "k = 5L",
        "k = 1234567890123456789",
        r"k = '\'",
        "k = 'a",
        "k = 'a'b",
        "k = 'a'::text",
        "k = E'a'",
        "k = date'2020-01-01'",
        "k = $$a$$",
        "k = `a`",
        'k = "a',
        "k = a[1]",
        "k = 1 -- a",
        "k = 1 /* a */",
        "k = 1; SELECT 2",
        "k = @a AND l = 1",
        "k = $1",
        "k = l",
    ],
)
def test_what_is_not_certain_has_no_shape(condition: str) -> None:
    assert shape(condition) is None


@pytest.mark.parametrize("text", [*HIDING, *SHOWING])
def test_a_shape_holds_only_what_is_a_literal(text: str) -> None:
    found = shape(f"k = {text}")
    unquoted = text[1:-1].replace("''", "'")
    assert found is None or found.values in ((1,), (unquoted,))


@pytest.mark.parametrize("text", UNCLOSED)
def test_texts_without_ends_are_read_once(text: str) -> None:
    assert shape(f"k = {text[:4_000]}") is None
    assert shape(f"k = {text}") is None
