"""Conditions with subqueries have three values, and counts of nothing are rows."""

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from tests.engine.known_faults.memory import Asked

_ALL = [(10,), (20,), (30,), (40,), (50,)]
# In u, two of four keys of t occur; t has one NULL, and u has another.
CONDITIONS: dict[str, Any] = {
    "k NOT IN (SELECT k FROM u)": [],
    "NOT (k IN (SELECT k FROM e))": _ALL,
    "(k IN (SELECT k FROM u)) IS NULL": [(40,), (50,)],
    "(k IN (SELECT k FROM u WHERE w < t.v)) IS NULL": [(40,), (50,)],
    "(k IN (SELECT u.k AS v FROM u WHERE w < t.v OR w > 100)) IS NULL": [(40,), (50,)],
    "coalesce(k IN (SELECT k FROM u), true)": _ALL,
    "CASE WHEN k NOT IN (SELECT k FROM u) THEN false ELSE true END": _ALL,
    "EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)": _ALL,
    "NOT EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)": [],
    "EXISTS (SELECT approx_percentile_cont_with_weight(w, 1, 0.5) FROM u WHERE u.k = t.k)": _ALL,
    "EXISTS (SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) > 1)": [(20,), (30,)],
    "NOT EXISTS (SELECT max(w) FROM u WHERE u.k = t.k HAVING max(w) > 1)": [(10,), (40,), (50,)],
    "EXISTS (SELECT count(*) FROM u WHERE u.k = t.k GROUP BY u.k)": [(10,), (20,), (30,)],
    "0 IN (SELECT count(*) FROM u WHERE u.k = t.k)": [(40,), (50,)],
    "0 NOT IN (SELECT count(*) FROM u WHERE u.k = t.k)": [(10,), (20,), (30,)],
    "0 = ALL (SELECT count(*) FROM u WHERE u.k = t.k)": [(40,), (50,)],
    "0 < ANY (SELECT count(*) FROM u WHERE u.k = t.k)": [(10,), (20,), (30,)],
    "EXISTS (SELECT count(*) OVER () FROM u WHERE u.k = t.k)": [(10,), (20,), (30,)],
    "k NOT IN (SELECT k FROM u WHERE u.k = t.k)": [(40,), (50,)],
    "NOT (k IN (SELECT k FROM u WHERE u.w = t.v))": _ALL,
    "k NOT IN (SELECT k FROM u WHERE u.w < t.v)": [],
    "NOT (k NOT IN (SELECT k FROM u WHERE u.w = t.k))": [(10,), (20,), (30,)],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_has_the_value_of_sql(asked: Asked, condition: str) -> None:
    assert asked.mended(f"SELECT v FROM t WHERE {condition}") == CONDITIONS[condition]


# The subqueries of `x IN (subquery)` themselves have subqueries, of each kind that there is.
INNER = {
    "SELECT c FROM (VALUES (1), (NULL)) AS b(c)": [(30,), (40,), (50,), (20,)],
    "SELECT c FROM (SELECT k AS c FROM (SELECT k FROM u) AS a) AS b": [(40,), (50,)],
    "WITH b AS (SELECT k AS c FROM u) SELECT c FROM b": [(40,), (50,)],
    "SELECT k FROM u UNION SELECT c FROM (SELECT k AS c FROM u) AS b": [(40,), (50,)],
    "SELECT c FROM (SELECT 1) AS a(c) WHERE c IN (SELECT d FROM (SELECT 1) AS b(d))": [(40,)],
}


@pytest.mark.parametrize("query", INNER)
def test_in_may_hold_subqueries_in_from(asked: Asked, query: str) -> None:
    found = asked.mended(f"SELECT v FROM t WHERE (k IN ({query})) IS NULL")

    assert found == sorted(INNER[query])


_VALUES = (None, 1, 2)
_LISTS = ((), (None,), (1,), (1, None), (2, 3))


@pytest.mark.parametrize("values", _LISTS)
@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_in_is_true_false_or_null(word: str, values: tuple[int | None, ...]) -> None:
    made = Asked(
        outside=pa.table({"x": pa.array(_VALUES, pa.int64())}),
        inside=pa.table({"y": pa.array(values, pa.int64())}),
    )
    expected = [
        (x, outcome) for x, outcome in product(_VALUES, (True, False, None))
        if _is_in(x, values, word) is outcome
    ]  # fmt: skip

    found = []
    for condition, outcome in (("IS TRUE", True), ("IS FALSE", False), ("IS NULL", None)):
        sql = f"SELECT x FROM outside WHERE (x {word} (SELECT y FROM inside)) {condition}"
        found += [(row[0], outcome) for row in made.mended(sql)]

    assert sorted(found, key=str) == sorted(expected, key=str)


def _is_in(x: int | None, values: tuple[int | None, ...], word: str) -> bool | None:
    found: bool | None = False
    if values and x is None:
        found = None
    elif x in values:
        found = True
    elif None in values:
        found = None
    return found if found is None or word == "IN" else not found


@pytest.mark.parametrize(
    "condition",
    [
        "EXISTS (SELECT 1 FROM u WHERE u.k = t.k OFFSET 1)",
        "k IN (SELECT k FROM u WHERE u.w < t.v LIMIT 1)",
        "(k IN (SELECT max(k) FROM u WHERE u.w < t.v GROUP BY k)) IS NULL",
    ],
)
def test_what_has_no_right_form_is_refused(asked: Asked, condition: str) -> None:
    with pytest.raises(InvalidQueryError, match="not supported"):
        asked.mended(f"SELECT v FROM t WHERE {condition}")
