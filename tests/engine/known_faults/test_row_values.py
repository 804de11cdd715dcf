"""Rows are compared column by column, and NULL makes a comparison NULL."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import row_values
from tests.engine.known_faults.memory import Asked

_COLUMNS = ("k", "v", "w")
_VALUES = st.one_of(st.none(), st.integers(0, 3))
Truth = bool | None
Row = Sequence[int | None]


def every(parts: Sequence[Truth]) -> Truth:
    if False in parts:
        return False
    return None if None in parts else True


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def equal(left: Row, right: Row) -> Truth:
    pairs = zip(left, right, strict=True)
    return every([None if None in pair else pair[0] == pair[1] for pair in pairs])


def less(left: Row, right: Row) -> Truth:
    for a, b in zip(left, right, strict=True):
        if a is None or b is None:
            return None
        if a != b:
            return a < b
    return False


COMPARISONS: dict[str, Callable[[Row, Row], Truth]] = {
    "=": equal,
    "<>": lambda left, right: negated(equal(left, right)),
    "<": less,
    ">": lambda left, right: less(right, left),
    "<=": lambda left, right: negated(less(right, left)),
    ">=": lambda left, right: negated(less(left, right)),
}


@st.composite
def rows_of_columns(draw: st.DrawFn) -> tuple[list[Row], list[Row], str]:
    count = draw(st.integers(2, 3))
    each = st.lists(_VALUES, min_size=count, max_size=count)
    return (
        draw(st.lists(each, min_size=1, max_size=6)),
        draw(st.lists(each, min_size=1, max_size=4)),
        draw(st.sampled_from(list(COMPARISONS))),
    )


def written(row: Row) -> str:
    return f"({', '.join('NULL' if value is None else str(value) for value in row)})"


def relation(rows: Sequence[Row]) -> str:
    columns = ", ".join(_COLUMNS[: len(rows[0])])
    typed = written([None] * len(rows[0])).replace("NULL", "CAST(NULL AS BIGINT)")
    listed = ", ".join([typed, *map(written, rows)])
    return f"(SELECT * FROM (VALUES {listed}) q({columns}) OFFSET 1) q"


@settings(max_examples=80, deadline=None)
@given(rows_of_columns())
def test_rows_are_compared_as_sql_says(
    asked: Asked, drawn: tuple[list[Row], list[Row], str]
) -> None:
    rows, others, sign = drawn
    columns = f"({', '.join(_COLUMNS[: len(rows[0])])})"
    listed = ", ".join(map(written, others))
    sql = (
        f"SELECT {columns} {sign} {written(others[0])} AS a, {columns} IN ({listed}) AS b, "
        f"{columns} NOT IN ({listed}) AS c FROM {relation(rows)}"
    )
    expected = []
    for row in rows:
        inside = negated(every([negated(equal(row, other)) for other in others]))
        expected.append((COMPARISONS[sign](row, others[0]), inside, negated(inside)))
    assert asked.mended(sql) == sorted(expected, key=str), sql


def test_joins_compare_columns(asked: Asked) -> None:
    sql = "SELECT t.v FROM t JOIN u ON (t.k, t.v) = (u.k, u.w * 10)"
    assert asked.mended(sql) == [(10,), (20,), (30,)]
    assert "struct" not in asked.text(sql)


def test_random_values_are_compared_once(asked: Asked) -> None:
    sql = "SELECT v FROM t WHERE (v, random()) < (99, 2.0)"
    assert len(asked.mended(sql)) == 5
    assert asked.text(sql).count("random") == 1


@pytest.mark.parametrize(
    "words", ["where (a, b)<(1, 2)", "(a, b) != (b, a)", "(a, b) in ( (1, 2))", "(a) >= (b)"]
)
def test_what_may_be_a_comparison_of_rows(words: str) -> None:
    assert row_values.may_apply(words)


@pytest.mark.parametrize("words", ["where f(a) < 2", "a in (1, (2))", "count(*) from (select 1)"])
def test_what_is_none(words: str) -> None:
    assert not row_values.may_apply(words)


def test_a_list_of_many_rows_stays(asked: Asked) -> None:
    many = ", ".join(f"({n}, {n})" for n in range(600))
    assert "OR" not in asked.text(f"SELECT v FROM t WHERE (k, v) IN ({many}) AND -v < 0")
